//! Lists sessions, and shows one with its log.

use chrono::{DateTime, Duration};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::{ExecutionLog, Kind, Session, SessionState};
use crate::store::workspace::records::locate_as;
use crate::store::workspace::{Error, Workspace, stamp};
use crate::store::{Error as StoreError, LogSelection, Selection};

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
    let entry = workspace.store.find(Kind::Session, &id)?;
    let entry = entry.ok_or_else(|| StoreError::NotFound {
        kind: Some(Kind::Session),
        id: id.clone(),
        similar: Vec::new(),
    })?;
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
