//! What is known of an agent's session while it goes on: what failed last, what has been shown, and
//! the pitfalls met.
//!
//! After a hint the next steps are watched. Success by the hinted way speaks for the fix; the same
//! error again speaks against it. Each showing is judged once, by whichever comes first, and
//! anything else that happens says nothing.
//!
//! A session speaks for a fix once and against it once, however often it goes round: a loop is one
//! witness, not many.

use serde::{Deserialize, Serialize};

use crate::model::Trial;

use super::hint::Hint;
use super::likeness::follows;
use super::pitfall::{self, Pitfall};
use super::trial::Trials;

/// The failures without an answer that are remembered, and the showings that are watched.
const KEPT: usize = 32;
/// The fixes that one session can speak of; of any more it says nothing.
const WITNESSED: usize = 512;
/// The longest code that is remembered, in bytes; a cut one still tells one way from another.
const LONGEST: usize = 4_000;

/// One session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionNotes {
    /// What failed and has not been followed by a success yet, oldest first.
    pub pending: Vec<Pending>,
    /// What was shown.
    pub shown: Vec<Shown>,
    /// The classes of errors that were met, in the order of their first meeting.
    pub pitfalls: Vec<Pitfall>,
    /// The errors that memory had hints for, shown or withheld, and that are followed.
    pub trials: Trials,
    /// What the session has said of which fixes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub witnessed: Vec<Witnessed>,
    /// Outcomes that could not be written down yet, because somebody else was writing.
    #[serde(skip_serializing_if = "Owed::is_empty")]
    pub owed: Owed,
}

/// What a session has said of a fix.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Witnessed {
    /// The fix.
    pub id: String,
    /// Whether it has spoken for it.
    pub helped: bool,
    /// Whether it has spoken against it.
    pub harmed: bool,
}

/// Outcomes that have to be written down.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Owed {
    /// For the evidence of fixes.
    pub credits: Vec<Credit>,
    /// For the log of hints.
    pub trials: Vec<Trial>,
}

impl Owed {
    /// Whether there is nothing to write down.
    pub fn is_empty(&self) -> bool {
        self.credits.is_empty() && self.trials.is_empty()
    }

    /// These and others, the oldest first; of very many the newest.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.credits.extend(other.credits);
        self.trials.extend(other.trials);
        self.credits
            .drain(..self.credits.len().saturating_sub(KEPT));
        self.trials.drain(..self.trials.len().saturating_sub(KEPT));
        self
    }
}

/// A failure that waits for its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pending {
    /// The key of its error.
    pub error_key: String,
    /// What failed.
    pub code: String,
}

/// A fix that was shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shown {
    /// The fix.
    pub id: String,
    /// The key of the error at which it was shown.
    pub error_key: String,
    /// The two sides of it, to recognise what is done next.
    pub failing_code: String,
    /// The two sides of it, to recognise what is done next.
    pub working_code: String,
    /// What came of it; nothing yet while it is `None`.
    pub outcome: Option<Outcome>,
    /// Whether the showing stands in the fix's own evidence.
    pub counted: bool,
}

/// What came of a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The error went away by the hinted way.
    Helped,
    /// The same error came again.
    Harmed,
}

/// What is to be added to a fix's evidence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Credit {
    /// The fix.
    pub id: String,
    /// Whether a showing is to be counted; it may have been before its outcome was known.
    pub shown: bool,
    /// What came of it, if that is known.
    pub outcome: Option<Outcome>,
}

