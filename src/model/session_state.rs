//! The states of a session, and which may follow which.
//!
//! The source document's order is the way forward, and a session may skip what it does not need. A
//! person who does not approve sends it back to what is to be made anew; nothing else goes back.
//! `error` and `cancelled` end it from anywhere, and what has ended stays as it is.
//!
//! A state of nobody's making, as a hand may have written it, is kept as it is and may become any
//! other: it never hides the session that it stands in.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a session is at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(
    missing_docs,
    reason = "the names are the definition: they are the source document's"
)]
pub enum SessionState {
    #[default]
    Initializing,
    AnalyzingBrand,
    ResearchingCompetitors,
    AnalyzingTrends,
    GeneratingConcepts,
    GeneratingScripts,
    AwaitingApproval,
    GeneratingVideos,
    UpdatingMemory,
    Completed,
    Error,
    Cancelled,
    /// Any other word.
    Other(String),
}

impl SessionState {
    /// The states of the source document, in its order.
    pub const ALL: [Self; 12] = [
        Self::Initializing,
        Self::AnalyzingBrand,
        Self::ResearchingCompetitors,
        Self::AnalyzingTrends,
        Self::GeneratingConcepts,
        Self::GeneratingScripts,
        Self::AwaitingApproval,
        Self::GeneratingVideos,
        Self::UpdatingMemory,
        Self::Completed,
        Self::Error,
        Self::Cancelled,
    ];

    /// Their words, in the same order.
    pub const NAMES: [&'static str; 12] = [
        "initializing",
        "analyzing_brand",
        "researching_competitors",
        "analyzing_trends",
        "generating_concepts",
        "generating_scripts",
        "awaiting_approval",
        "generating_videos",
        "updating_memory",
        "completed",
        "error",
        "cancelled",
    ];

    /// The word in the file.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Other(word) => word,
            known => known.place().map_or("", |place| Self::NAMES[place]),
        }
    }

    /// Whether the session has ended, and stays as it is.
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Completed | Self::Error | Self::Cancelled)
    }

    /// Whether the session may go from here to there. Staying is allowed, as long as it goes on.
    pub fn may_become(&self, next: &Self) -> bool {
        let Some(to) = next.place() else {
            return false;
        };
        match self.place() {
            None => true,
            Some(_) if self.is_final() => false,
            Some(from) => to >= from || self.is_sent_back_to(next),
        }
    }

    /// Whether going there is going back: what comes then is made anew.
    pub const fn is_sent_back_to(&self, next: &Self) -> bool {
        matches!(
            (self, next),
            (
                Self::AwaitingApproval,
                Self::GeneratingConcepts | Self::GeneratingScripts
            )
        )
    }

    /// The states that a session may go to from here, this one left out.
    pub fn next(&self) -> impl Iterator<Item = Self> + '_ {
        let all = Self::ALL.into_iter();
        all.filter(move |next| next != self && self.may_become(next))
    }

    fn place(&self) -> Option<usize> {
        Self::ALL.iter().position(|state| state == self)
    }
}

impl FromStr for SessionState {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Self, Infallible> {
        let place = Self::NAMES.iter().position(|name| *name == word);
        Ok(place.map_or_else(
            || Self::Other(word.to_owned()),
            |place| Self::ALL[place].clone(),
        ))
    }
}

impl fmt::Display for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for SessionState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for SessionState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = super::lenient::text(deserializer)?;
        Ok(word.parse().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From where to where, for every pair: `+` may go there, `=` may stay, `-` may not.
    const TABLE: [(&str, &str); 12] = [
        ("initializing", "=+++++++++++"),
        ("analyzing_brand", "-=++++++++++"),
        ("researching_competitors", "--=+++++++++"),
        ("analyzing_trends", "---=++++++++"),
        ("generating_concepts", "----=+++++++"),
        ("generating_scripts", "-----=++++++"),
        ("awaiting_approval", "----++=+++++"),
        ("generating_videos", "-------=++++"),
        ("updating_memory", "--------=+++"),
        ("completed", "------------"),
        ("error", "------------"),
        ("cancelled", "------------"),
    ];

    #[test]
    fn every_pair_of_states_is_as_the_table_says() {
        for (from, row) in TABLE {
            let from: SessionState = from.parse().unwrap();
            for (to, mark) in SessionState::ALL.into_iter().zip(row.chars()) {
                let listed = from.next().any(|next| next == to);
                assert_eq!(from.may_become(&to), mark != '-', "{from} -> {to}");
                assert_eq!(listed, mark == '+', "{from} -> {to}");
            }
        }
    }

    #[test]
    fn names_come_back_as_they_are() {
        for (state, name) in SessionState::ALL.iter().zip(SessionState::NAMES) {
            assert_eq!((state.as_str(), name.parse()), (name, Ok(state.clone())));
        }
        let odd: SessionState = serde_json::from_str("\"paused\"").unwrap();
        assert_eq!(odd, SessionState::Other("paused".to_owned()));
        assert_eq!(serde_json::to_string(&odd).unwrap(), "\"paused\"");
        // A hand may put right what a hand has written, but nobody else writes such words.
        assert_eq!(odd.next().count(), 12);
        assert!(!SessionState::Initializing.may_become(&odd));
        let none: SessionState = serde_json::from_str("7").unwrap();
        assert_eq!(none.as_str(), "7");
    }
}
