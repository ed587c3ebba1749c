//! Why a session did not do what was asked of it.

use crate::model::SessionState;

/// Why a session did not do what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The state may not follow the one that the session is in.
    #[error(
        "session `{id}` cannot go from `{from}` to `{to}`; it may become {}",
        list(allowed)
    )]
    Move {
        /// The session.
        id: String,
        /// The state that it is in.
        from: SessionState,
        /// The state that was asked for.
        to: SessionState,
        /// The states that it may go to.
        allowed: Vec<SessionState>,
    },
    /// The session has ended, and stays as it is.
    #[error("session `{id}` has ended with `{status}`, and stays as it is")]
    Ended {
        /// The session.
        id: String,
        /// How it ended.
        status: SessionState,
    },
    /// A value that does not fit its field.
    #[error("`{field}` cannot be `{}`: it must be {allowed}", value.escape_debug())]
    Value {
        /// The field.
        field: &'static str,
        /// What was given.
        value: String,
        /// What it takes.
        allowed: String,
    },
    /// A field without which the change makes no sense.
    #[error("`{field}` is missing: it must say {wanted}")]
    Missing {
        /// The field.
        field: &'static str,
        /// What it is for.
        wanted: &'static str,
    },
}

impl SessionError {
    pub(super) fn value(field: &'static str, value: &str, allowed: impl Into<String>) -> Self {
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
