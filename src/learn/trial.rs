//! Follows what comes of an error that memory has hints for, be they shown or withheld.
//!
//! Both are judged alike, by what the agent does next: the same error again is a repetition, a
//! success with the goal of the failing call ends the trial. So the two can be compared.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::{Step, Trial};

use super::goal::Goal;
use super::same::{Match, same_goal};

/// After so many calls nobody works at the error any more.
const LONGEST: u64 = 50;
/// So many errors of a session are followed at a time.
const KEPT: usize = 16;
/// The longest code that is remembered, in bytes.
const CODE: usize = 4_000;

/// The errors of a session that are followed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Trials(Vec<Open>);

/// An error that is followed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Open {
    trial: Trial,
    tool: String,
    code: String,
}

impl Trials {
    /// Whether what happens next is of interest.
    pub fn are_open(&self) -> bool {
        !self.0.is_empty()
    }

    /// Takes in a failing call, and answers the trials that it ends.
    pub fn failed(&mut self, error_key: &str) -> Vec<Trial> {
        for open in &mut self.0 {
            open.trial.steps += 1;
            open.trial.repeats += u64::from(open.trial.error_key == error_key);
        }
        self.end(|open| open.trial.steps >= LONGEST)
    }

    /// Begins to follow an error, unless it is followed already. Answers a trial that has to make
    /// room for it.
    pub fn begin(&mut self, trial: Trial, tool: Option<&str>, code: &str) -> Option<Trial> {
        if self
            .0
            .iter()
            .any(|open| open.trial.error_key == trial.error_key)
        {
            return None;
        }
        let mut end = code.len().min(CODE);
        while !code.is_char_boundary(end) {
            end -= 1;
        }
        self.0.push(Open {
            trial,
            tool: tool.unwrap_or_default().to_owned(),
            code: code[..end].to_owned(),
        });
        (self.0.len() > KEPT).then(|| self.0.remove(0).trial)
    }

    /// Takes in a successful call, and answers the trials that it ends. `helped` are the fixes that
    /// it followed.
    pub fn succeeded(&mut self, tool: Option<&str>, code: &str, helped: &[String]) -> Vec<Trial> {
        let done = Goal::of(&step(tool.unwrap_or_default(), code));
        for open in &mut self.0 {
            open.trial.steps += 1;
            open.trial.helped = open.trial.hints.iter().any(|hint| helped.contains(hint));
            let failed = Goal::of(&step(&open.tool, &open.code));
            let same = same_goal(&failed, &done, &open.trial.error_key) >= Match::Similar;
            open.trial.overcome = same || open.trial.helped;
        }
        self.end(|open| open.trial.overcome || open.trial.steps >= LONGEST)
    }

    /// Takes in that somebody says which errors were overcome, and answers their trials.
    pub fn overcame(&mut self, error_keys: &[&str], helped: &[String]) -> Vec<Trial> {
        for open in &mut self.0 {
            open.trial.steps += 1;
            open.trial.overcome = error_keys.contains(&open.trial.error_key.as_str());
            let way = open.trial.hints.iter().any(|hint| helped.contains(hint));
            open.trial.helped = open.trial.overcome && way;
        }
        self.end(|open| open.trial.overcome || open.trial.steps >= LONGEST)
    }

    /// Takes in that the session has ended.
    pub fn ended(&mut self) -> Vec<Trial> {
        self.end(|_| true)
    }

    fn end(&mut self, is_over: impl Fn(&Open) -> bool) -> Vec<Trial> {
        let over = self.0.extract_if(.., |open| is_over(open));
        over.map(|open| open.trial).collect()
    }
}

/// A call as its host told of it: a command, or the whole input of another tool.
fn step(tool: &str, code: &str) -> Step {
    let input = match serde_json::from_str(code) {
        Ok(Value::Object(fields)) => Value::Object(fields),
        _ => json!({ "command": code }),
    };
    Step {
        tool: tool.to_owned(),
        input,
        ..Step::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun() -> Trials {
        let mut trials = Trials::default();
        let trial = Trial {
            error_key: "E".to_owned(),
            hints: vec!["FIX-001".to_owned()],
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
        let ended = trials.succeeded(Some("Bash"), "uv add x", &["FIX-001".to_owned()]);
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
