//! Outcome of an error with known hints: a line of `hints.jsonl`.

use serde::{Deserialize, Serialize};

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
