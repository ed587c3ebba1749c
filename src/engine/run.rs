//! Runs a skill: prompt, answer, record.
//!
//! The store is tried before a model is paid, and an answer that was paid is kept whatever happens
//! afterwards: in the store, or else in a file of its own that the error names.

use std::time::Instant;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::guard;
use crate::llm::{self, Llm, OnProgress, Reply, Request};
use crate::model::{
    ActionType, Execution, ExecutionLog, Kind, LogStatus, NearestCase, Outcome, Session, SkillPath,
    Usage,
};
use crate::prompt::{Assembly, Injected, LayerSize, Omitted};
use crate::skill::{Skill, Skills};
use crate::store::{self, Selection};

use super::door::kept_out;
use super::model::Chosen;
use super::session::data;
use super::{Engine, Error, dollars, evidence, mended, milliseconds, nearest};

/// What offline answers are recorded as.
const OFFLINE: &str = "offline/nearest-case";

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

/// An answer, whoever gave it.
struct Answer {
    output: Box<RawValue>,
    model: String,
    cost_usd: Option<f64>,
    latency_ms: f64,
    usage: Option<Usage>,
    nearest_case: Option<NearestCase>,
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

    async fn answer(
        &self,
        llm: &Llm,
        assembly: &Assembly,
        input: &RawValue,
        progress: OnProgress<'_>,
    ) -> Result<Answer, llm::Error> {
        let request = Request {
            system: assembly.prompt.clone(),
            user: input.get().to_owned(),
            schema: None,
            max_tokens: self.settings.max_output_tokens,
        };
        let Reply {
            text,
            model,
            usage,
            cost_usd,
            latency,
            ..
        } = llm.ask(&request, progress).await?;
        Ok(Answer {
            output: output(&text),
            model,
            cost_usd: cost_usd.map(dollars),
            latency_ms: milliseconds(latency),
            usage: usage.map(|u| Usage {
                input_tokens: u.input_tokens,
                output_tokens: u.output_tokens,
            }),
            nearest_case: None,
        })
    }

    /// Lets the nearest known case answer.
    fn answer_offline(
        &self,
        skills: &Skills,
        skill: &Skill,
        input: &RawValue,
        report: &mut RunReport,
    ) -> Result<Answer, Error> {
        let start = Instant::now();
        let of_skill = Selection {
            skill: Some(&skill.path),
            newest: None,
        };
        let warnings = &mut report.warnings;
        let examples = skills.examples(&skill.path)?;
        warnings.extend(examples.problems.iter().map(ToString::to_string));
        let (executions, corrections) = if report.stateless {
            (Vec::new(), Vec::new())
        } else {
            let executions = self.store.list(&of_skill)?.records;
            (executions, self.store.list(&of_skill)?.records)
        };
        let cases = nearest::cases(examples.cases, &executions, &corrections);
        let known = cases.len();
        let (found, greatest) = nearest::nearest(cases, input, self.settings.min_similarity);
        let Some(nearest::Nearest { case, similarity }) = found else {
            return Err(Error::NoAnswer {
                skill: skill.path.clone(),
                nearest: match known {
                    0 => "it has no cases yet".to_owned(),
                    _ => format!("the nearest of {known} is {:.0}% alike", greatest * 100.0),
                },
            });
        };
        if let Some(correction) = &case.wrong {
            warnings.push(format!(
                "this output is known to be wrong: {correction} corrected it without saying what it \
                 should be; give that with `memctl correct {} --execution-id … --expected FILE`",
                skill.path
            ));
        }
        Ok(Answer {
            output: case.output,
            model: OFFLINE.to_owned(),
            cost_usd: Some(0.0),
            latency_ms: milliseconds(start.elapsed()),
            usage: None,
            nearest_case: Some(NearestCase {
                source: case.source,
                similarity: (similarity * 1000.0).round() / 1000.0,
            }),
        })
    }

    /// Puts what may be shown of an output into `into`; answers the kinds of what may not.
    #[expect(clippy::unused_self, reason = "a step of the verb")]
    fn clean(&self, into: &mut Box<RawValue>, output: &RawValue) -> Vec<&'static str> {
        let redacted = guard::redact_json(output.get());
        // JSON without its secrets is JSON; if it were not, nothing of it would be shown.
        *into = serde_json::from_str(&redacted.text).unwrap_or_else(|_| RawValue::NULL.to_owned());
        redacted.found
    }

    /// Records an execution. Answers its id, the kinds of what was left out of it, and what went wrong
    /// and did not stop it.
    fn record(
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
    fn failed(
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

/// What a model's answer means: the JSON object that it is, alone or in one code fence, else its
/// text.
pub(super) fn output(text: &str) -> Box<RawValue> {
    let trimmed = text.trim();
    let inner = trimmed
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'))
        .map_or(trimmed, |(_, inner)| inner.trim());
    let object = Some(inner).filter(|inner| inner.starts_with('{'));
    object
        .and_then(|object| serde_json::from_str(object).ok())
        .or_else(|| serde_json::value::to_raw_value(&json!({ "raw_output": text })).ok())
        .unwrap_or_else(|| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_its_object_or_its_text() {
        let check = |text: &str, expected: &str| assert_eq!(output(text).get(), expected);
        check(" {\"a\": 1.0} \n", "{\"a\": 1.0}");
        check("```json\n{\"a\": 1}\n```", "{\"a\": 1}");
        check("Here: {\"a\": 1}", r#"{"raw_output":"Here: {\"a\": 1}"}"#);
        check("[1, 2]", r#"{"raw_output":"[1, 2]"}"#);
        check("{broken", r#"{"raw_output":"{broken"}"#);
        check("", r#"{"raw_output":""}"#);
    }
}