impl SessionNotes {
    /// Reads notes; what cannot be read is an empty beginning.
    pub fn read(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    /// Takes in that something failed, and answers what that says of fixes shown before.
    pub fn failed(
        &mut self,
        error_key: &str,
        error: &str,
        code: &str,
        tool: Option<&str>,
    ) -> Vec<Credit> {
        let credits = self.judge(Outcome::Harmed, |shown| shown.error_key == error_key);
        self.pending.push(Pending {
            error_key: error_key.to_owned(),
            code: cut(code),
        });
        let surplus = self.pending.len().saturating_sub(KEPT);
        self.pending.drain(..surplus);
        if let Some(found) = pitfall::of_error(error, tool)
            && !self.pitfalls.contains(&found)
        {
            self.pitfalls.push(found);
        }
        credits
    }

    /// Takes in that something worked, and answers what that says of fixes shown before.
    pub fn succeeded(&mut self, code: &str) -> Vec<Credit> {
        self.judge(Outcome::Helped, |shown| {
            follows(code, &shown.working_code, &shown.failing_code)
        })
    }

    /// Takes in that hints were shown at an error.
    pub fn showed(&mut self, error_key: &str, hints: &[Hint]) {
        for hint in hints {
            self.shown.retain(|shown| shown.id != hint.id);
            self.shown.push(Shown {
                id: hint.id.clone(),
                error_key: error_key.to_owned(),
                failing_code: cut(&hint.failing_code),
                working_code: cut(&hint.working_code),
                outcome: None,
                counted: false,
            });
        }
        let surplus = self.shown.len().saturating_sub(KEPT);
        self.shown.drain(..surplus);
    }

    /// The fixes that are not to be shown again: they were, and were not taken up with success.
    pub fn withheld(&self) -> Vec<String> {
        let again = |shown: &&Shown| shown.outcome != Some(Outcome::Helped);
        let ids = self.shown.iter().filter(again);
        ids.map(|shown| shown.id.clone()).collect()
    }

    /// Whether a later step can say something of a hint.
    pub fn is_watching(&self) -> bool {
        self.trials.are_open() || self.shown.iter().any(|shown| shown.outcome.is_none())
    }

    /// Takes in that the session has ended, and answers the showings that nothing came of. It may
    /// go on all the same, and then what comes of them still counts.
    pub fn ended(&mut self) -> Vec<Credit> {
        let open = self.shown.iter_mut().filter(|shown| !shown.counted);
        open.map(|shown| {
            shown.counted = true;
            Credit {
                id: shown.id.clone(),
                shown: true,
                outcome: None,
            }
        })
        .collect()
    }

    fn judge(&mut self, outcome: Outcome, concerns: impl Fn(&Shown) -> bool) -> Vec<Credit> {
        let mut credits = Vec::new();
        for shown in &mut self.shown {
            if shown.outcome.is_none() && concerns(shown) {
                shown.outcome = Some(outcome);
                let is_new = witness(&mut self.witnessed, &shown.id).is_some_and(|said| {
                    let said = match outcome {
                        Outcome::Helped => &mut said.helped,
                        Outcome::Harmed => &mut said.harmed,
                    };
                    !std::mem::replace(said, true)
                });
                credits.push(Credit {
                    id: shown.id.clone(),
                    shown: !shown.counted,
                    outcome: is_new.then_some(outcome),
                });
                shown.counted = true;
            }
        }
        credits
    }
}

/// What has been said of a fix; `None` where the session has spoken of too many.
fn witness<'w>(witnessed: &'w mut Vec<Witnessed>, id: &str) -> Option<&'w mut Witnessed> {
    let known = witnessed.iter().position(|said| said.id == id);
    let at = match known {
        Some(at) => at,
        None if witnessed.len() < WITNESSED => {
            witnessed.push(Witnessed {
                id: id.to_owned(),
                ..Witnessed::default()
            });
            witnessed.len() - 1
        }
        None => return None,
    };
    witnessed.get_mut(at)
}

