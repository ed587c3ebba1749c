//! Message of a person to an agent that a rule was heard in.

use serde::{Deserialize, Serialize};

use super::lenient;

/// Message that a rule was heard in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Said {
    /// Words of the person, redacted.
    #[serde(deserialize_with = "lenient::text")]
    pub quote: String,
    /// The agent host's session id, or the file name of a session without one.
    #[serde(deserialize_with = "lenient::text")]
    pub session: String,
    /// Project: name of the working directory that the session began in. The rule is told only
    /// there; empty means everywhere.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "String::is_empty")]
    pub workspace: String,
    /// Ordinal of the message among those of the person in the session, from 1; 0 until the session
    /// file is read.
    pub turn: u64,
    /// Last call of the agent before the message, shortened; empty if there was none.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "String::is_empty")]
    pub after: String,
}
