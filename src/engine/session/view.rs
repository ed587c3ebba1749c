//! Sessions, and one of them with what was done in it.

use chrono::{DateTime, Duration};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::{ExecutionLog, Kind, Session, SessionState};
use crate::store::{Error as StoreError, LogSelection, Selection};

use super::super::{Engine, Error, stamp};

/// Clocks differ, and other programs write times of other zones: so much before its beginning the log
/// is still looked at for a session.
const SLACK: Duration = Duration::hours(26);

/// Sessions, newest first.
#[derive(Debug, Serialize)]
pub struct SessionsReport {
    /// How many there are, of the state that was asked for.
    pub total: u64,
    /// The newest of them.
    pub sessions: Vec<Session>,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

/// One session.
#[derive(Debug, Serialize)]
pub struct SessionReport {
    /// The entry of its file, untouched.
    #[serde(rename = "session")]
    pub record: Box<RawValue>,
    /// The same as it is understood.
    #[serde(skip)]
    pub session: Session,
    /// The newest actions in it, oldest first.
    pub logs: Vec<ExecutionLog>,
    /// Whether there are older ones.
    pub has_older_logs: bool,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

impl Engine {
    /// The newest sessions, of one state where one is given.
    pub fn sessions(
        &self,
        status: Option<&SessionState>,
        limit: usize,
    ) -> Result<SessionsReport, Error> {
        let selection = Selection {
            skill: None,
            newest: status.is_none().then_some(limit),
        };
        let listing = self.store.list::<Session>(&selection)?;
        let mut sessions = listing.records;
        let total = match status {
            None => self.store.count(Kind::Session)?,
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
        let unnoted = self.note_read(read);
        let warnings = listing.problems.iter().map(ToString::to_string);
        Ok(SessionsReport {
            total,
            warnings: warnings.chain(unnoted).collect(),
            sessions,
        })
    }

    /// One session and the newest actions in it.
    pub fn session(&self, id: &str, logs: usize) -> Result<SessionReport, Error> {
        let id = self.locate_as(Kind::Session, id)?;
        let session: Session = self.store.get(&id)?;
        let entry = self.store.find(Kind::Session, &id)?;
        let entry = entry.ok_or_else(|| StoreError::NotFound {
            kind: Some(Kind::Session),
            id: id.clone(),
            similar: Vec::new(),
        })?;
        let record = serde_json::from_slice(&entry.text).map_err(StoreError::from)?;
        // Of a host's session the one is its time, the other ours.
        let times = [&session.started_at, &session.created_at];
        let times = times
            .into_iter()
            .filter_map(|at| DateTime::parse_from_rfc3339(at).ok());
        let began = times.min().map(|at| at.to_utc());
        let since = began.and_then(|at| at.checked_sub_signed(SLACK));
        let listing = self.store.execution_logs(LogSelection {
            sessions: &session.names(),
            since: &since.map(stamp).unwrap_or_default(),
            newest: logs,
        })?;
        let unnoted = self.note_read([(Kind::Session, (id.as_str(), entry.user_id().as_deref()))]);
        Ok(SessionReport {
            record,
            session,
            logs: listing.lines,
            has_older_logs: listing.has_older,
            warnings: unnoted.into_iter().collect(),
        })
    }
}
