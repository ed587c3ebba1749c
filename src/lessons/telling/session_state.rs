//! State of a running agent session: recent failures, what was shown, and pitfalls.
//!
//! After a hint, the next steps decide. Success in the hinted way counts for the lesson, the same
//! error again counts against it, and anything else does not count. The first of the two decides.
//!
//! A session counts at most once for and once against a lesson, however often a loop repeats.

use serde::{Deserialize, Serialize};

use crate::lessons::failure::error_line::error_line;
use crate::lessons::recovery::trace::Trace;
use crate::lessons::telling::evidence::adopts;
use crate::model::Trial;

use super::pitfall::{self, Pitfall};
use super::trial::Trials;
use crate::lessons::telling::hint::{Hint, Outcome, Shown};

/// Maximum number of unresolved failures, watched lessons and unstored outcomes.
const KEPT: usize = 32;
/// Maximum number of lessons that one session can count for or against. Further ones are ignored.
const WITNESSED: usize = 512;
/// Maximum length of stored code, in bytes. Cut code still distinguishes lessons.
const LONGEST: usize = 4_000;
/// Maximum length of the stored call that failed, in bytes.
const LONGEST_CALL: usize = 600;

/// State of one session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionNotes {
    /// Failures not yet followed by a success, oldest first.
    pub pending: Vec<Pending>,
    /// Lessons and patterns that were shown.
    pub shown: Vec<Shown>,
    /// Classes of errors that occurred, in order of first occurrence.
    pub pitfalls: Vec<Pitfall>,
    /// Followed errors that had hints.
    pub trials: Trials,
    /// Steps since the first failure without a recovery.
    #[serde(skip_serializing_if = "Trace::is_empty")]
    pub trace: Trace,
    /// Lessons that the session has counted for or against.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub witnessed: Vec<(String, Outcome)>,
    /// Outcomes not stored yet because another process held the lock, or an agent waited.
    #[serde(skip_serializing_if = "PendingOutcomes::is_empty")]
    pub owed: PendingOutcomes,
    /// Failures that came more than once, by the hash of error and call, with their number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repeated: Vec<(u64, u64)>,
    /// Number of rules that the agent got at the start of the session.
    #[serde(skip_serializing_if = "is_zero")]
    pub told: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Outcomes to store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PendingOutcomes {
    /// Evidence for lessons.
    pub credits: Vec<Credit>,
    /// Entries for the hint log.
    pub trials: Vec<Trial>,
}

impl PendingOutcomes {
    /// Returns true if there is nothing to store.
    pub(crate) fn is_empty(&self) -> bool {
        self.credits.is_empty() && self.trials.is_empty()
    }

    /// Appends other outcomes and keeps only the newest.
    #[must_use]
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.credits.extend(other.credits);
        self.trials.extend(other.trials);
        self.credits
            .drain(..self.credits.len().saturating_sub(KEPT));
        self.trials.drain(..self.trials.len().saturating_sub(KEPT));
        self
    }
}

/// Failure without a recovery.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Pending {
    /// Error key.
    pub error_key: String,
    /// Deciding line of the error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error_line: String,
    /// Failing code.
    pub code: String,
}

/// Addition to a lesson's evidence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Credit {
    /// Id of the lesson.
    pub id: String,
    /// True if the use is to be counted, false if it was counted before.
    pub shown: bool,
    /// Outcome, if known.
    pub outcome: Option<Outcome>,
}

