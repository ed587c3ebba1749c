//! Agent sessions: start, changes, end, and the log of their actions.
//!
//! - `start`, `change`: starts and changes a session. Only single fields are set, so that the rest
//!   of an entry keeps every byte.
//! - `action`: lines of the execution log, from agents and from the operations of this program.
//! - `view`: lists sessions, and shows one with its log.
//! - `of_host`: records the session of an agent host when it ends.
//!
//! Out of scope: steps derived from states. Agents name their steps freely.

mod action;
pub(crate) mod change;
mod view;

use serde::Serialize;

use crate::model::{Kind, Session};
use crate::store::Scoped;
use crate::store::workspace::Error;
use crate::store::workspace::records::locate_as;

pub use action::{ActionReport, NewAction, log_action};
pub use change::{NewSession, SessionChange, change, start};
pub use view::{SessionReport, SessionsReport, list, show};

/// Session after a change.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ChangedSession {
    /// Fields of the session.
    #[serde(flatten)]
    pub session: Session,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Returns the session for an id, an id prefix, or `latest`.
pub fn find(store: &Scoped, id: &str) -> Result<Session, Error> {
    let id = locate_as(store, Kind::Session, id)?;
    Ok(store.get(&id)?)
}

/// Returns the value; fails if it is blank.
fn said<'a>(field: &'static str, value: &'a str) -> Result<&'a str, Error> {
    if value.trim().is_empty() {
        return Err(unfit(field, value, "a text that is not blank"));
    }
    Ok(value)
}

/// Error of a field that cannot have this value.
fn unfit(field: &str, value: &str, allowed: &str) -> Error {
    let command = match field {
        "confidence_score" | "step_name" => "log",
        _ => "progress",
    };
    let value = value.escape_debug();
    Error::input(
        format!("`{field}` cannot be `{value}`: it must be {allowed}"),
        format!("memctl session {command} --help"),
    )
}
