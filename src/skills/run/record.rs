//! Records a run: the execution, the counts of the rules in its prompt, and the lines of the
//! execution log.
//!
//! A paid answer is kept: if the store rejects an execution, a separate file holds it.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::answer::{Answer, RunState};
use crate::model::{ActionType, Execution, ExecutionLog, Kind, LogStatus, Outcome, Session, Usage};
use crate::rules::evidence;
use crate::skills::prompt::ids_of;
use crate::store;
use crate::store::workspace::records::{Scribe, data};
use crate::store::workspace::{Error, Workspace, dollars};

/// Records an execution. Returns its id, the kinds of the secrets redacted, and a non-fatal
/// problem.
pub(super) fn record(
    workspace: &Workspace,
    state: &RunState,
    answer: &Answer,
    outcome: Outcome,
    input: &RawValue,
    session: Option<&Session>,
) -> Result<(String, Vec<&'static str>, Option<String>), Error> {
    let execution = Execution {
        execution_id: String::new(),
        skill: state.skill.to_string(),
        timestamp: workspace.timestamp(),
        input_summary: input.to_owned(),
        output_summary: answer.output.clone(),
        outcome,
        cost_usd: answer.cost_usd,
        latency_ms: Some(answer.latency_ms),
        model_used: answer.model.clone(),
        reflexions_injected: ids_of(&state.injected, Kind::Reflexion),
        procedures_injected: ids_of(&state.injected, Kind::Procedure),
        usage: answer.usage,
        nearest_case: answer.nearest_case.clone(),
        reviewer_notes: String::new(),
        rules_blamed: None,
        judged_by: String::new(),
    };
    let stored = workspace.writer().and_then(|mut writer| {
        let stored = writer.append(execution.clone(), workspace.now)?;
        // A failed count must not lose an answer.
        let counted = evidence::count_shown(&mut writer, &stored);
        // The execution holds the same facts as the log, so a failed log write is ignored.
        drop(writer.note_execution_logs(actions(workspace, state, &stored, session)));
        let trouble = counted.err().map(|error| evidence::uncounted(&error));
        Ok((stored.execution_id, writer.take_left_out(), trouble))
    });
    match stored {
        Ok(recorded) => Ok(recorded),
        Err(Error::Store(off @ store::Error::Disabled { .. })) => Err(off.into()),
        Err(Error::Store(source)) => Err(keep_aside(workspace, &execution, source)),
        Err(error) => Err(error),
    }
}

/// Lines of a run in the execution log: rules read, model called, execution written.
fn actions(
    workspace: &Workspace,
    state: &RunState,
    stored: &Execution,
    session: Option<&Session>,
) -> Vec<ExecutionLog> {
    let scribe = Scribe::new(
        workspace.now,
        workspace.random,
        session.map(|session| session.session_id.as_str()),
    );
    let step = session.and_then(|session| session.current_step.as_deref());
    let line = |action| scribe.line(step.unwrap_or("run"), action);
    let id = &stored.execution_id;
    let mut lines = Vec::new();
    if !(state.injected.is_empty() && state.omitted.is_empty()) {
        lines.push(ExecutionLog {
            input_data: data(&json!({ "skill": stored.skill })),
            output_data: data(&json!({
                "injected": state.injected.iter().map(|record| &record.id).collect::<Vec<_>>(),
            })),
            ..line(ActionType::MemoryRead)
        });
    }
    let failed = stored.outcome == Outcome::Error;
    // A failed run has its error in the output.
    let error = serde_json::from_str::<Value>(stored.output_summary.get()).ok();
    let error = error.and_then(|output| output["error"].as_str().map(str::to_owned));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float cast to an integer saturates"
    )]
    let took = stored.latency_ms.map(|ms| ms.round() as u64);
    lines.push(ExecutionLog {
        tool_name: Some(stored.model_used.clone()),
        input_data: data(&json!({ "skill": stored.skill })),
        output_data: data(&json!({ "execution_id": id, "cost_usd": stored.cost_usd })),
        execution_time_ms: took,
        status: if failed {
            LogStatus::Error
        } else {
            LogStatus::Success
        },
        error_message: error.filter(|_| failed),
        ..line(ActionType::ToolCall)
    });
    lines.push(ExecutionLog {
        output_data: data(&json!({ "execution_id": id, "outcome": stored.outcome })),
        ..line(ActionType::MemoryWrite)
    });
    lines
}

/// Writes an execution that the store rejects to a separate file.
fn keep_aside(workspace: &Workspace, execution: &Execution, source: store::Error) -> Error {
    let Ok(text) = serde_json::to_string_pretty(execution) else {
        return source.into();
    };
    let name = format!("unsaved-{}.json", workspace.now.format("%Y%m%d%H%M%S%6f"));
    match workspace.set_aside(&name, &text) {
        Some(kept) => Error::NotStored { kept, source },
        None => source.into(),
    }
}

/// Records a failed call of a model that took so many milliseconds, with any text that the
/// model returned.
pub(super) fn failed(
    workspace: &Workspace,
    state: &RunState,
    input: &RawValue,
    session: Option<&Session>,
    (model, latency_ms): (&str, f64),
    error: memctl_llm::Error,
) -> Error {
    let mut output = json!({ "error": error.to_string() });
    if let Some(text) = error.raw_text() {
        output["raw_output"] = Value::String(text.to_owned());
    }
    let Ok(output) = serde_json::value::to_raw_value(&output) else {
        return error.into();
    };
    let paid = error.paid();
    let usage = paid.and_then(|paid| paid.usage);
    let answer = Answer {
        output,
        model: model.to_owned(),
        cost_usd: paid.and_then(|paid| paid.cost_usd).map(dollars),
        latency_ms,
        usage: usage.map(|u| Usage {
            input_tokens: u.input_tokens,
            output_tokens: u.output_tokens,
        }),
        nearest_case: None,
    };
    match record(workspace, state, &answer, Outcome::Error, input, session) {
        Ok((execution, _, _)) => Error::Asked {
            execution,
            source: error,
        },
        // The user paid for a part of an answer, so the error must name its file.
        Err(kept @ Error::NotStored { .. }) if error.raw_text().is_some() => kept,
        Err(_) => error.into(),
    }
}
