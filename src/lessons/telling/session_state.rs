//! State of a running agent session: recent failures, shown hints with their outcomes, and pitfalls.
//!
//! After a hint, the next steps decide. Success in the hinted way counts for the lesson, the same error again
//! counts against it, and anything else does not count. The first of the two decides.
//!
//! A session counts at most once for and once against a lesson, however often a loop repeats.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::lessons::recovery::recover::Trace;
use crate::lessons::telling::evidence::adopts;
use crate::model::Trial;
use crate::model::text::one_line;
use crate::store::{self, Scoped};

use super::hint::{Pitfall, pitfall_of};
use crate::lessons::telling::hint::{Hint, Outcome, Shown};

/// Maximum number of equal failures, watched lessons and unstored outcomes.
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
    /// Lessons and patterns that were shown.
    pub shown: Vec<Shown>,
    /// Classes of errors that occurred, in order of first occurrence.
    pub pitfalls: Vec<Pitfall>,
    /// Followed errors that had hints.
    pub trials: Trials,
    /// Steps since the first failure without a recovery.
    #[serde(skip_serializing_if = "Trace::is_idle")]
    pub trace: Trace,
    /// Lessons that the session has counted for or against.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub witnessed: Vec<(String, Outcome)>,
    /// Outcomes not stored yet because another process held the lock, or an agent waited.
    #[serde(rename = "owed", skip_serializing_if = "PendingOutcomes::is_empty")]
    pub pending: PendingOutcomes,
    /// Failures that came more than once, by the hash of error and call, with their number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repeated: Vec<(u64, u64)>,
    /// Number of rules that the agent got at the start of the session.
    pub told: usize,
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

/// Number of calls after which a trial ends without success.
const LONGEST_TRIAL: u64 = 50;
/// Maximum number of errors followed per session.
const TRIALS: usize = 16;

/// Errors with hints that are followed. The next calls judge: the same error again is a repeat, and a success that
/// recovers it, or follows a hint, ends the trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Trials(Vec<Trial>);

impl Trials {
    /// Returns true if a trial is open.
    pub(crate) fn are_open(&self) -> bool {
        !self.0.is_empty()
    }

    /// Records a failed call. Returns the trials that it ends.
    pub(crate) fn failed(&mut self, error_key: &str) -> Vec<Trial> {
        for trial in &mut self.0 {
            trial.steps += 1;
            trial.repeats += u64::from(trial.error_key == error_key);
        }
        self.end(|trial| trial.steps >= LONGEST_TRIAL)
    }

    /// Begins a trial, unless the error is already followed. Returns the oldest trial if there are
    /// too many.
    pub(crate) fn begin(&mut self, trial: Trial) -> Option<Trial> {
        if self.0.iter().any(|open| open.error_key == trial.error_key) {
            return None;
        }
        self.0.push(trial);
        (self.0.len() > TRIALS).then(|| self.0.remove(0))
    }

    /// Takes in a successful call that recovered errors and followed lessons. Returns the trials that it ends.
    pub(crate) fn succeeded(&mut self, error_keys: &[String], followed: &[String]) -> Vec<Trial> {
        for trial in &mut self.0 {
            trial.steps += 1;
            trial.helped = trial.hints.iter().any(|hint| followed.contains(hint));
            trial.overcome = trial.helped || error_keys.contains(&trial.error_key);
        }
        self.end(|trial| trial.overcome || trial.steps >= LONGEST_TRIAL)
    }

    /// Records the end of the session. Returns all open trials.
    pub(crate) fn ended(&mut self) -> Vec<Trial> {
        self.end(|_| true)
    }

    fn end(&mut self, is_over: impl Fn(&Trial) -> bool) -> Vec<Trial> {
        self.0.extract_if(.., |trial| is_over(trial)).collect()
    }
}

/// Addition to a lesson's evidence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Credit {
    /// Id of the lesson.
    pub id: String,
    /// True if the use is to be counted, false if it was counted before.
    pub shown: bool,
    /// Outcome, if known.
    pub outcome: Option<Outcome>,
}

