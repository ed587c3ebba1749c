//! Lines of the execution log.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::{ActionType, ExecutionLog, LogStatus};

use super::{Error, stamp};

/// Common fields of the lines of one writer.
#[derive(Debug)]
pub(crate) struct Scribe {
    now: DateTime<Utc>,
    random: fn() -> String,
    session: Option<String>,
}

impl Scribe {
    /// Creates the fields; `session` is the id of a session, or the id that an agent host gave it.
    pub(crate) fn new(now: DateTime<Utc>, random: fn() -> String, session: Option<&str>) -> Self {
        Self {
            now,
            random,
            session: session.map(|name| memctl_redact::redact(name).text.into_owned()),
        }
    }

    /// Returns a line for a successful step, with the optional fields empty.
    pub(crate) fn line(&self, step: &str, action: ActionType) -> ExecutionLog {
        ExecutionLog {
            id: (self.random)(),
            session_id: self.session.clone(),
            step_name: step.to_owned(),
            action_type: action,
            status: LogStatus::Success,
            created_at: stamp(self.now),
            ..ExecutionLog::default()
        }
    }
}

/// A value that a line carries.
pub(crate) fn data(value: &Value) -> Option<Box<RawValue>> {
    raw(value).ok()
}

/// JSON text of a value, as records carry it.
pub(crate) fn raw(value: &impl Serialize) -> Result<Box<RawValue>, Error> {
    serde_json::value::to_raw_value(value).map_err(|error| crate::store::Error::from(error).into())
}
