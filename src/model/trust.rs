//! Trust in records, and the labels of those that no user has stated.

use serde::{Deserialize, Serialize};

/// `source` of records that an agent relayed.
pub const AGENT: &str = "agent";

/// `source` of rules that were heard in the messages of a person to an agent.
pub const CHAT: &str = "chat";

/// `status` of a rule that awaits a user's approval.
pub const CANDIDATE: &str = "candidate";

/// Value of a `trust` field: nobody has approved the record.
pub const OBSERVED: &str = "observed";

/// Trust in a record, which decides where a prompt may show it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Taken from tool output, the web or a foreign repository; shown only as data.
    Observed,
    /// Observed, then approved by a user.
    Approved,
    /// Stated by a user.
    User,
}

impl Trust {
    /// Returns the name used in JSON documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Approved => "approved",
            Self::User => "user",
        }
    }
}

/// Returns the label shown before a record, so that no reader takes an agent's text for a user's;
/// `None` for all other records.
pub fn mark(status: Option<&str>, source: Option<&str>) -> Option<&'static str> {
    match (status == Some(CANDIDATE), source) {
        (true, Some(AGENT)) => Some("candidate [agent]"),
        (true, Some(CHAT)) => Some("candidate [chat]"),
        (true, _) => Some("candidate"),
        (false, Some(AGENT)) => Some("[agent]"),
        (false, _) => None,
    }
}
