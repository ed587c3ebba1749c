//! Errors of session operations.

use crate::model::SessionState;

/// Error of a session operation.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// State transition that is not allowed.
    #[error("session `{id}` cannot go from `{from}` to `{to}`; it may become {}", list(allowed))]
    Move {
        /// Id of the session.
        id: String,
        /// Current state.
        from: SessionState,
        /// Requested state.
        to: SessionState,
        /// States that may follow.
        allowed: Vec<SessionState>,
    },
    /// Change of a session that has ended.
    #[error("session `{id}` has ended with `{status}` and cannot change")]
    Ended {
        /// Id of the session.
        id: String,
        /// Final state.
        status: SessionState,
    },
    /// Value that its field does not accept.
    #[error("`{field}` cannot be `{}`: it must be {allowed}", value.escape_debug())]
    Value {
        /// Name of the field.
        field: &'static str,
        /// Given value.
        value: String,
        /// Accepted values, in words.
        allowed: String,
    },
    /// Missing field that the change requires.
    #[error("`{field}` is missing: it must say {wanted}")]
    Missing {
        /// Name of the field.
        field: &'static str,
        /// Expected content, in words.
        wanted: &'static str,
    },
}

impl SessionError {
    pub(crate) fn value(field: &'static str, value: &str, allowed: impl Into<String>) -> Self {
        Self::Value {
            field,
            value: value.to_owned(),
            allowed: allowed.into(),
        }
    }
}

fn list(states: &[SessionState]) -> String {
    let names: Vec<String> = states.iter().map(|state| format!("`{state}`")).collect();
    names.join(", ")
}
