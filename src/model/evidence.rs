//! Evidence from use for a rule or a lesson.
//!
//! The posterior is a Beta distribution with prior (2, 2): an untried record has one half, and a
//! few outcomes move it. It equals the reference implementation's
//! `utility_score = (helped + 2) / (injected + 4)` if every injection that did not help counts
//! against the rule.
//!
//! Receipts of a rule that acts at calls: what agents did after they were told it.
//!
//! Outcome of an error with known hints: a line of `hints.jsonl`.

use serde::{Deserialize, Serialize};

/// Counts of uses and their outcomes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Evidence {
    /// Number of times shown to a model or an agent.
    pub shown: u64,
    /// Number of outcomes in favour.
    pub helped: u64,
    /// Number of outcomes against.
    pub harmed: u64,
}

impl Evidence {
    /// Returns the mean of the posterior, from 0 to 1. A showing without an outcome does not count.
    #[expect(clippy::cast_precision_loss, reason = "counts of uses stay far below 2^52")]
    pub fn posterior(self) -> f64 {
        (self.helped as f64 + 2.0) / ((self.helped + self.harmed) as f64 + 4.0)
    }
}

/// Number of sessions: each counts at most once for each of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct Receipts {
    /// An agent was told the rule at a call.
    pub told: u64,
    /// After it was told, no call broke the rule any more.
    pub heeded: u64,
    /// After it was told, another call broke the rule.
    pub recurred: u64,
    /// The person was asked about such a call, and it ran all the same.
    pub overridden: u64,
}

impl Receipts {
    /// Minimum number of sessions before a rule counts as ignored.
    const OFTEN: u64 = 3;

    /// Returns `true` if agents break the rule in more than half of the sessions that they are told
    /// it in.
    pub fn is_ignored(self) -> bool {
        self.told >= Self::OFTEN && self.recurred * 2 > self.told
    }

    /// Returns the counts in words; empty if it was never told.
    pub fn words(self) -> String {
        if self.told == 0 {
            return String::new();
        }
        let mut words = format!("told in {}, heeded in {}", self.told, self.heeded);
        for (count, name) in [(self.recurred, "recurred"), (self.overridden, "overridden")] {
            if count > 0 {
                words.extend([", ", name, " in ", &count.to_string()]);
            }
        }
        words
    }
}

/// One error of one session, from the failing call with available hints until recovery, abandonment
/// or the end of the session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trial {
    /// Time of the failing call: RFC 3339, UTC.
    pub at: String,
    /// Id of the session.
    pub session: String,
    /// Key of the error.
    pub error_key: String,
    /// Ids of the lessons that were shown.
    pub hints: Vec<String>,
    /// Number of times the same error recurred.
    pub repeats: u64,
    /// Number of calls after the failing one, including the one that succeeded.
    pub steps: u64,
    /// `true` if a call with the same goal succeeded.
    pub overcome: bool,
    /// `true` if it succeeded in a way that a hint had shown.
    pub helped: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_move_the_posterior_and_mere_showing_does_not() {
        let posterior = |shown, helped, harmed| {
            Evidence {
                shown,
                helped,
                harmed,
            }
            .posterior()
        };
        assert!((posterior(0, 0, 0) - 0.5).abs() < 1e-9);
        assert!((posterior(50, 0, 0) - 0.5).abs() < 1e-9);
        assert!(posterior(5, 5, 0) > 0.7);
        assert!(posterior(5, 0, 5) < 0.3);
    }
}

#[cfg(test)]
mod tests_of_receipts {
    use super::*;

    #[test]
    fn a_rule_that_most_sessions_break_again_is_ignored() {
        let check = |told, recurred, expected| {
            let receipts = Receipts {
                told,
                recurred,
                ..Receipts::default()
            };
            assert_eq!(receipts.is_ignored(), expected, "{receipts:?}");
        };
        check(0, 0, false);
        check(2, 2, false);
        check(3, 2, true);
        check(4, 2, false);
    }
}