fn cut(code: &str) -> String {
    let mut end = code.len().min(LONGEST);
    while !code.is_char_boundary(end) {
        end -= 1;
    }
    code[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Evidence, Kind, Trust};

    fn hint(id: &str) -> Hint {
        Hint {
            id: id.to_owned(),
            kind: Kind::Fix,
            error_key: "E".to_owned(),
            failing_code: "pip install x".to_owned(),
            working_code: "pip install --user x".to_owned(),
            success_output: String::new(),
            score: 1.0,
            confidence: 0.5,
            evidence: Evidence::default(),
            trust: Trust::Observed,
            why: String::new(),
        }
    }

    fn shown() -> SessionNotes {
        let mut notes = SessionNotes::default();
        assert_eq!(notes.failed("E", "E", "pip install x", Some("Bash")), []);
        notes.showed("E", &[hint("FIX-001")]);
        notes
    }

    fn credit(outcome: Outcome) -> [Credit; 1] {
        [Credit {
            id: "FIX-001".to_owned(),
            shown: true,
            outcome: Some(outcome),
        }]
    }

    #[test]
    fn the_hinted_way_speaks_for_the_fix_once() {
        let mut notes = shown();
        assert!(notes.is_watching());
        assert_eq!(notes.succeeded("ls"), []);
        assert_eq!(notes.withheld(), ["FIX-001"]);
        assert_eq!(
            notes.succeeded("pip install --user x"),
            credit(Outcome::Helped)
        );
        assert_eq!(notes.succeeded("pip install --user x"), []);
        // What was taken up may be shown again.
        assert_eq!(notes.withheld(), [""; 0]);
        assert!(!notes.is_watching());
        notes.trials.begin(Trial::default(), None, "");
        assert!(notes.is_watching());
    }

    #[test]
    fn the_same_error_again_speaks_against_it_once() {
        let mut notes = shown();
        assert_eq!(notes.failed("F", "F", "ls", None), []);
        assert_eq!(
            notes.failed("E", "E", "pip install x", None),
            credit(Outcome::Harmed)
        );
        assert_eq!(notes.failed("E", "E", "pip install x", None), []);
        assert_eq!(notes.succeeded("pip install --user x"), []);
        assert_eq!(notes.withheld(), ["FIX-001"]);
    }

    #[test]
    fn loop_of_one_session_speaks_once() {
        let mut notes = SessionNotes::default();
        let (mut helped, mut harmed, mut showings) = (0, 0, 0);
        for turn in 0..20 {
            let mut credits = notes.failed("E", "E", "pip install x", Some("Bash"));
            notes.showed("E", &[hint("FIX-001")]);
            if turn % 2 == 0 {
                credits.extend(notes.succeeded("pip install --user x"));
            }
            for credit in credits {
                helped += usize::from(credit.outcome == Some(Outcome::Helped));
                harmed += usize::from(credit.outcome == Some(Outcome::Harmed));
                showings += usize::from(credit.shown);
            }
        }
        assert_eq!((helped, harmed, showings), (1, 1, 19));
        for other in 0..2 * WITNESSED {
            witness(&mut notes.witnessed, &other.to_string());
        }
        assert_eq!(notes.witnessed.len(), WITNESSED);
        assert_eq!(witness(&mut notes.witnessed, "one more"), None);
    }

    #[test]
    fn a_showing_is_counted_once_though_the_session_goes_on() {
        let mut notes = shown();
        let [ended] = &notes.ended()[..] else {
            panic!("one showing was open");
        };
        assert_eq!((ended.shown, ended.outcome), (true, None));
        assert_eq!(notes.ended(), []);
        let credits = notes.succeeded("pip install --user x");
        assert_eq!(
            (credits[0].shown, credits[0].outcome),
            (false, Some(Outcome::Helped))
        );
    }

    #[test]
    fn notes_survive_the_session_and_stay_small() {
        let mut notes = shown();
        notes.failed("K", "KeyError: 'a'", &"é".repeat(9_000), None);
        notes.failed("K", "KeyError: 'b'", "y", None);
        assert_eq!(notes.pitfalls.len(), 1);
        let text = serde_json::to_vec(&notes).unwrap();
        assert_eq!(SessionNotes::read(&text), notes);
        assert_eq!(
            SessionNotes::read(b"{\"shown\": 3}"),
            SessionNotes::default()
        );
        for i in 0..200 {
            notes.failed(&i.to_string(), "", &"z".repeat(9_000), None);
            notes.showed("E", &[hint(&i.to_string())]);
        }
        assert!(serde_json::to_vec(&notes).unwrap().len() < 200_000);
    }
}
