//! Runs a skill: prompt, answer (`answer`), record (`record`).
//!
//! The store is tried before a model is paid, and an answer that was paid is kept whatever happens
//! afterwards: in the store, or else in a file of its own that the error names.

mod answer;
mod record;

use std::time::Instant;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::guard;
use crate::llm::OnProgress;
use crate::model::{Kind, NearestCase, Outcome, SkillPath, Usage};
use crate::prompt::{Injected, LayerSize, Omitted};
use crate::skill::{Skill, Skills};
use crate::store;

use super::door::kept_out;
use super::model::Chosen;
use super::{Engine, Error, mended, milliseconds};

pub(super) use answer::output;

/// How a skill is run.
#[derive(Debug)]
pub struct RunOptions {
    /// The skill.
    pub skill: SkillPath,
    /// The input; `None` takes the skill's own sample.
    pub input: Option<Box<RawValue>>,
    /// Neither reads learned rules nor records the execution.
    pub without_memory: bool,
    /// Does not record the execution.
    pub without_record: bool,
    /// Stops before anybody is asked.
    pub dry_run: bool,
    /// The session that it is part of, by its id or the beginning of one.
    pub session: Option<String>,
    /// The memory is switched off, and this says how: nothing of it is read or written, whatever the
    /// other options say. Skills and their examples are no memory.
    pub stateless: Option<String>,
}

/// What came of it.
#[derive(Debug, Serialize)]
pub struct RunReport {
    /// The id under which it is recorded; `None` where it is not.
    pub execution_id: Option<String>,
    /// The skill.
    pub skill: SkillPath,
    /// What became of it; `None` for a dry run.
    pub outcome: Option<Outcome>,
    /// The output; `null` for a dry run.
    pub output: Box<RawValue>,
    /// `provider/model`, or `offline/nearest-case`.
    pub model_used: String,
    /// US dollars; `None` where the price is not known.
    pub cost_usd: Option<f64>,
    /// Wall-clock milliseconds of the answer.
    pub latency_ms: f64,
    /// Tokens, where the provider counted them.
    pub usage: Option<Usage>,
    /// The rules that stood in the prompt.
    pub injected: Vec<Injected>,
    /// The rules of the skill that did not, and why.
    pub omitted: Vec<Omitted>,
    /// Those of them that the experiment withheld.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// The layers of the prompt.
    pub layers: Vec<LayerSize>,
    /// Where an offline answer was taken from.
    pub nearest_case: Option<NearestCase>,
    /// The sample that stood in for an input, where none was given.
    pub sample_input: Option<String>,
    /// Whether the memory is switched off, so that nothing was read from it or written to it.
    pub stateless: bool,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

impl Engine {
    /// Runs a skill.
    pub async fn run(
        &self,
        options: RunOptions,
        progress: OnProgress<'_>,
    ) -> Result<RunReport, Error> {
        let (skills, skill) = self.skill(&options.skill)?;
        // A session that is not there is told before anybody is paid.
        let session = options.session.as_deref();
        let session = session.filter(|_| !options.without_memory && options.stateless.is_none());
        let session = session.map(|id| self.find_session(id)).transpose()?;
        let session = session.as_ref();
        let mut warnings = Vec::new();
        let (input, sample_input) = input_or_sample(&skills, &skill, options.input)?;
        let stateless = options.stateless.is_some();
        warnings.extend(options.stateless.as_deref().map(says_stateless));
        let assembly = if options.without_memory || stateless {
            self.assemble_without_rules(&skill)
        } else {
            self.assemble(&skill, Some(input.get()), &mut warnings)?
        };
        let chosen = self.providers.choose(skill.model.as_deref()).await?;
        let records =
            !options.without_memory && !options.without_record && !options.dry_run && !stateless;
        if records {
            let mut writer = self.writer()?;
            writer.check(Kind::Execution)?;
            warnings.extend(mended(writer.take_mended()));
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
            injected: assembly.injected.clone(),
            omitted: assembly.omitted.clone(),
            withheld: assembly.withheld.clone(),
            layers: assembly.layers.clone(),
            nearest_case: None,
            sample_input,
            stateless,
            warnings,
        };
        if options.dry_run {
            return Ok(report);
        }
        let start = Instant::now();
        let answer = match &chosen {
            Chosen::Offline => self.answer_offline(&skills, &skill, &input, &mut report)?,
            Chosen::Model(llm) => match self.answer(llm, &assembly, &input, progress).await {
                Ok(answer) => answer,
                Err(error) => {
                    report.latency_ms = milliseconds(start.elapsed());
                    if !records {
                        return Err(error.into());
                    }
                    return Err(self.failed(&report, &input, session, llm, error));
                }
            },
        };
        report.outcome = Some(Outcome::PendingReview);
        // What is answered is what is stored of it.
        let mut left_out = self.clean(&mut report.output, &answer.output);
        report.model_used = answer.model;
        report.cost_usd = answer.cost_usd;
        report.latency_ms = answer.latency_ms;
        report.usage = answer.usage;
        report.nearest_case = answer.nearest_case;
        if records {
            match self.record(&report, &input, session) {
                Ok((id, of_record, trouble)) => {
                    report.execution_id = Some(id);
                    left_out.extend(of_record);
                    report.warnings.extend(trouble);
                }
                // Somebody has switched the memory off meanwhile: what was answered is still given.
                Err(Error::Store(off @ store::Error::Disabled { .. })) => {
                    let said = format!("not recorded: {off} since the run began");
                    report.warnings.push(said);
                }
                Err(error) => return Err(error),
            }
        }
        report.warnings.extend(kept_out(left_out));
        Ok(report)
    }

    /// Puts what may be shown of an output into `into`; answers the kinds of what may not.
    #[expect(clippy::unused_self, reason = "a step of the verb")]
    fn clean(&self, into: &mut Box<RawValue>, output: &RawValue) -> Vec<&'static str> {
        let redacted = guard::redact_json(output.get());
        // JSON without its secrets is JSON; if it were not, nothing of it would be shown.
        *into = serde_json::from_str(&redacted.text).unwrap_or_else(|_| RawValue::NULL.to_owned());
        redacted.found
    }
}

/// What a run says that has no memory.
fn says_stateless(how: &str) -> String {
    format!("stateless: {how}; no rule was read, and the run is not recorded")
}

/// The input that was given, or the skill's sample and its name.
fn input_or_sample(
    skills: &Skills,
    skill: &Skill,
    given: Option<Box<RawValue>>,
) -> Result<(Box<RawValue>, Option<String>), Error> {
    if let Some(input) = given {
        return Ok((input, None));
    }
    let Some(path) = skills.sample_input(&skill.path)? else {
        return Err(Error::NoInput(skill.path.clone()));
    };
    let text = skills.read(&path)?.unwrap_or_default();
    let shown = path
        .strip_prefix(skills.project())
        .unwrap_or(&path)
        .display()
        .to_string();
    match serde_json::from_str(&text) {
        Ok(input) => Ok((input, Some(shown))),
        Err(source) => Err(Error::NotJson { path, source }),
    }
}
