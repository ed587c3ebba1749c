//! The session of a host, which becomes a record when it has ended.
//!
//! While it goes on, its hooks keep notes and nothing else: no agent waits for a record. What is known at
//! the end stands in `session_data`: the host's name of the session, which the log knows it by, the
//! calls, the failures, the hints, what was learnt, and the pitfalls that were met. A session that a host
//! takes up again and ends again stays one record.

use chrono::DateTime;
use serde::Deserialize;
use serde_json::json;

use crate::guard;
use crate::learn::pitfall::Pitfall;
use crate::learn::session_notes::{Outcome, SessionNotes};
use crate::model::{ActionType, ExecutionLog, Kind, Session, SessionState};
use crate::store::{Error as StoreError, Selection};

use super::super::learn::raw;
use super::super::{Engine, Error, stamp};
use super::{change, data};

/// What was read of a session that has ended.
#[derive(Debug)]
pub(in crate::engine) struct HostSession<'a> {
    /// What the log knows it by: the host and its name of the session, as in `codex/3f2a…`.
    pub(in crate::engine) name: &'a str,
    /// How many calls of tools it made, and how many of them failed.
    pub(in crate::engine) steps: usize,
    /// See `steps`.
    pub(in crate::engine) failures: usize,
    /// When its first and its last call were made, in microseconds since 1970.
    pub(in crate::engine) began: Option<i64>,
    /// See `began`.
    pub(in crate::engine) ended: Option<i64>,
    /// What was learnt from it, or seen again in it.
    pub(in crate::engine) learned: Vec<String>,
}

/// The part of the data that grows when a session is taken up again.
#[derive(Debug, Default, Deserialize)]
struct Before {
    #[serde(default)]
    learned: Vec<String>,
    #[serde(default)]
    pitfalls: Vec<Pitfall>,
}

impl Engine {
    /// Records a session of a host that has ended. One in which nothing was done leaves no record.
    pub(in crate::engine) fn record_host_session(
        &self,
        host: HostSession<'_>,
    ) -> Result<(), Error> {
        let notes = SessionNotes::read(&self.store.read_notes(host.name));
        if host.steps == 0 && notes.shown.is_empty() && notes.pitfalls.is_empty() {
            return Ok(());
        }
        let name = guard::redact(host.name).text.into_owned();
        let at = |micros: Option<i64>| {
            let at = micros.and_then(DateTime::from_timestamp_micros);
            stamp(at.unwrap_or(self.now))
        };
        let mut writer = self.writer()?;
        let known = named(writer.store(), &name)?;
        let Before {
            mut learned,
            mut pitfalls,
        } = known
            .as_ref()
            .and_then(|session| serde_json::from_str(session.session_data.get()).ok())
            .unwrap_or_default();
        learned.extend(host.learned);
        learned.sort_unstable();
        learned.dedup();
        for pitfall in notes.pitfalls {
            if !pitfalls.contains(&pitfall) {
                pitfalls.push(pitfall);
            }
        }
        let helped = notes
            .shown
            .iter()
            .filter(|s| s.outcome == Some(Outcome::Helped));
        let found = raw(&json!({
            "host": name.split('/').next(),
            "native_id": name,
            "steps": host.steps,
            "failures": host.failures,
            "hints_shown": notes.shown.len(),
            "hints_helped": helped.count(),
            "learned": learned,
            "pitfalls": pitfalls,
        }))?;
        let now = self.timestamp();
        let id = if let Some(session) = known {
            let changes = [
                (
                    "session_data",
                    change::merged(&session.session_data, found)?,
                ),
                ("completed_at", raw(&at(host.ended))?),
                ("updated_at", raw(&now)?),
            ];
            writer.update(Kind::Session, &session.session_id, &changes)?;
            session.session_id
        } else {
            let session = Session {
                session_id: String::new(),
                user_id: None,
                status: SessionState::Completed,
                current_step: None,
                progress_percentage: Some(100.0),
                total_steps: None,
                completed_steps: Vec::new(),
                error_message: None,
                session_data: found,
                started_at: at(host.began),
                completed_at: Some(at(host.ended)),
                created_at: now.clone(),
                updated_at: now,
            };
            writer.append(session, self.now)?.session_id
        };
        let scribe = self.scribe(Some(&name));
        writer.note_execution_logs(vec![ExecutionLog {
            output_data: data(&json!({ "session": id })),
            ..scribe.line("session_end", ActionType::MemoryWrite)
        }])?;
        Ok(())
    }
}

/// The record of the session that a host calls so.
fn named(store: &crate::store::Scoped, name: &str) -> Result<Option<Session>, StoreError> {
    let mut found = None;
    store.each_entry(Kind::Session, &Selection::default(), &mut |entry| {
        // Most entries do not even hold the name.
        if memchr::memmem::find(&entry.text, name.as_bytes()).is_some()
            && let Ok(session) = entry.parse::<Session>()
            && session.native_id().as_deref() == Some(name)
        {
            found = Some(session);
        }
    })?;
    Ok(found)
}
