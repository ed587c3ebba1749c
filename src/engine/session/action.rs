//! Lines of the log of what agents did: those that an agent writes, and those that the verbs of this
//! program write of themselves.
//!
//! What an agent logs is on the disk when the verb returns. What verbs note of themselves is not waited
//! for, and a note that cannot be written stops no verb: what it tells of stands in the records.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::guard;
use crate::model::{ActionType, ExecutionLog, Kind, LogStatus, Session};

use super::super::door::kept_out;
use super::super::learn::raw;
use super::super::{Engine, Error, mended, stamp};
use super::{SessionError, said};

/// An action of an agent.
#[derive(Debug)]
pub struct NewAction {
    /// The step that it is part of.
    pub step: String,
    /// The tool that acted.
    pub tool: Option<String>,
    /// What kind of action it is.
    pub action: ActionType,
    /// How it ended, or that it has not.
    pub status: LogStatus,
    /// What went in.
    pub input: Option<Box<RawValue>>,
    /// What came out.
    pub output: Option<Box<RawValue>>,
    /// Why.
    pub reasoning: Option<String>,
    /// How sure, from 0 to 1.
    pub confidence: Option<f64>,
    /// Milliseconds that it took.
    pub took_ms: Option<u64>,
    /// What went wrong.
    pub error: Option<String>,
}

/// The line as it is stored.
#[derive(Debug, Serialize)]
pub struct ActionReport {
    /// Its fields.
    #[serde(flatten)]
    pub line: ExecutionLog,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

impl Engine {
    /// Adds an action to the log of a session, also of one that has ended: what was done last is often
    /// told last.
    pub fn log_action(&self, session: &str, new: NewAction) -> Result<ActionReport, Error> {
        if let Some(score) = new.confidence
            && !(0.0..=1.0).contains(&score)
        {
            let given = score.to_string();
            return Err(
                SessionError::value("confidence_score", &given, "a number from 0 to 1").into(),
            );
        }
        let id = self.locate_as(Kind::Session, session)?;
        let mut writer = self.writer()?;
        let session: Session = writer.store().get(&id)?;
        let scribe = self.scribe(Some(&id));
        let line = ExecutionLog {
            // Whoever writes it, it belongs to the session.
            user_id: session.user_id,
            tool_name: new.tool,
            input_data: new.input,
            output_data: new.output,
            reasoning: new.reasoning,
            confidence_score: new.confidence,
            execution_time_ms: new.took_ms,
            status: new.status,
            error_message: new.error,
            ..scribe.line(said("step_name", &new.step)?, new.action)
        };
        let line = writer.append_execution_logs(vec![line])?.remove(0);
        let mut warnings: Vec<String> = mended(writer.take_mended()).collect();
        warnings.extend(kept_out(writer.take_left_out()));
        Ok(ActionReport { line, warnings })
    }

    pub(in crate::engine) fn scribe(&self, session: Option<&str>) -> Scribe {
        Scribe::new(self.now, self.random, session)
    }
}

/// Whoever writes lines: what all of them have in common.
#[derive(Debug)]
pub(in crate::engine) struct Scribe {
    now: DateTime<Utc>,
    random: fn() -> String,
    session: Option<String>,
}

impl Scribe {
    /// `session` is the name of a session of ours, or what a host calls one of its own.
    pub(in crate::engine) fn new(
        now: DateTime<Utc>,
        random: fn() -> String,
        session: Option<&str>,
    ) -> Self {
        Self {
            now,
            random,
            session: session.map(|name| guard::redact(name).text.into_owned()),
        }
    }

    /// A line that says what was done, and that it went well; the rest is empty.
    pub(in crate::engine) fn line(&self, step: &str, action: ActionType) -> ExecutionLog {
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
pub(in crate::engine) fn data(value: &Value) -> Option<Box<RawValue>> {
    raw(value).ok()
}
