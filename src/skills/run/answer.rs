//! Answers of a run: from a model, or offline from the nearest known case.

use std::time::Instant;

use serde_json::json;
use serde_json::value::RawValue;

use super::super::nearest::{Case, Nearest, nearest};
use super::{RunReport, requested_files};
use crate::model::error::Kind as ErrorKind;
use crate::model::{NearestCase, Outcome, SkillPath, Usage};
use crate::skills::agent_programs::installed_agents;
use crate::skills::prompt::{Assembly, Injected, LayerSize, Omitted};
use crate::store::skill::{Skill, Skills};
use crate::store::workspace::{Error, Workspace, dollars, milliseconds};
use memctl_llm::{Llm, OnProgress, Request};

/// Similarity of a case that answers although nobody asked for an offline answer: nearly the same
/// input, so that a model would have little to add.
const NEARLY_THE_SAME: f64 = 0.9;
/// Model name of offline answers in records.
const OFFLINE: &str = "offline/nearest-case";

/// Answer of a model or of the nearest known case.
pub(super) struct Answer {
    pub(super) output: Box<RawValue>,
    pub(super) model: String,
    pub(super) cost_usd: Option<f64>,
    pub(super) latency_ms: f64,
    pub(super) usage: Option<Usage>,
    pub(super) nearest_case: Option<NearestCase>,
}

impl Answer {
    /// Returns the answer of a run that asked no model: `null`, at no known cost.
    pub(super) fn missing(model: &str) -> Self {
        Self {
            output: RawValue::NULL.to_owned(),
            model: model.to_owned(),
            cost_usd: None,
            latency_ms: 0.0,
            usage: None,
            nearest_case: None,
        }
    }
}

/// Answers with a model. One that asks for files of the skill is called once more, with them.
pub(super) async fn answer(
    workspace: &Workspace,
    (skills, skill): (&Skills, &Skill),
    llm: &Llm,
    assembly: &Assembly,
    input: &RawValue,
    progress: OnProgress<'_>,
) -> Result<Answer, memctl_llm::Error> {
    let mut request = Request {
        system: assembly.prompt.clone(),
        user: input.get().to_owned(),
        schema: None,
        max_tokens: workspace.settings.max_output_tokens,
    };
    let mut reply = llm.ask(&request, progress).await?;
    if let Some(files) = requested_files(skills, skill, &reply.text) {
        request.system.push_str(&files);
        let asking = std::mem::replace(&mut reply, llm.ask(&request, progress).await?);
        reply.latency += asking.latency;
        reply.cost_usd = reply.cost_usd.zip(asking.cost_usd).map(|(a, b)| a + b);
        reply.usage = reply.usage.zip(asking.usage).map(|(mut all, more)| {
            all.input_tokens += more.input_tokens;
            all.output_tokens += more.output_tokens;
            all
        });
    }
    Ok(Answer {
        output: output(&reply.text),
        model: reply.model,
        cost_usd: reply.cost_usd.map(dollars),
        latency_ms: milliseconds(reply.latency),
        usage: reply.usage.map(|u| Usage {
            input_tokens: u.input_tokens,
            output_tokens: u.output_tokens,
        }),
        nearest_case: None,
    })
}

