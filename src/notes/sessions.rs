//! Agent sessions: start, changes, end, and the log of their actions.
//!
//! A change is checked as a whole before any write, and only single fields are set, so that the rest of an
//! entry keeps every byte. A line of the log from an agent is on disk when the operation returns.
//!
//! Out of scope: an order of states, and steps derived from states. Agents work in their own order and name
//! their steps freely.

use std::collections::HashMap;

use chrono::{DateTime, Duration};
use memctl_files::json::with_fields;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::{ActionType, ExecutionLog, Kind, LogStatus, Session, SessionState};
use crate::store::workspace::{Error, Scribe, Workspace, entry, raw, stamp, warnings_of};
use crate::store::{LogSelection, Scoped, Selection};

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
    let id = workspace.store.resolve(Kind::Session, id, None)?;
    let session: Session = workspace.store.get(&id)?;
    let entry = entry(&workspace.store, Kind::Session, &id)?;
    let record = serde_json::from_slice(&entry.text)?;
    // For a host session, the start is a time of the host, and the creation is ours.
    let times = [&session.started_at, &session.created_at];
    let times = times
        .into_iter()
        .filter_map(|at| DateTime::parse_from_rfc3339(at).ok());
    let began = times.min().map(|at| at.to_utc());
    let since = began.and_then(|at| at.checked_sub_signed(SLACK));
    let listing = workspace.store.execution_logs(LogSelection {
        sessions: Some(&session.names()),
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
    let id = store.resolve(Kind::Session, id, None)?;
    store.get(&id)
}

/// Returns the value; fails if it is blank.
fn redacted_text<'a>(field: &'static str, value: &'a str) -> Result<&'a str, Error> {
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

/// Change of a session; a field that is `None` stays as it is.
#[derive(Debug, Default)]
pub struct SessionChange {
    /// New state.
    pub status: Option<SessionState>,
    /// New current step.
    pub step: Option<String>,
    /// Progress in percent, from 0 to 100.
    pub percent: Option<i64>,
    /// Steps that are completed now; a repeated step counts once.
    pub completed: Vec<String>,
    /// Fields to set in the session data; its other fields stay.
    pub data: Option<Box<RawValue>>,
    /// Error message; required for the state `error`, refused for any other.
    pub error: Option<String>,
}

impl SessionChange {
    /// Returns `true` if nothing is to change.
    pub fn is_empty(&self) -> bool {
        self.completed.is_empty()
            && self.status.is_none()
            && self.step.is_none()
            && self.percent.is_none()
            && self.data.is_none()
            && self.error.is_none()
    }
}

/// Fields of an entry to set, with their values.
type Fields = Vec<(&'static str, Box<RawValue>)>;

/// Changes a session; fails if it has ended.
pub fn change(
    workspace: &Workspace,
    id: &str,
    change: SessionChange,
) -> Result<ChangedSession, Error> {
    let id = workspace.store.resolve(Kind::Session, id, None)?;
    let mut writer = workspace.writer()?;
    let session: Session = writer.store().get(&id)?;
    let now = workspace.timestamp();
    let (mut fields, mut warnings) = changes(&session, change, &now)?;
    if fields.is_empty() {
        return Ok(ChangedSession { session, warnings });
    }
    set(&mut fields, "updated_at", &now)?;
    let entry = writer.update(Kind::Session, &id, &fields)?;
    warnings.extend(warnings_of(&mut writer));
    let session = entry.parse()?;
    Ok(ChangedSession { session, warnings })
}

/// Returns the fields that a change sets, and warnings.
fn changes(
    session: &Session,
    change: SessionChange,
    now: &str,
) -> Result<(Fields, Vec<String>), Error> {
    let mut fields = Fields::new();
    let mut warnings = Vec::new();
    if session.status.is_final() {
        let Session {
            session_id, status, ..
        } = session;
        return Err(Error::input(
            format!("session `{session_id}` has ended with `{status}` and cannot change"),
            "memctl session start",
        ));
    }
    let status = change.status.unwrap_or_else(|| session.status.clone());
    if status != session.status {
        if !status.is_known() {
            let allowed = format!("one of {}", SessionState::NAMES.join(", "));
            return Err(unfit("status", status.as_str(), &allowed));
        }
        set(&mut fields, "status", &status)?;
    }
    if let Some(step) = &change.step
        && session.current_step.as_ref() != Some(step)
    {
        set(
            &mut fields,
            "current_step",
            &redacted_text("current_step", step)?,
        )?;
    }
    let mut completed = session.completed_steps.clone();
    for step in &change.completed {
        if !completed.iter().any(|done| done == step) {
            completed.push(redacted_text("completed_steps", step)?.to_owned());
        }
    }
    if completed != session.completed_steps {
        set(&mut fields, "completed_steps", &completed)?;
        if let Some(total) = session.total_steps.filter(|n| *n < completed.len() as u64) {
            let done = completed.len();
            warnings.push(format!("{done} steps are done, of {total} in all"));
        }
    }
    if let Some(percent) = progress(session, &status, change.percent, completed.len())? {
        set(&mut fields, "progress_percentage", &percent)?;
    }
    if status == SessionState::Completed {
        set(&mut fields, "completed_at", &now)?;
    }
    match (&change.error, status == SessionState::Error) {
        (Some(error), true) => set(
            &mut fields,
            "error_message",
            &redacted_text("error_message", error)?,
        )?,
        (None, false) => {}
        (None, true) => {
            return Err(Error::input(
                "`error_message` is missing: it must say what went wrong",
                "add `--error \"…\"`",
            ));
        }
        (Some(error), false) => {
            let allowed = "left out unless the status is `error`";
            return Err(unfit("error_message", error, allowed));
        }
    }
    if let Some(data) = change.data {
        let merged = merged(&session.session_data, object(Some(data))?)?;
        if merged.get() != session.session_data.get() {
            fields.push(("session_data", merged));
        }
    }
    Ok((fields, warnings))
}

/// Returns the new progress; `None` if it stays. The number of completed steps implies it, if it is not
/// given.
fn progress(
    session: &Session,
    status: &SessionState,
    given: Option<i64>,
    completed: usize,
) -> Result<Option<u64>, Error> {
    const FIELD: &str = "progress_percentage";
    let given = match given.map(u64::try_from) {
        None => None,
        Some(Ok(percent @ 0..=100)) => Some(percent),
        Some(_) => {
            let value = given.unwrap_or_default().to_string();
            return Err(unfit(FIELD, &value, "a whole number from 0 to 100"));
        }
    };
    if *status == SessionState::Completed {
        return match given {
            None | Some(100) => Ok(Some(100)),
            Some(other) => {
                let allowed = "100 where the status is `completed`";
                Err(unfit(FIELD, &other.to_string(), allowed))
            }
        };
    }
    let more = completed > session.completed_steps.len();
    let total = session.total_steps.filter(|total| *total > 0 && more);
    let implied = total.map(|total| ((completed as u64).saturating_mul(100) / total).min(100));
    let before = session.progress_percentage.unwrap_or_default();
    Ok(given.or(implied.filter(|percent| number(*percent) > before)))
}

#[expect(clippy::cast_precision_loss, reason = "it lies between 0 and 100")]
fn number(percent: u64) -> f64 {
    percent as f64
}

/// Merges fields into session data; all other fields keep every byte.
pub(crate) fn merged(data: &RawValue, given: Box<RawValue>) -> Result<Box<RawValue>, Error> {
    if !data.get().starts_with('{') {
        return Ok(given);
    }
    let fields: HashMap<String, Box<RawValue>> = serde_json::from_str(given.get())?;
    let mut changes: Vec<(&str, String)> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.get().to_owned()))
        .collect();
    changes.sort_unstable();
    let text = with_fields(data.get(), &changes, 8);
    Ok(RawValue::from_string(text)?)
}

fn set(fields: &mut Fields, name: &'static str, value: &impl Serialize) -> Result<(), Error> {
    fields.push((name, raw(value)?));
    Ok(())
}

/// Data of a new session.
#[derive(Debug)]
pub struct NewSession {
    /// Session data of the agent: a JSON object; `None` is an empty one.
    pub data: Option<Box<RawValue>>,
    /// Total number of steps, at least 1.
    pub total_steps: u64,
    /// First step.
    pub step: Option<String>,
}

/// Starts a session in the state `initializing`.
pub fn start(workspace: &Workspace, new: NewSession) -> Result<ChangedSession, Error> {
    if new.total_steps == 0 {
        return Err(unfit("total_steps", "0", "a whole number from 1"));
    }
    let step = new.step.as_deref();
    let current_step = step.map(|step| redacted_text("current_step", step));
    let now = workspace.timestamp();
    let session = Session {
        session_id: String::new(),
        user_id: None,
        status: SessionState::Initializing,
        current_step: current_step.transpose()?.map(str::to_owned),
        progress_percentage: Some(0.0),
        total_steps: Some(new.total_steps),
        completed_steps: Vec::new(),
        error_message: None,
        session_data: object(new.data)?,
        started_at: now.clone(),
        completed_at: None,
        created_at: now.clone(),
        updated_at: now,
    };
    let mut writer = workspace.writer()?;
    let session = writer.append(session, workspace.now)?;
    let warnings = warnings_of(&mut writer).collect();
    Ok(ChangedSession { session, warnings })
}

/// Returns the data of a session: a JSON object, empty if none is given.
pub(crate) fn object(data: Option<Box<RawValue>>) -> Result<Box<RawValue>, Error> {
    let data = data.map_or_else(|| RawValue::from_string("{}".to_owned()), Ok);
    let data = data?;
    if !data.get().starts_with('{') {
        let allowed = "a JSON object, as in `{\"campaign\": \"spring\"}`";
        return Err(unfit("session_data", data.get(), allowed));
    }
    Ok(data)
}

/// Action to log.
#[derive(Debug)]
pub struct NewAction {
    /// Name of the step.
    pub step: String,
    /// Name of the tool.
    pub tool: Option<String>,
    /// Type of the action.
    pub action: ActionType,
    /// Result of the action, or that it is not finished.
    pub status: LogStatus,
    /// Input of the action.
    pub input: Option<Box<RawValue>>,
    /// Output of the action.
    pub output: Option<Box<RawValue>>,
    /// Reasoning behind the action.
    pub reasoning: Option<String>,
    /// Confidence, from 0 to 1.
    pub confidence: Option<f64>,
    /// Duration in milliseconds.
    pub took_ms: Option<u64>,
    /// Error message of a failed action.
    pub error: Option<String>,
}

/// Outcome of [`log_action()`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ActionReport {
    /// Stored line of the log.
    #[serde(flatten)]
    pub line: ExecutionLog,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Adds an action to the log of a session, even of one that has ended: an agent often reports
/// its last action last.
pub fn log_action(
    workspace: &Workspace,
    session: &str,
    new: NewAction,
) -> Result<ActionReport, Error> {
    if let Some(score) = new.confidence
        && !(0.0..=1.0).contains(&score)
    {
        let given = score.to_string();
        return Err(unfit("confidence_score", &given, "a number from 0 to 1"));
    }
    let session = find(&workspace.store, session)?;
    let scribe = Scribe::new(workspace.now, workspace.random, Some(&session.session_id));
    let line = ExecutionLog {
        // The line belongs to the user of the session, not to the writer.
        user_id: session.user_id,
        tool_name: new.tool,
        input_data: new.input,
        output_data: new.output,
        reasoning: new.reasoning,
        confidence_score: new.confidence,
        execution_time_ms: new.took_ms,
        status: new.status,
        error_message: new.error,
        ..scribe.line(redacted_text("step_name", &new.step)?, new.action)
    };
    let mut writer = workspace.writer()?;
    let line = writer.append_execution_logs(vec![line])?.remove(0);
    let warnings = warnings_of(&mut writer).collect();
    Ok(ActionReport { line, warnings })
}
