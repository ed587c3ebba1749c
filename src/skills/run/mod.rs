//! Runs a skill: prompt, answer (`answer`), record, report.
//!
//! The store is checked before a model is paid. A paid answer is kept in any case: in the store, or
//! else in a separate file that the error names. A record is the execution, the counts of the rules in
//! its prompt, and the lines of the execution log.

mod answer;

pub(crate) use answer::{installed_agents, output, requested_files};

use std::time::Instant;

use answer::{answer, answer_offline};
use memctl_files::json;
use memctl_llm::{OnProgress, Request};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::assemble::{assemble, assemble_layers};
use crate::model::error::{Explain as _, message};
use crate::model::{
    ActionType, Execution, ExecutionLog, Kind, LogStatus, NearestCase, Outcome, Session, SkillPath,
    Usage,
};
use crate::notes::sessions;
use crate::rules::evidence;
use crate::skills::prompt::{Injected, LayerSize, Omitted, ids_of};
use crate::store::skill::{Skill, Skills};
use crate::store::workspace::providers::Chosen;
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{
    Error, Scribe, Workspace, data, dollars, milliseconds, repair_warnings,
};
use crate::store::writer::unreadable;

/// Runs a skill.
pub async fn run(
    workspace: &Workspace,
    options: RunOptions,
    progress: OnProgress<'_>,
) -> Result<RunReport, Error> {
    let (skills, skill) = workspace.skill(&options.skill)?;
    let stateless = options.stateless.is_some();
    let has_memory = !stateless && !options.without_memory;
    // Report a missing session before a model is paid.
    let session = options.session.filter(|_| has_memory);
    let session = session
        .map(|id| sessions::find(&workspace.store, &id))
        .transpose()?;
    let (input, sample_input) = input_or_sample(&skills, &skill, options.input)?;
    // The record of the run could not be stored, after the model is paid.
    if let Some(value) = json::unreadable(input.get()) {
        return Err(unreadable(value));
    }
    let no_memory =
        |how| format!("stateless: {how}; no rule was read, and the run is not recorded");
    let mut warnings: Vec<String> = options.stateless.map(no_memory).into_iter().collect();
    let assembly = if has_memory {
        assemble(workspace, &skill, Some(input.get()), &mut warnings)?
    } else {
        assemble_layers(workspace, &skill, &[], None)
    };
    let chosen = workspace.providers.choose(skill.model.as_deref()).await?;
    let records = has_memory && !options.without_record && !options.dry_run;
    if records {
        let mut writer = workspace.writer()?;
        writer.check(Kind::Execution)?;
        warnings.extend(repair_warnings(writer.take_repairs()));
    }
    let mut report = RunReport {
        execution_id: None,
        skill: skill.path.clone(),
        outcome: None,
        output: RawValue::NULL.to_owned(),
        model_used: chosen.name().to_owned(),
        cost_usd: None,
        latency_ms: 0.0,
        usage: None,
        nearest_case: None,
        injected: assembly.injected,
        omitted: assembly.omitted,
        layers: assembly.layers,
        sample_input,
        stateless,
        warnings,
    };
    if options.dry_run {
        return Ok(report);
    }
    report.outcome = Some(Outcome::PendingReview);
    let start = Instant::now();
    match &chosen {
        Chosen::Offline => answer_offline(workspace, &skills, &skill, &input, &mut report)?,
        Chosen::Model(llm) => {
            let request = Request {
                system: assembly.prompt,
                user: input.get().to_owned(),
                schema: None,
                max_tokens: workspace.settings.max_output_tokens,
            };
            let answered = answer(&skills, &skill, llm, request, progress, &mut report).await;
            if let Err(error) = answered {
                if !records {
                    return Err(error.into());
                }
                report.latency_ms = milliseconds(start.elapsed());
                return Err(failed(workspace, report, &input, session.as_ref(), error));
            }
        }
    }
    // The report shows the output as it is stored.
    let redacted = memctl_redact::redact_json(report.output.get());
    let output = serde_json::from_str(&redacted.text).unwrap_or_default();
    let mut left_out = redacted.found;
    report.output = output;
    if records {
        match record(workspace, &mut report, &input, session.as_ref()) {
            Ok(of_record) => left_out.extend(of_record),
            // The memory was switched off during the run: return the answer anyway.
            Err(off @ Error::Disabled { .. }) => {
                report
                    .warnings
                    .push(format!("not recorded: {off} since the run began"));
            }
            Err(error) => return Err(error),
        }
    }
    report.warnings.extend(redaction_warning(left_out));
    Ok(report)
}

