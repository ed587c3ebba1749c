//! What came of an error that memory knew something about: a line of `hints.jsonl`.

use serde::{Deserialize, Serialize};

/// One error of one session, from the failing call that memory had hints for until it was overcome,
/// given up, or the session ended. Whether they were shown or withheld by the experiment, the same
/// is written down.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trial {
    /// When the call failed: RFC 3339, UTC.
    pub at: String,
    /// The session.
    pub session: String,
    /// The key of the error.
    pub error_key: String,
    /// The fixes that were shown, or would have been.
    pub hints: Vec<String>,
    /// Whether they were withheld.
    pub withheld: bool,
    /// The share of errors at which hints were withheld then, from 0 to 1; 0 outside an experiment.
    pub share: f64,
    /// How often the same error came again.
    pub repeats: u64,
    /// How many calls were made after the failing one, the one that succeeded included.
    pub steps: u64,
    /// Whether a call with the goal of the failing one succeeded.
    pub overcome: bool,
    /// Whether it did by a way that had been shown.
    pub helped: bool,
}
