//! Checks that fired in a session, and the counts that they add to their rules.

use serde::{Deserialize, Serialize};

/// Rule that acted in a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Fired {
    /// Id of the rule.
    pub rule: String,
    /// Hash of a matching call that would be an override; 0 if none is awaited.
    pub awaited: u64,
    /// `true` if a matching call ran all the same.
    pub overridden: bool,
    /// `true` if such a call succeeded.
    pub needless: bool,
    /// `true` if the action log has the firing.
    pub logged: bool,
}

/// Addition to the counts of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CheckCredit {
    /// Id of the rule.
    pub id: String,
    /// The check fired for the first time in the session.
    pub fired: bool,
    /// A matching call ran all the same, for the first time.
    pub overridden: bool,
    /// Such a call succeeded, for the first time.
    pub needless: bool,
}
