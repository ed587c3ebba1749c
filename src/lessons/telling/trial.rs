//! Follows errors that have hints.
//!
//! The next calls judge: the same error again is a repeat, and a success with the goal of the failed
//! call ends the trial.

use serde::{Deserialize, Serialize};

use crate::model::Trial;
use memctl_sessions::Step;

use crate::lessons::recovery::goal::Goal;
use crate::lessons::recovery::goal_match::{Match, same_goal};

/// Number of calls after which a trial ends without success.
const LONGEST: u64 = 50;
/// Maximum number of errors followed per session.
const KEPT: usize = 16;
/// Maximum length of stored code, in bytes.
const CODE: usize = 4_000;

/// Open trials of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Trials(Vec<Open>);

/// Open trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Open {
    trial: Trial,
    tool: String,
    code: String,
}

impl Trials {
    /// Returns true if a trial is open.
    pub(crate) fn are_open(&self) -> bool {
        !self.0.is_empty()
    }

    /// Records a failed call. Returns the trials that it ends.
    pub(crate) fn failed(&mut self, error_key: &str) -> Vec<Trial> {
        for open in &mut self.0 {
            open.trial.steps += 1;
            open.trial.repeats += u64::from(open.trial.error_key == error_key);
        }
        self.end(|open| open.trial.steps >= LONGEST)
    }

    /// Begins a trial, unless the error is already followed. Returns the oldest trial if there are
    /// too many.
    pub(crate) fn begin(&mut self, trial: Trial, tool: Option<&str>, code: &str) -> Option<Trial> {
        if self
            .0
            .iter()
            .any(|open| open.trial.error_key == trial.error_key)
        {
            return None;
        }
        self.0.push(Open {
            trial,
            tool: tool.unwrap_or_default().to_owned(),
            code: code[..code.floor_char_boundary(CODE)].to_owned(),
        });
        (self.0.len() > KEPT).then(|| self.0.remove(0).trial)
    }

    /// Takes in a successful call, and answers the trials that it ends. `helped` are the lessons that
    /// it followed.
    pub(crate) fn succeeded(
        &mut self,
        tool: Option<&str>,
        code: &str,
        helped: &[String],
    ) -> Vec<Trial> {
        let done = Goal::of(&Step::of_call(tool.unwrap_or_default(), code));
        self.went_on(helped, |open, followed| {
            let failed = Goal::of(&Step::of_call(&open.tool, &open.code));
            let same = same_goal(&failed, &done, &open.trial.error_key) >= Match::Similar;
            same || followed
        })
    }

    /// Records that the caller reports errors as recovered. Returns their trials.
    pub(crate) fn overcame(&mut self, error_keys: &[&str], helped: &[String]) -> Vec<Trial> {
        self.went_on(helped, |open, _| {
            error_keys.contains(&open.trial.error_key.as_str())
        })
    }

    /// Counts a step of each trial, and ends those that it overcomes.
    fn went_on(
        &mut self,
        helped: &[String],
        is_overcome: impl Fn(&Open, bool) -> bool,
    ) -> Vec<Trial> {
        for open in &mut self.0 {
            let followed = open.trial.hints.iter().any(|hint| helped.contains(hint));
            open.trial.steps += 1;
            open.trial.overcome = is_overcome(open, followed);
            open.trial.helped = open.trial.overcome && followed;
        }
        self.end(|open| open.trial.overcome || open.trial.steps >= LONGEST)
    }

    /// Records the end of the session. Returns all open trials.
    pub(crate) fn ended(&mut self) -> Vec<Trial> {
        self.end(|_| true)
    }

    fn end(&mut self, is_over: impl Fn(&Open) -> bool) -> Vec<Trial> {
        let over = self.0.extract_if(.., |open| is_over(open));
        over.map(|open| open.trial).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun() -> Trials {
        let mut trials = Trials::default();
        let trial = Trial {
            error_key: "E".to_owned(),
            hints: vec!["PROC-001".to_owned()],
            ..Trial::default()
        };
        assert_eq!(
            trials.begin(trial.clone(), Some("Bash"), "pip install x"),
            None
        );
        assert_eq!(trials.begin(trial, Some("Bash"), "pip install y"), None);
        trials
    }

    #[test]
    fn an_error_is_followed_to_the_success_of_its_goal() {
        let mut trials = begun();
        assert_eq!(trials.failed("E"), []);
        assert_eq!(trials.failed("F"), []);
        assert_eq!(trials.succeeded(Some("Bash"), "ls", &[]), []);
        assert!(trials.are_open());
        let ended = trials.succeeded(Some("Bash"), "pip install --user x", &[]);
        let [trial] = &ended[..] else {
            panic!("{ended:?}");
        };
        assert_eq!((trial.repeats, trial.steps), (1, 4));
        assert!(trial.overcome && !trial.helped);
        assert!(!trials.are_open());
    }

    #[test]
    fn a_way_that_was_shown_ends_it_too() {
        let mut trials = begun();
        let ended = trials.succeeded(Some("Bash"), "uv add x", &["PROC-001".to_owned()]);
        assert!(ended[0].overcome && ended[0].helped);
        let mut trials = begun();
        assert_eq!(trials.overcame(&["F"], &[]), []);
        assert!(trials.overcame(&["E"], &[])[0].overcome);
    }

    #[test]
    fn what_is_given_up_ends_without_success() {
        let mut trials = begun();
        assert!(!trials.ended()[0].overcome);
        let mut trials = begun();
        let ended: Vec<Trial> = (0..LONGEST).flat_map(|_| trials.failed("F")).collect();
        assert_eq!((ended.len(), ended[0].steps), (1, LONGEST));
        let mut trials = begun();
        for n in 0..KEPT {
            let error_key = n.to_string();
            let trial = Trial {
                error_key,
                ..Trial::default()
            };
            let out = trials.begin(trial, None, "x");
            assert_eq!(out.is_some(), n + 1 == KEPT, "{n}");
        }
    }
}
