//! Audit events, and the call that they are about.

use serde::{Deserialize, Serialize};

/// One call of a verb, on behalf of one caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditContext {
    /// Id of the user, or the caller's name in the operating system. Empty if unknown.
    pub who: String,
    /// Reason: the command, as `correct hr/resume-screen`.
    pub why: String,
    /// Time of the call: RFC 3339, UTC.
    pub at: String,
    /// Id of the change that groups its writes. Writes with an empty id are not journaled and
    /// cannot be reverted.
    pub change: String,
}

impl AuditContext {
    /// Derives the id of a change from random text: 12 hexadecimal digits.
    pub fn change_name(random: &str) -> String {
        random
            .chars()
            .filter(char::is_ascii_hexdigit)
            .take(12)
            .collect::<String>()
            .to_ascii_lowercase()
    }
}

/// Action of an audit event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuditAction {
    /// Records were shown, or used in an answer.
    Read,
    /// Records were added.
    Added,
    /// Records were changed.
    Edited,
    /// Records were removed.
    Removed,
    /// Records left the workspace as a file or over the network.
    Exported,
    /// All records were removed.
    Purged,
    /// The log did not continue from its anchor when the next line was written.
    Broken,
}

/// One audit event: a line of the log, without its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Line {
    /// Sequence number, from 1.
    pub seq: u64,
    /// Time: RFC 3339, UTC.
    pub at: String,
    /// Caller; empty if unknown.
    pub who: String,
    /// Action.
    pub did: AuditAction,
    /// Ids of the records.
    pub records: Vec<String>,
    /// Ids of the users that own the records, other than the caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
    /// Reason: the command.
    pub why: String,
}

impl Line {
    /// Returns `true` if the caller accessed another user's records.
    pub fn is_foreign(&self) -> bool {
        !self.of.is_empty()
    }
}

/// An affected record: its id, and the id of its user.
pub type Touched<'a> = (&'a str, Option<&'a str>);