/// Answers with the nearest known case. Where nobody asked for that, it must be nearly the same as
/// the input.
pub(super) fn answer_offline(
    workspace: &Workspace,
    skills: &Skills,
    skill: &Skill,
    input: &RawValue,
    state: &mut RunState,
) -> Result<Answer, Error> {
    let start = Instant::now();
    let warnings = &mut state.warnings;
    let examples = skills.examples(&skill.path)?;
    warnings.extend(examples.problems.iter().map(ToString::to_string));
    let store = (!state.stateless).then_some(&workspace.store);
    let floor = workspace.settings.min_similarity;
    let found = nearest(store, &skill.path, &examples.cases, input, floor)?;
    let providers = &workspace.providers;
    let asked = providers.asks_for_offline();
    let (nearest, replayable) = match found {
        Nearest::Case(case) if asked || case.similarity >= NEARLY_THE_SAME => {
            return Ok(of_case(case, &skill.path, start, warnings));
        }
        Nearest::Case(case) => (
            format!("the nearest is {} alike", percent(case.similarity)),
            true,
        ),
        Nearest::TooFar => (format!("none is {} alike", percent(floor)), false),
        Nearest::NoCases => ("it has no cases yet".to_owned(), false),
    };
    let skill = skill.path.clone();
    if asked {
        let message =
            format!("no known case of `{skill}` is near enough to this input ({nearest})");
        let hint = format!(
            "add a case to `skills/{skill}/examples/`, lower `offline.min_similarity`, or name a \
             model: memctl run {skill} --model PROVIDER/MODEL"
        );
        return Err(Error::Refused(ErrorKind::Model, message, hint));
    }
    let message =
        format!("no model is configured, and no known case answers for `{skill}` ({nearest})");
    let agents = installed_agents(&providers.search_path);
    let hint = ways_to_a_model(&skill, &agents, replayable);
    Err(Error::Refused(ErrorKind::Model, message, hint))
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

fn of_case(case: Case, skill: &SkillPath, start: Instant, warnings: &mut Vec<String>) -> Answer {
    if let Some(correction) = &case.wrong {
        warnings.push(format!(
            "this output is known to be wrong: {correction} corrected it without saying what it \
             should be; give that with `memctl correct {skill} --execution-id … --expected FILE`"
        ));
    }
    Answer {
        output: case.output,
        model: OFFLINE.to_owned(),
        cost_usd: Some(0.0),
        latency_ms: milliseconds(start.elapsed()),
        usage: None,
        nearest_case: Some(NearestCase {
            source: case.source,
            similarity: (case.similarity * 1000.0).round() / 1000.0,
        }),
    }
}

/// Parses a model's answer: a JSON object, bare or in one code fence. Any other text becomes
/// `raw_output`.
pub(crate) fn output(text: &str) -> Box<RawValue> {
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

/// Facts about a run that are known before its answer.
pub(crate) struct RunState {
    pub(crate) skill: SkillPath,
    /// Rules and procedures in the prompt.
    pub(crate) injected: Vec<Injected>,
    /// Rules and procedures for the skill that are not in the prompt.
    pub(crate) omitted: Vec<Omitted>,
    layers: Vec<LayerSize>,
    sample_input: Option<String>,
    /// `true` if the memory is switched off.
    pub(crate) stateless: bool,
    /// Non-fatal problems so far.
    pub(crate) warnings: Vec<String>,
}

impl RunState {
    /// Returns the state of a run with this prompt.
    pub(crate) fn new(
        skill: SkillPath,
        assembly: &Assembly,
        sample_input: Option<String>,
        stateless: bool,
        warnings: Vec<String>,
    ) -> Self {
        Self {
            skill,
            injected: assembly.injected.clone(),
            omitted: assembly.omitted.clone(),
            layers: assembly.layers.clone(),
            sample_input,
            stateless,
            warnings,
        }
    }

    /// Returns the report. `outcome` is `None` for a dry run, `execution_id` if nothing is recorded.
    pub(crate) fn report(
        self,
        answer: Answer,
        outcome: Option<Outcome>,
        execution_id: Option<String>,
    ) -> RunReport {
        RunReport {
            execution_id,
            skill: self.skill,
            outcome,
            output: answer.output,
            model_used: answer.model,
            cost_usd: answer.cost_usd,
            latency_ms: answer.latency_ms,
            usage: answer.usage,
            injected: self.injected,
            omitted: self.omitted,
            layers: self.layers,
            nearest_case: answer.nearest_case,
            sample_input: self.sample_input,
            stateless: self.stateless,
            warnings: self.warnings,
        }
    }
}

/// Lists the ways to a model, one a line: a program, a key, a server; and the nearest case, where
/// there is one.
fn ways_to_a_model(skill: &SkillPath, agents: &[String], replayable: bool) -> String {
    let agents: Vec<_> = match agents {
        [] => vec![format!(
            "an agent's program: memctl run {skill} --model 'exec:claude -p'"
        )],
        agents => agents
            .iter()
            .map(|agent| format!("an installed agent: memctl run {skill} --model '{agent}'"))
            .collect(),
    };
    let mut ways = agents;
    ways.push("a key: set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY".to_owned());
    ways.push(
        "a local server: start Ollama (port 11434), or set MEMCTL_LOCAL_BASE_URL to another"
            .to_owned(),
    );
    if replayable {
        ways.push(format!(
            "or replay the nearest case: memctl run {skill} --model offline"
        ));
    }
    format!("choose who answers\n  {}", ways.join("\n  "))
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
