//! Lines of the execution log, from agents and from the operations of this program.
//!
//! A line from an agent is on disk when the operation returns. A line about an operation itself is
//! written without waiting for the disk. If that write fails, the operation goes on: the records
//! hold the same facts.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{said, unfit};
use crate::model::{ActionType, ExecutionLog, Kind, LogStatus, Session};
use crate::store::workspace::records::{Scribe, locate_as};
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, Workspace, repair_warnings};

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
    let id = locate_as(&workspace.store, Kind::Session, session)?;
    let mut writer = workspace.writer()?;
    let session: Session = writer.store().get(&id)?;
    let scribe = Scribe::new(workspace.now, workspace.random, Some(&id));
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
        ..scribe.line(said("step_name", &new.step)?, new.action)
    };
    let line = writer.append_execution_logs(vec![line])?.remove(0);
    let mut warnings: Vec<String> = repair_warnings(writer.take_repairs()).collect();
    warnings.extend(redaction_warning(writer.take_left_out()));
    Ok(ActionReport { line, warnings })
}
