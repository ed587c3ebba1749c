//! Sessions of agents: begun, moved on, ended, and what was done in them.
//!
//! - `start`, `change`: a session begins, and goes its way. Only fields are set, so that whatever else
//!   stands in an entry keeps every byte.
//! - `action`: a line of the log of what agents did; what the verbs of this program note of themselves.
//! - `view`: sessions, and one with its log.
//! - `of_host`: the session of a host, which becomes a record when it has ended.
//!
//! Deliberately absent: steps that follow from states. What an agent calls its steps is its own affair.

mod action;
mod change;
mod error;
mod of_host;
mod start;
mod view;

use serde::Serialize;

use crate::model::{Kind, Session};

use super::{Engine, Error};

pub use action::{ActionReport, NewAction};
pub(super) use action::{Scribe, data};
pub use change::SessionChange;
pub use error::SessionError;
pub(super) use of_host::HostSession;
pub use start::NewSession;
pub use view::{SessionReport, SessionsReport};

/// A session as it is now.
#[derive(Debug, Serialize)]
pub struct ChangedSession {
    /// Its fields.
    #[serde(flatten)]
    pub session: Session,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

impl Engine {
    /// The session that a person means by an id, the beginning of one, or `latest`.
    pub fn find_session(&self, id: &str) -> Result<Session, Error> {
        let id = self.locate_as(Kind::Session, id)?;
        Ok(self.store.get(&id)?)
    }
}

/// The value, which must say something.
fn said<'a>(field: &'static str, value: &'a str) -> Result<&'a str, SessionError> {
    if value.trim().is_empty() {
        return Err(SessionError::value(
            field,
            value,
            "a text that is not blank",
        ));
    }
    Ok(value)
}
