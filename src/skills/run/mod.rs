//! Runs a skill: prompt, answer (`answer`, with the files that a model asks for: `requested_files`), record
//! (`record`), report.
//!
//! The store is checked before a model is paid. A paid answer is kept in any case: in the store, or
//! else in a separate file that the error names.

mod answer;
mod record;
mod requested_files;

pub(crate) use answer::output;
pub(crate) use requested_files::requested_files;

use std::time::Instant;

use answer::{Answer, RunState, answer, answer_offline};
use record::{failed, record};
use serde::Serialize;
use serde_json::value::RawValue;

use super::assemble::{assemble, assemble_without_memory, count_procedures};
use crate::model::{Kind, NearestCase, Outcome, SkillPath, Usage};
use crate::notes::sessions;
use crate::skills::prompt::{Injected, LayerSize, Omitted};
use crate::store;
use crate::store::skill::{Skill, Skills};
use crate::store::workspace::providers::Chosen;
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, Workspace, milliseconds, repair_warnings};
use memctl_llm::OnProgress;

/// Runs a skill.
pub async fn run(
    workspace: &Workspace,
    options: RunOptions,
    progress: OnProgress<'_>,
) -> Result<RunReport, Error> {
    let (skills, skill) = workspace.skill(&options.skill)?;
    // Report a missing session before a model is paid.
    let session = options.session.as_deref();
    let session = session.filter(|_| !options.without_memory && options.stateless.is_none());
    let session = session
        .map(|id| sessions::find(&workspace.store, id))
        .transpose()?;
    let session = session.as_ref();
    let mut warnings = Vec::new();
    let (input, sample_input) = input_or_sample(&skills, &skill, options.input)?;
    let stateless = options.stateless.is_some();
    warnings.extend(options.stateless.as_deref().map(says_stateless));
    let assembly = if options.without_memory || stateless {
        assemble_without_memory(workspace, &skill)
    } else {
        assemble(workspace, &skill, Some(input.get()), &mut warnings)?
    };
    let chosen = workspace.providers.choose(skill.model.as_deref()).await?;
    let records =
        !options.without_memory && !options.without_record && !options.dry_run && !stateless;
    if records {
        let mut writer = workspace.writer()?;
        writer.check(Kind::Execution)?;
        warnings.extend(repair_warnings(writer.take_repairs()));
    }
    let mut state = RunState::new(
        skill.path.clone(),
        &assembly,
        sample_input,
        stateless,
        warnings,
    );
    if options.dry_run {
        return Ok(state.report(Answer::missing(chosen.name()), None, None));
    }
    if records {
        count_procedures(workspace, &assembly);
    }
    let start = Instant::now();
    let mut answer = match &chosen {
        Chosen::Offline => answer_offline(workspace, &skills, &skill, &input, &mut state)?,
        Chosen::Model(llm) => match answer(
            workspace,
            (&skills, &skill),
            llm,
            &assembly,
            &input,
            progress,
        )
        .await
        {
            Ok(answer) => answer,
            Err(error) if !records => return Err(error.into()),
            Err(error) => {
                let latency_ms = milliseconds(start.elapsed());
                let model = llm.model();
                return Err(failed(
                    workspace,
                    &state,
                    &input,
                    session,
                    (model, latency_ms),
                    error,
                ));
            }
        },
    };
    // The report shows the output as it is stored.
    let mut left_out = redact(&mut answer.output);
    let mut execution_id = None;
    if records {
        match record(
            workspace,
            &state,
            &answer,
            Outcome::PendingReview,
            &input,
            session,
        ) {
            Ok((id, of_record, trouble)) => {
                execution_id = Some(id);
                left_out.extend(of_record);
                state.warnings.extend(trouble);
            }
            // The memory was switched off during the run: return the answer anyway.
            Err(Error::Store(off @ store::Error::Disabled { .. })) => {
                let said = format!("not recorded: {off} since the run began");
                state.warnings.push(said);
            }
            Err(error) => return Err(error),
        }
    }
    state.warnings.extend(redaction_warning(left_out));
    Ok(state.report(answer, Some(Outcome::PendingReview), execution_id))
}

/// Redacts an output. Returns the kinds of the secrets removed.
fn redact(output: &mut Box<RawValue>) -> Vec<&'static str> {
    let redacted = memctl_redact::redact_json(output.get());
    let text = serde_json::from_str(&redacted.text);
    let found = redacted.found;
    // Redacted JSON is valid JSON; if it were not, nothing of it would be shown.
    *output = text.unwrap_or_else(|_| RawValue::NULL.to_owned());
    found
}

/// Warning of a run without memory.
fn says_stateless(how: &str) -> String {
    format!("stateless: {how}; no rule was read, and the run is not recorded")
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
        return Err(Error::usage(
            message,
            format!("memctl run {skill} --input FILE"),
        ));
    };
    let text = skills.read(&path)?.unwrap_or_default();
    let shown = skills.shown(&path);
    match serde_json::from_str(&text) {
        Ok(input) => Ok((input, Some(shown))),
        Err(source) => Err(Error::NotJson { path, source }),
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
