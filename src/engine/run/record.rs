//! A run as it is recorded: the execution, the counts of the rules that stood in its prompt, and the
//! lines in the log of what agents did.
//!
//! What was paid for is kept: where the store does not take an execution, a file of its own does.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::llm::{self, Llm};
use crate::model::{ActionType, Execution, ExecutionLog, LogStatus, Outcome, Session, Usage};
use crate::store;

use super::super::session::data;
use super::super::{Engine, Error, dollars, evidence};
use super::RunReport;

impl Engine {
    /// Records an execution. Answers its id, the kinds of what was left out of it, and what went wrong
    /// and did not stop it.
    pub(super) fn record(
        &self,
        report: &RunReport,
        input: &RawValue,
        session: Option<&Session>,
    ) -> Result<(String, Vec<&'static str>, Option<String>), Error> {
        let execution = Execution {
            execution_id: String::new(),
            skill: report.skill.to_string(),
            timestamp: self.timestamp(),
            input_summary: input.to_owned(),
            output_summary: report.output.clone(),
            outcome: report.outcome.clone().unwrap_or_default(),
            cost_usd: report.cost_usd,
            latency_ms: Some(report.latency_ms),
            model_used: report.model_used.clone(),
            reflexions_injected: report.injected.iter().map(|i| i.id.clone()).collect(),
            reflexions_withheld: report.withheld.clone(),
            experiment_withhold: Some(self.settings.withhold.get()).filter(|share| *share > 0.0),
            usage: report.usage,
            nearest_case: report.nearest_case.clone(),
            reviewer_notes: String::new(),
            judged_by: String::new(),
        };
        let stored = self.writer().and_then(|mut writer| {
            let stored = writer.append(execution.clone(), self.now)?;
            // A count that cannot be kept is no reason to lose an answer.
            let counted = evidence::count_shown(&mut writer, &stored);
            // What the log tells stands in the execution too.
            drop(writer.note_execution_logs(self.actions(report, &stored, session)));
            let trouble = counted.err().map(|error| evidence::uncounted(&error));
            Ok((stored.execution_id, writer.take_left_out(), trouble))
        });
        match stored {
            Ok(recorded) => Ok(recorded),
            Err(Error::Store(off @ store::Error::Disabled { .. })) => Err(off.into()),
            Err(Error::Store(source)) => Err(self.keep_aside(&execution, source)),
            Err(error) => Err(error),
        }
    }

    /// A run as the log of what agents did has it: what was read, who was asked, what was written.
    fn actions(
        &self,
        report: &RunReport,
        stored: &Execution,
        session: Option<&Session>,
    ) -> Vec<ExecutionLog> {
        let scribe = self.scribe(session.map(|session| session.session_id.as_str()));
        let step = session.and_then(|session| session.current_step.as_deref());
        let line = |action| scribe.line(step.unwrap_or("run"), action);
        let id = &stored.execution_id;
        let mut lines = Vec::new();
        if !(report.injected.is_empty() && report.omitted.is_empty()) {
            lines.push(ExecutionLog {
                input_data: data(&json!({ "skill": stored.skill })),
                output_data: data(&json!({
                    "injected": stored.reflexions_injected,
                    "withheld": stored.reflexions_withheld,
                })),
                ..line(ActionType::MemoryRead)
            });
        }
        let failed = stored.outcome == Outcome::Error;
        // The output of a run that failed is what was said of it.
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

    /// Keeps an execution that the store does not take in a file of its own.
    fn keep_aside(&self, execution: &Execution, source: store::Error) -> Error {
        let Ok(text) = serde_json::to_string_pretty(execution) else {
            return source.into();
        };
        let name = format!("unsaved-{}.json", self.now.format("%Y%m%d%H%M%S%6f"));
        match self.set_aside(&name, &text) {
            Some(kept) => Error::NotStored { kept, source },
            None => source.into(),
        }
    }

    /// Records that a model was asked in vain, with whatever it said.
    pub(super) fn failed(
        &self,
        report: &RunReport,
        input: &RawValue,
        session: Option<&Session>,
        llm: &Llm,
        error: llm::Error,
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
        let failed = RunReport {
            execution_id: None,
            skill: report.skill.clone(),
            outcome: Some(Outcome::Error),
            output,
            model_used: llm.model().to_owned(),
            cost_usd: paid.and_then(|paid| paid.cost_usd).map(dollars),
            latency_ms: report.latency_ms,
            usage: usage.map(|u| Usage {
                input_tokens: u.input_tokens,
                output_tokens: u.output_tokens,
            }),
            injected: report.injected.clone(),
            omitted: report.omitted.clone(),
            withheld: report.withheld.clone(),
            layers: Vec::new(),
            nearest_case: None,
            sample_input: None,
            stateless: report.stateless,
            warnings: Vec::new(),
        };
        match self.record(&failed, input, session) {
            Ok((execution, _, _)) => Error::Asked {
                execution,
                source: error,
            },
            // Whoever has paid for a part of an answer wants to know where it is.
            Err(kept @ Error::NotStored { .. }) if error.raw_text().is_some() => kept,
            Err(_) => error.into(),
        }
    }
}
