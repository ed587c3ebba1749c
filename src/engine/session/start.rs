//! A session begins.

use serde_json::value::RawValue;

use crate::model::{Session, SessionState, TOTAL_STEPS};

use super::super::door::kept_out;
use super::super::{Engine, Error, mended};
use super::{ChangedSession, SessionError, said};

/// What is known of a session when it begins.
#[derive(Debug, Default)]
pub struct NewSession {
    /// Whatever the agent keeps with it: a JSON object.
    pub data: Option<Box<RawValue>>,
    /// How many steps there will be; [`TOTAL_STEPS`] where nobody says.
    pub total_steps: Option<u64>,
    /// What it does first.
    pub step: Option<String>,
}

impl Engine {
    /// Begins a session, in the state `initializing`.
    pub fn start_session(&self, new: NewSession) -> Result<ChangedSession, Error> {
        let total_steps = new.total_steps.unwrap_or(TOTAL_STEPS);
        if total_steps == 0 {
            return Err(SessionError::value("total_steps", "0", "a whole number from 1").into());
        }
        let current_step = new.step.as_deref().map(|step| said("current_step", step));
        let now = self.timestamp();
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
        let mut writer = self.writer()?;
        let session = writer.append(session, self.now)?;
        let mut warnings: Vec<String> = mended(writer.take_mended()).collect();
        warnings.extend(kept_out(writer.take_left_out()));
        Ok(ChangedSession { session, warnings })
    }
}

/// The data of a session: a JSON object, an empty one where none was given.
pub(super) fn object(data: Option<Box<RawValue>>) -> Result<Box<RawValue>, Error> {
    let data = data.map_or_else(|| RawValue::from_string("{}".to_owned()), Ok);
    let data = data.map_err(crate::store::Error::from)?;
    if !data.get().starts_with('{') {
        let allowed = "a JSON object, as in `{\"campaign\": \"spring\"}`";
        return Err(SessionError::value("session_data", data.get(), allowed).into());
    }
    Ok(data)
}