/// Returns the given input, or the skill's sample and its path.
fn input_or_sample(
    skills: &Skills,
    skill: &Skill,
    given: Option<Box<RawValue>>,
) -> Result<(Box<RawValue>, Option<String>), Error> {
    if let Some(input) = given {
        return Ok((input, None));
    }
    let Some(path) = skills.sample_input(&skill.path)? else {
        let skill = &skill.path;
        let message = format!("`{skill}` has no `fixtures/sample_input.json` to run with");
        let hint = format!("memctl run {skill} --input FILE");
        return Err(Error::usage(message, hint));
    };
    let text = skills.read(&path)?.unwrap_or_default();
    match serde_json::from_str(&text) {
        Ok(input) => Ok((input, Some(skills.shown(&path)))),
        Err(error) => Err(Error::not_json(&path, &error)),
    }
}

/// Records an execution, and names it in the report. Returns the kinds of the secrets redacted. An
/// execution that the store rejects is written to a separate file.
fn record(
    workspace: &Workspace,
    report: &mut RunReport,
    input: &RawValue,
    session: Option<&Session>,
) -> Result<Vec<&'static str>, Error> {
    let execution = Execution {
        skill: report.skill.to_string(),
        timestamp: workspace.timestamp(),
        input_summary: input.to_owned(),
        output_summary: report.output.clone(),
        outcome: report.outcome.clone().unwrap_or(Outcome::PendingReview),
        cost_usd: report.cost_usd,
        latency_ms: Some(report.latency_ms),
        model_used: report.model_used.clone(),
        reflexions_injected: ids_of(&report.injected, Kind::Reflexion),
        procedures_injected: ids_of(&report.injected, Kind::Procedure),
        injected_created_at: [Kind::Reflexion, Kind::Procedure]
            .into_iter()
            .flat_map(|kind| report.injected.iter().filter(move |one| one.kind == kind))
            .map(|one| one.created_at.clone())
            .collect(),
        usage: report.usage,
        nearest_case: report.nearest_case.clone(),
        ..Execution::default()
    };
    let stored = workspace.writer().and_then(|mut writer| {
        let stored = writer.append(execution.clone(), workspace.now)?;
        // A failed count must not lose an answer.
        let counted = evidence::count_shown(&mut writer, &stored);
        report
            .warnings
            .extend(counted.err().map(|error| evidence::uncounted(&error)));
        // The execution holds the same facts as the log, so a failed log write is ignored.
        drop(writer.note_execution_logs(actions(workspace, report, &stored, session)));
        report.execution_id = Some(stored.execution_id);
        Ok(writer.take_left_out())
    });
    match stored {
        Err(source) if !matches!(source, Error::Disabled { .. }) => {
            let text = serde_json::to_string_pretty(&execution).unwrap_or_default();
            let name = format!("unsaved-{}.json", workspace.now.format("%Y%m%d%H%M%S%6f"));
            Err(match workspace.set_aside(&name, &text) {
                Some(file) => Error::NotStored {
                    file,
                    source: Box::new(source),
                },
                None => source,
            })
        }
        stored => stored,
    }
}