impl SessionNotes {
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
        self.trace.failed(tool, code, error);
        if let Some(found) = pitfall_of(error, tool)
            && !self.pitfalls.contains(&found)
        {
            self.pitfalls.push(found);
        }
        credits
    }

    /// Counts a failure of a call. Returns how often it has come in the same way.
    pub(crate) fn times(&mut self, error_key: &str, code: &str) -> u64 {
        let hash = xxh3_64(format!("{}\0{error_key}", one_line(code)).as_bytes());
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

    /// Ids of everything that was shown.
    pub(crate) fn shown_ids(&self) -> Vec<String> {
        self.shown.iter().map(|shown| shown.id.clone()).collect()
    }

    /// Records the hints shown for an error, or before a call.
    pub(crate) fn showed(&mut self, error_key: &str, hints: &[Hint], call: &str, before: bool) {
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
            || !self.trace.is_idle()
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
                let verdict = (shown.id.clone(), outcome);
                let is_new = self.witnessed.len() < WITNESSED && !self.witnessed.contains(&verdict);
                if is_new {
                    self.witnessed.push(verdict);
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

/// Forgets the failures of a session that wait for their recovery.
pub(crate) fn forget_failures(store: &Scoped, session: &str) -> Result<(), store::Error> {
    store.note(session, |notes: &mut SessionNotes| notes.trace.clear())
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
        notes.showed("E", &[hint("PROC-001")], "pip install x", false);
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
        notes.trace.clear();
        assert!(!notes.is_watching());
        notes.trials.begin(Trial::default());
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
            notes.showed("E", &[hint("PROC-001")], "pip install x", false);
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
            notes.showed("E", &[hint(&other.to_string())], "pip install x", false);
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
        assert_eq!(
            serde_json::from_slice::<SessionNotes>(&text).unwrap(),
            notes
        );
        for i in 0..200 {
            notes.failed(&i.to_string(), "", &"z".repeat(9_000), None);
            notes.showed("E", &[hint(&i.to_string())], "z", false);
        }
        assert!(serde_json::to_vec(&notes).unwrap().len() < 200_000);
    }
}

#[cfg(test)]
mod tests_of_trials {
    use super::*;

    fn begun() -> Trials {
        let mut trials = Trials::default();
        let trial = Trial {
            error_key: "E".to_owned(),
            hints: vec!["PROC-001".to_owned()],
            ..Trial::default()
        };
        assert_eq!(trials.begin(trial.clone()), None);
        assert_eq!(trials.begin(trial), None);
        trials
    }

    #[test]
    fn an_error_is_followed_to_its_recovery() {
        let mut trials = begun();
        assert_eq!(trials.failed("E"), []);
        assert_eq!(trials.failed("F"), []);
        assert_eq!(trials.succeeded(&["F".to_owned()], &[]), []);
        assert!(trials.are_open());
        let ended = trials.succeeded(&["E".to_owned()], &[]);
        let [trial] = &ended[..] else {
            panic!("{ended:?}");
        };
        assert_eq!((trial.repeats, trial.steps), (1, 4));
        assert!(trial.overcome && !trial.helped);
        assert!(!trials.are_open());
    }

    #[test]
    fn a_way_that_was_shown_ends_it_too() {
        let ended = begun().succeeded(&[], &["PROC-001".to_owned()]);
        assert!(ended[0].overcome && ended[0].helped);
    }

    #[test]
    fn abandoned_failure_ends_without_success() {
        assert!(!begun().ended()[0].overcome);
        let mut trials = begun();
        let ended: Vec<Trial> = (0..LONGEST_TRIAL)
            .flat_map(|_| trials.failed("F"))
            .collect();
        assert_eq!((ended.len(), ended[0].steps), (1, LONGEST_TRIAL));
        let mut trials = begun();
        for n in 0..TRIALS {
            let error_key = n.to_string();
            let trial = Trial {
                error_key,
                ..Trial::default()
            };
            let out = trials.begin(trial);
            assert_eq!(out.is_some(), n + 1 == TRIALS, "{n}");
        }
    }
}
