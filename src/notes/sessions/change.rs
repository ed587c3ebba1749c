//! Starts a session, and changes its state, step and progress, until it ends.
//!
//! The whole change is checked before any write. Deliberately absent: an order of states. Agents work in
//! their own order, and a person may send a session back.

use std::collections::HashMap;

use memctl_files::json::with_fields;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{ChangedSession, said, unfit};
use crate::model::{Kind, Session, SessionState, TOTAL_STEPS};
use crate::store::workspace::records::{locate_as, raw};
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, Workspace, repair_warnings};

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
    let id = locate_as(&workspace.store, Kind::Session, id)?;
    let mut writer = workspace.writer()?;
    let session: Session = writer.store().get(&id)?;
    let now = workspace.timestamp();
    let (mut fields, mut warnings) = changes(&session, change, &now)?;
    if fields.is_empty() {
        return Ok(ChangedSession { session, warnings });
    }
    set(&mut fields, "updated_at", &now)?;
    let entry = writer.update(Kind::Session, &id, &fields)?;
    warnings.extend(repair_warnings(writer.take_repairs()));
    warnings.extend(redaction_warning(writer.take_left_out()));
    let session = entry.parse().map_err(crate::store::Error::from)?;
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
            let names: Vec<_> = SessionState::names().map(|(name, _)| name).collect();
            let allowed = format!("one of {}", names.join(", "));
            return Err(unfit("status", status.as_str(), &allowed));
        }
        set(&mut fields, "status", &status)?;
    }
    if let Some(step) = &change.step
        && session.current_step.as_ref() != Some(step)
    {
        set(&mut fields, "current_step", &said("current_step", step)?)?;
    }
    let mut completed = session.completed_steps.clone();
    for step in &change.completed {
        if !completed.iter().any(|done| done == step) {
            completed.push(said("completed_steps", step)?.to_owned());
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
        (Some(error), true) => set(&mut fields, "error_message", &said("error_message", error)?)?,
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
    let fields: HashMap<String, Box<RawValue>> =
        serde_json::from_str(given.get()).map_err(crate::store::Error::from)?;
    let mut changes: Vec<(&str, String)> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.get().to_owned()))
        .collect();
    changes.sort_unstable();
    let text = with_fields(data.get(), &changes, 8);
    Ok(RawValue::from_string(text).map_err(crate::store::Error::from)?)
}

fn set(fields: &mut Fields, name: &'static str, value: &impl Serialize) -> Result<(), Error> {
    fields.push((name, raw(value)?));
    Ok(())
}

/// Data of a new session.
#[derive(Debug, Default)]
pub struct NewSession {
    /// Session data of the agent: a JSON object; `None` is an empty one.
    pub data: Option<Box<RawValue>>,
    /// Total number of steps, at least 1; `None` uses [`TOTAL_STEPS`].
    pub total_steps: Option<u64>,
    /// First step.
    pub step: Option<String>,
}

/// Starts a session in the state `initializing`.
pub fn start(workspace: &Workspace, new: NewSession) -> Result<ChangedSession, Error> {
    let total_steps = new.total_steps.unwrap_or(TOTAL_STEPS);
    if total_steps == 0 {
        return Err(unfit("total_steps", "0", "a whole number from 1"));
    }
    let current_step = new.step.as_deref().map(|step| said("current_step", step));
    let now = workspace.timestamp();
    let session = Session {
        session_id: String::new(),
        user_id: None,
        status: SessionState::Initializing,
        current_step: current_step.transpose()?.map(str::to_owned),
        progress_percentage: Some(0.0),
        total_steps: Some(total_steps),
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
    let mut warnings: Vec<String> = repair_warnings(writer.take_repairs()).collect();
    warnings.extend(redaction_warning(writer.take_left_out()));
    Ok(ChangedSession { session, warnings })
}

/// Returns the data of a session: a JSON object, empty if none is given.
pub(crate) fn object(data: Option<Box<RawValue>>) -> Result<Box<RawValue>, Error> {
    let data = data.map_or_else(|| RawValue::from_string("{}".to_owned()), Ok);
    let data = data.map_err(crate::store::Error::from)?;
    if !data.get().starts_with('{') {
        let allowed = "a JSON object, as in `{\"campaign\": \"spring\"}`";
        return Err(unfit("session_data", data.get(), allowed));
    }
    Ok(data)
}
