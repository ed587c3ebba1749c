//! Agent sessions: start, changes, end, and the log of their actions.
//!
//! - Here: lists sessions, and shows one with its log.
//! - `change`: starts and changes a session. Only single fields are set, so that the rest of an entry
//!   keeps every byte.
//! - `action`: lines of the execution log, from agents and from the operations of this program.
//!
//! Out of scope: steps derived from states. Agents name their steps freely.

mod action;
pub(crate) mod change;

use chrono::{DateTime, Duration};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::{ExecutionLog, Kind, Session, SessionState};
use crate::store::workspace::records::{entry, locate_as};
use crate::store::workspace::{Error, Workspace, stamp};
use crate::store::{Error as StoreError, LogSelection, Scoped, Selection};

pub use action::{ActionReport, NewAction, log_action};
pub use change::{NewSession, SessionChange, change, start};

/// Session after a change.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ChangedSession {
    /// Fields of the session.
    #[serde(flatten)]
    pub session: Session,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Time before the start of a session in which its log lines are still searched, because clocks and
/// time zones of other programs differ.
const SLACK: Duration = Duration::hours(26);

/// Newest sessions, newest first.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct SessionsReport {
    /// Number of sessions in the requested state.
    pub total: u64,
    /// Newest of these sessions.
    pub sessions: Vec<Session>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Session with its log.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct SessionReport {
    /// Entry as stored.
    #[serde(rename = "session")]
    pub record: Box<RawValue>,
    /// Parsed entry.
    #[serde(skip)]
    pub session: Session,
    /// Newest log lines of the session, oldest first.
    pub logs: Vec<ExecutionLog>,
    /// `true` if there are older log lines.
    pub has_older_logs: bool,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Returns the newest sessions, of one state if given.
pub fn list(
    workspace: &Workspace,
    status: Option<&SessionState>,
    limit: usize,
) -> Result<SessionsReport, Error> {
    let selection = Selection {
        skill: None,
        newest: status.is_none().then_some(limit),
    };
    let listing = workspace.store.list::<Session>(&selection)?;
    let mut sessions = listing.records;
    let total = match status {
        None => workspace.store.count(Kind::Session)?,
        Some(status) => {
            sessions.retain(|session| session.status == *status);
            sessions.len() as u64
        }
    };
    sessions.reverse();
    sessions.truncate(limit);
    let read = sessions.iter().map(|session| {
        let touched = (session.session_id.as_str(), session.user_id.as_deref());
        (Kind::Session, touched)
    });
    let unnoted = workspace.note_read(read);
    let warnings = listing.problems.iter().map(ToString::to_string);
    Ok(SessionsReport {
        total,
        warnings: warnings.chain(unnoted).collect(),
        sessions,
    })
}

/// Returns a session with its newest log lines.
pub fn show(workspace: &Workspace, id: &str, logs: usize) -> Result<SessionReport, Error> {
    let id = locate_as(&workspace.store, Kind::Session, id)?;
    let session: Session = workspace.store.get(&id)?;
    let entry = entry(&workspace.store, Kind::Session, &id)?;
    let record = serde_json::from_slice(&entry.text).map_err(StoreError::from)?;
    // For a host session, the start is a time of the host, and the creation is ours.
    let times = [&session.started_at, &session.created_at];
    let times = times
        .into_iter()
        .filter_map(|at| DateTime::parse_from_rfc3339(at).ok());
    let began = times.min().map(|at| at.to_utc());
    let since = began.and_then(|at| at.checked_sub_signed(SLACK));
    let listing = workspace.store.execution_logs(LogSelection {
        sessions: &session.names(),
        since: &since.map(stamp).unwrap_or_default(),
        newest: logs,
    })?;
    let unnoted = workspace.note_read([(Kind::Session, (id.as_str(), entry.user_id().as_deref()))]);
    Ok(SessionReport {
        record,
        session,
        logs: listing.lines,
        has_older_logs: listing.has_older,
        warnings: unnoted.into_iter().collect(),
    })
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