/// Lines of a run in the execution log: rules read, model called, execution written.
fn actions(
    workspace: &Workspace,
    report: &RunReport,
    stored: &Execution,
    session: Option<&Session>,
) -> Vec<ExecutionLog> {
    let of_session = session.map(|session| session.session_id.as_str());
    let scribe = Scribe::new(workspace.now, workspace.random, of_session);
    let step = session.and_then(|session| session.current_step.as_deref());
    let line = |action| scribe.line(step.unwrap_or("run"), action);
    let id = &stored.execution_id;
    let mut lines = Vec::new();
    if !(report.injected.is_empty() && report.omitted.is_empty()) {
        let injected: Vec<&String> = report.injected.iter().map(|record| &record.id).collect();
        lines.push(ExecutionLog {
            input_data: data(&json!({ "skill": stored.skill })),
            output_data: data(&json!({ "injected": injected })),
            ..line(ActionType::MemoryRead)
        });
    }
    let failed = stored.outcome == Outcome::Error;
    // A failed run has its error in the output.
    let output: Value = serde_json::from_str(stored.output_summary.get()).unwrap_or_default();
    let error = output["error"].as_str().filter(|_| failed);
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
        error_message: error.map(str::to_owned),
        ..line(ActionType::ToolCall)
    });
    lines.push(ExecutionLog {
        output_data: data(&json!({ "execution_id": id, "outcome": stored.outcome })),
        ..line(ActionType::MemoryWrite)
    });
    lines
}

/// Records a failed call of a model, with any text that the model returned.
fn failed(
    workspace: &Workspace,
    mut report: RunReport,
    input: &RawValue,
    session: Option<&Session>,
    error: memctl_llm::Error,
) -> Error {
    let mut output = json!({ "error": error.to_string() });
    if let Some(text) = error.raw_text() {
        output["raw_output"] = text.into();
    }
    report.output = to_raw_value(&output).unwrap_or_default();
    report.outcome = Some(Outcome::Error);
    let paid = error.paid();
    report.cost_usd = paid.and_then(|paid| paid.cost_usd).map(dollars);
    report.usage = paid.and_then(|paid| paid.usage);
    match record(workspace, &mut report, input, session) {
        Ok(_) => {
            let execution = report.execution_id.unwrap_or_default();
            let recorded = format!("the attempt is recorded: memctl show {execution}");
            let (kind, hint) = error.explain();
            let hint = hint
                .into_iter()
                .chain([recorded])
                .collect::<Vec<_>>()
                .join("; ");
            Error::Refused(kind, message(&error), hint)
        }
        // The user paid for a part of an answer, so the error must name its file.
        Err(not_stored @ Error::NotStored { .. }) if error.raw_text().is_some() => not_stored,
        Err(_) => error.into(),
    }
}

/// Options of [`run()`](crate::skills::run()).
#[derive(Debug)]
pub struct RunOptions {
    /// Skill to run.
    pub skill: SkillPath,
    /// Input; `None` uses the skill's sample.
    pub input: Option<Box<RawValue>>,
    /// Reads no rules and no procedures, and does not record the execution.
    pub without_memory: bool,
    /// Does not record the execution.
    pub without_record: bool,
    /// Stops before the model call.
    pub dry_run: bool,
    /// Session of the run, by id or id prefix.
    pub session: Option<String>,
    /// Reason why the memory is switched off; `None` if it is on. Without memory nothing is read or
    /// written, regardless of the other options. Skills and their examples are not memory.
    pub stateless: Option<String>,
}

/// Outcome of [`run()`](crate::skills::run()).
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct RunReport {
    /// Id of the recorded execution; `None` if it is not recorded.
    pub execution_id: Option<String>,
    /// Skill that ran.
    pub skill: SkillPath,
    /// Outcome of the execution; `None` for a dry run.
    pub outcome: Option<Outcome>,
    /// Output; `null` for a dry run.
    pub output: Box<RawValue>,
    /// Model name: `provider/model`, or `offline/nearest-case`.
    pub model_used: String,
    /// Cost in US dollars; `None` if the price is unknown.
    pub cost_usd: Option<f64>,
    /// Wall-clock time of the answer, in milliseconds.
    pub latency_ms: f64,
    /// Token counts; `None` if the provider reports none.
    pub usage: Option<Usage>,
    /// Rules in the prompt, then procedures.
    pub injected: Vec<Injected>,
    /// Rules and procedures for the skill that are not in the prompt, with the reason.
    pub omitted: Vec<Omitted>,
    /// Layers of the prompt, with their sizes.
    pub layers: Vec<LayerSize>,
    /// Known case that an offline answer comes from.
    pub nearest_case: Option<NearestCase>,
    /// Path of the sample used as input; `None` if an input was given.
    pub sample_input: Option<String>,
    /// `true` if the memory is switched off, so that nothing was read from it or written to it.
    pub stateless: bool,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}