impl SessionNotes {
    /// Parses stored state; unreadable state becomes empty.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    /// Records a failure. Returns the evidence about lessons shown before.
    pub(crate) fn failed(
        &mut self,
        error_key: &str,
        error: &str,
        code: &str,
        tool: Option<&str>,
    ) -> Vec<Credit> {
        // A call that does not follow the hint says nothing about it.
        let credits = self.judge(Outcome::Harmed, |shown| {
            shown.error_key == error_key && adopts(code, shown)
        });
        self.pending.push(Pending {
            error_key: error_key.to_owned(),
            error_line: error_line(error).unwrap_or_default(),
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

    /// Counts a failure of a call. Returns how often it has come in the same way.
    pub(crate) fn times(&mut self, error_key: &str, code: &str) -> u64 {
        let code = code.split_whitespace();
        let bytes = code
            .flat_map(str::bytes)
            .chain([0])
            .chain(error_key.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        if let Some((_, times)) = self.repeated.iter_mut().find(|(own, _)| *own == hash) {
            *times += 1;
            return *times;
        }
        self.repeated.push((hash, 1));
        let surplus = self.repeated.len().saturating_sub(KEPT);
        self.repeated.drain(..surplus);
        1
    }

    /// Records a success. Returns the evidence about lessons shown before.
    pub(crate) fn succeeded(&mut self, code: &str) -> Vec<Credit> {
        let mut credits = self.judge(Outcome::Needless, |shown| {
            shown.before && shown.call.trim() == code.trim()
        });
        credits.extend(self.judge(Outcome::Helped, |shown| adopts(code, shown)));
        credits
    }

    /// Records the hints shown for an error.
    pub(crate) fn showed(&mut self, error_key: &str, hints: &[Hint]) {
        let call = self.pending.last().map(|failed| failed.code.clone());
        self.track(error_key, hints, &call.unwrap_or_default(), false);
    }

    /// Records lessons shown before a call.
    pub(crate) fn showed_before(&mut self, hints: &[Hint], call: &str) {
        self.track("", hints, call, true);
    }

    /// Ids of everything that was shown.
    pub(crate) fn shown_ids(&self) -> Vec<String> {
        self.shown.iter().map(|shown| shown.id.clone()).collect()
    }

    fn track(&mut self, error_key: &str, hints: &[Hint], call: &str, before: bool) {
        let call = &call[..call.floor_char_boundary(LONGEST_CALL)];
        for hint in hints {
            self.shown.retain(|shown| shown.id != hint.id);
            self.shown.push(Shown {
                id: hint.id.clone(),
                is_lesson: !hint.lesson.is_empty(),
                advice: hint.advice.clone(),
                error_key: error_key.to_owned(),
                failing_code: cut(&hint.failing_code),
                working_code: cut(&hint.working_code),
                call: call.to_owned(),
                outcome: None,
                counted: false,
                before,
            });
        }
        let surplus = self.shown.len().saturating_sub(KEPT);
        self.shown.drain(..surplus);
    }

    /// Ids of lessons not to show again: shown before, and not adopted with success.
    pub(crate) fn not_again(&self) -> Vec<String> {
        let again = |shown: &&Shown| shown.outcome != Some(Outcome::Helped);
        let ids = self.shown.iter().filter(again);
        ids.map(|shown| shown.id.clone()).collect()
    }

    /// Returns true if a later step can decide about a hint.
    pub(crate) fn is_watching(&self) -> bool {
        self.trials.are_open()
            || self.trace.is_open()
            || self.shown.iter().any(|shown| shown.outcome.is_none())
    }

    /// Records the end of the session. Returns the uses without an outcome. If the session
    /// continues, later outcomes still count.
    pub(crate) fn ended(&mut self) -> Vec<Credit> {
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
                let said = (shown.id.clone(), outcome);
                let is_new = self.witnessed.len() < WITNESSED && !self.witnessed.contains(&said);
                if is_new {
                    self.witnessed.push(said);
                }
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

fn cut(code: &str) -> String {
    code[..code.floor_char_boundary(LONGEST)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Evidence, Kind, Trust};

    fn hint(id: &str) -> Hint {
        Hint {
            id: id.to_owned(),
            kind: Kind::Procedure,
            lesson: String::new(),
            error_key: "E".to_owned(),
            failing_code: "pip install x".to_owned(),
            working_code: "pip install --user x".to_owned(),
            success_output: String::new(),
            score: 1.0,
            confidence: 0.5,
            evidence: Evidence::default(),
            trust: Trust::Observed,
            why: String::new(),
            advice: Vec::new(),
        }
    }

    fn shown() -> SessionNotes {
        let mut notes = SessionNotes::default();
        assert_eq!(notes.failed("E", "E", "pip install x", Some("Bash")), []);
        notes.showed("E", &[hint("PROC-001")]);
        notes
    }

    fn credit(outcome: Outcome) -> [Credit; 1] {
        [Credit {
            id: "PROC-001".to_owned(),
            shown: true,
            outcome: Some(outcome),
        }]
    }

    #[test]
    fn the_hinted_way_speaks_for_the_fix_once() {
        let mut notes = shown();
        assert!(notes.is_watching());
        assert_eq!(notes.succeeded("ls"), []);
        assert_eq!(notes.not_again(), ["PROC-001"]);
        assert_eq!(
            notes.succeeded("pip install --user x"),
            credit(Outcome::Helped)
        );
        assert_eq!(notes.succeeded("pip install --user x"), []);
        // A lesson that helped can be shown again.
        assert_eq!(notes.not_again(), [""; 0]);
        assert!(!notes.is_watching());
        notes.trials.begin(Trial::default(), None, "");
        assert!(notes.is_watching());
    }

    #[test]
    fn the_same_error_again_speaks_against_it_once() {
        let mut notes = shown();
        assert_eq!(notes.failed("F", "F", "ls", None), []);
        // Ignoring the hint says nothing.
        assert_eq!(notes.failed("E", "E", "pip install x", None), []);
        let follows = "pip install --user x";
        assert_eq!(
            notes.failed("E", "E", follows, None),
            credit(Outcome::Harmed)
        );
        assert_eq!(notes.failed("E", "E", follows, None), []);
        assert_eq!(notes.succeeded("pip install --user x"), []);
        assert_eq!(notes.not_again(), ["PROC-001"]);
    }

    #[test]
    fn loop_of_one_session_speaks_once() {
        let mut notes = SessionNotes::default();
        let (mut helped, mut harmed, mut showings) = (0, 0, 0);
        for turn in 0..20 {
            let mut credits = notes.failed("E", "E", "pip install x", Some("Bash"));
            notes.showed("E", &[hint("PROC-001")]);
            let follows = "pip install --user x";
            if turn % 2 == 0 {
                credits.extend(notes.succeeded(follows));
            } else {
                credits.extend(notes.failed("E", "E", follows, Some("Bash")));
            }
            for credit in credits {
                helped += usize::from(credit.outcome == Some(Outcome::Helped));
                harmed += usize::from(credit.outcome == Some(Outcome::Harmed));
                showings += usize::from(credit.shown);
            }
        }
        assert_eq!((helped, harmed, showings), (1, 1, 20));
        notes.failed("E", "E", "pip install x", Some("Bash"));
        for other in 0..2 * WITNESSED {
            notes.showed("E", &[hint(&other.to_string())]);
            notes.succeeded("pip install --user x");
        }
        assert_eq!(notes.witnessed.len(), WITNESSED);
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
