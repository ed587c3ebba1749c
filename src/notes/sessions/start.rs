//! Starts a session.

use serde_json::value::RawValue;

use crate::model::{Session, SessionState, TOTAL_STEPS};

use super::{ChangedSession, said};
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, SessionError, Workspace, repair_warnings};

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
        return Err(SessionError::value("total_steps", "0", "a whole number from 1").into());
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
        return Err(SessionError::value("session_data", data.get(), allowed).into());
    }
    Ok(data)
}
