//! Records the session of an agent host when it ends.
//!
//! During the session the hooks only write a scratch file, so that no agent waits for a record. At
//! the end, `session_data` holds the host's name of the session, which the execution log uses too.
//! It also holds the calls, failures, hints, learned ids and pitfalls. A session that is resumed
//! and ends again stays one record.

use chrono::DateTime;
use serde_json::{Value, from_value, json};

use crate::lessons::telling::hint::{HintOutcome, Pitfall};
use crate::lessons::telling::scratch::LessonScratch;
use crate::model::{ActionType, ExecutionLog, Kind, Session, SessionState};
use crate::notes::sessions;
use crate::store::Selection;
use crate::store::workspace::{Error, Records, Scribe, data, raw, stamp};
use memctl_sessions::Step;

use super::session_files::microseconds;

/// Summary of a host session that ended.
#[derive(Debug)]
pub(super) struct HostSession<'a> {
    /// Name in the execution log: the host and its session id, as in `codex/3f2a…`.
    pub(super) name: &'a str,
    /// Calls of the session.
    pub(super) steps: &'a [Step],
    /// Number of tool calls that failed.
    pub(super) failures: usize,
    /// Number of rules that it was told at calls.
    pub(super) rules_at_calls: usize,
    /// Number of these rules that no later call has broken.
    pub(super) rules_heeded: usize,
    /// Ids of records that were learned from it, or seen again in it.
    pub(super) learned: Vec<String>,
}

/// Records a session of a host that has ended. One in which nothing was done leaves no record.
pub(super) fn record_host_session(
    records: &Records<'_>,
    host: HostSession<'_>,
) -> Result<(), Error> {
    let scratch: LessonScratch = records.store.scratch_of(host.name);
    if host.steps.is_empty() && scratch.shown.is_empty() && scratch.pitfalls.is_empty() {
        return Ok(());
    }
    let name = memctl_redact::redact(host.name).text.into_owned();
    let times = host.steps.iter();
    let times = times.filter_map(|step| microseconds(step.time.as_deref()?));
    let at = |micros: Option<i64>| {
        let at = micros.and_then(DateTime::from_timestamp_micros);
        stamp(at.unwrap_or(records.now))
    };
    let (began, ended) = (at(times.clone().next()), at(times.max()));
    // A host that does not say has none.
    let tokens = host.steps.iter().filter_map(|step| step.tokens);
    let mut writer = records.writer()?;
    let existing = named(writer.store(), &name)?;
    // These lists grow when a session is resumed.
    let before = existing.as_ref().map(|session| session.session_data.get());
    let before: Value = before
        .and_then(|data| serde_json::from_str(data).ok())
        .unwrap_or_default();
    let mut learned: Vec<String> = from_value(before["learned"].clone()).unwrap_or_default();
    let mut pitfalls: Vec<Pitfall> = from_value(before["pitfalls"].clone()).unwrap_or_default();
    learned.extend(host.learned);
    learned.sort_unstable();
    learned.dedup();
    let mut new = scratch.pitfalls;
    new.retain(|one| !pitfalls.contains(one));
    pitfalls.extend(new);
    let helped = scratch.shown.iter();
    let helped = helped.filter(|shown| shown.outcome == Some(HintOutcome::Helped));
    let found = raw(&json!({
        "host": name.split('/').next(),
        "native_id": name,
        "steps": host.steps.len(),
        "failures": host.failures,
        "hints_shown": scratch.shown.len(),
        "hints_helped": helped.count(),
        "rules_at_calls": host.rules_at_calls,
        "rules_heeded": host.rules_heeded,
        "tokens": tokens.reduce(u64::saturating_add),
        "learned": learned,
        "pitfalls": pitfalls,
    }))?;
    let now = records.timestamp();
    let id = if let Some(session) = existing {
        let changes = [
            (
                "session_data",
                sessions::merged(&session.session_data, found)?,
            ),
            ("completed_at", raw(&ended)?),
            ("updated_at", raw(&now)?),
        ];
        writer.update(Kind::Session, &session.session_id, &changes)?;
        session.session_id
    } else {
        let session = Session {
            status: SessionState::Completed,
            progress_percentage: Some(100.0),
            session_data: found,
            started_at: began,
            completed_at: Some(ended),
            created_at: now.clone(),
            updated_at: now,
            ..Session::default()
        };
        writer.append(session, records.now)?.session_id
    };
    let scribe = Scribe::new(records.now, records.random, Some(&name));
    writer.note_execution_logs(vec![ExecutionLog {
        output_data: data(&json!({ "session": id })),
        ..scribe.line("session_end", ActionType::MemoryWrite)
    }])?;
    Ok(())
}

/// Returns the record of the session with this host name.
fn named(store: &crate::store::Scoped, name: &str) -> Result<Option<Session>, Error> {
    let mut found = None;
    store.each_entry(Kind::Session, &Selection::default(), &mut |entry| {
        // Most entries do not contain the name and need no parsing.
        if memchr::memmem::find(&entry.text, name.as_bytes()).is_some()
            && let Ok(session) = entry.parse::<Session>()
            && session.native_id().as_deref() == Some(name)
        {
            found = Some(session);
        }
    })?;
    Ok(found)
}
