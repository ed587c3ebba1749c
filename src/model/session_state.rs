//! States of a session, and the allowed transitions. `table` lists the known states.
//!
//! A session moves forward in the order of the table and may skip states. The only way back is from
//! a state whose row allows it: a user who does not approve sends the session back to the state to
//! repeat. A final state never changes.
//!
//! An unknown state, for example from an edited file, is kept unchanged and may become any other.
//! It never hides its session.

mod table;

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use table::{Row, TABLE};

/// State of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SessionState {
    /// Started; the default.
    #[default]
    Initializing,
    /// Waiting for the approval of a person.
    AwaitingApproval,
    /// Ended with success.
    Completed,
    /// Ended with an error message.
    Error,
    /// Ended before completion, without an error.
    Cancelled,
    /// Any other word, known or not.
    Other(String),
}

impl SessionState {
    /// Returns the known states, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| Self::of(row.name))
    }

    /// Returns the words of the known states, in order, each with `true` if help lists it.
    pub fn names() -> impl Iterator<Item = (&'static str, bool)> {
        TABLE.iter().map(|row| (row.name, !row.is_example))
    }

    /// Returns the word as written in the file.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Initializing => "initializing",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Completed => "completed",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
            Self::Other(word) => word,
        }
    }

    /// Returns `true` if the state is in the table.
    pub fn is_known(&self) -> bool {
        self.place().is_some()
    }

    /// Returns `true` if the session has ended and can no longer change.
    pub fn is_final(&self) -> bool {
        self.row().is_some_and(|row| row.is_final)
    }

    /// Returns `true` if the session may move to `next`. A session that has not ended may keep its
    /// state.
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

    /// Returns `true` if moving to `next` is a step back, after which the work is repeated.
    pub fn is_sent_back_to(&self, next: &Self) -> bool {
        self.row()
            .is_some_and(|row| row.back_to.contains(&next.as_str()))
    }

    /// Returns the states that may follow, without the current one.
    pub fn next(&self) -> impl Iterator<Item = Self> + '_ {
        Self::all().filter(move |next| next != self && self.may_become(next))
    }

    fn of(word: &str) -> Self {
        match word {
            "initializing" => Self::Initializing,
            "awaiting_approval" => Self::AwaitingApproval,
            "completed" => Self::Completed,
            "error" => Self::Error,
            "cancelled" => Self::Cancelled,
            other => Self::Other(other.to_owned()),
        }
    }

    fn place(&self) -> Option<usize> {
        let word = self.as_str();
        TABLE.iter().position(|row| row.name == word)
    }

    fn row(&self) -> Option<&'static Row> {
        self.place().map(|place| &TABLE[place])
    }
}

impl FromStr for SessionState {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Self, Infallible> {
        Ok(Self::of(word))
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

    /// Table of all transitions: `+` is allowed, `=` keeps the state, `-` is forbidden.
    const TRANSITIONS: [(&str, &str); 12] = [
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
        for (from, row) in TRANSITIONS {
            let from: SessionState = from.parse().unwrap();
            for (to, mark) in SessionState::all().zip(row.chars()) {
                let listed = from.next().any(|next| next == to);
                assert_eq!(from.may_become(&to), mark != '-', "{from} -> {to}");
                assert_eq!(listed, mark == '+', "{from} -> {to}");
            }
        }
    }

    #[test]
    fn names_come_back_as_they_are() {
        for (state, (name, _)) in SessionState::all().zip(SessionState::names()) {
            assert_eq!((state.as_str(), name.parse()), (name, Ok(state.clone())));
        }
        assert!(
            SessionState::names()
                .map(|(name, _)| name)
                .eq(TRANSITIONS.map(|(name, _)| name))
        );
        let odd: SessionState = serde_json::from_str("\"paused\"").unwrap();
        assert_eq!(odd, SessionState::Other("paused".to_owned()));
        assert_eq!(serde_json::to_string(&odd).unwrap(), "\"paused\"");
        // An edit may correct an unknown state, but no transition leads to one.
        assert_eq!(odd.next().count(), 12);
        assert!(!SessionState::Initializing.may_become(&odd));
        let none: SessionState = serde_json::from_str("7").unwrap();
        assert_eq!(none.as_str(), "7");
    }
}
