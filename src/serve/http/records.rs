//! Executions, corrections and rules: listed, added, and rules edited, as another program has worded them.
//!
//! For a skill outside the token's scope, a write is refused and a list is empty.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::model::{Execution, Kind, Outcome, Record, Reflexion, SkillPath, Usage};
use crate::rules::{self, AddedRule, CorrectOptions};
use crate::serve::arguments::{LISTED, LONGEST_NAME, LONGEST_TEXT, text, word};
use crate::serve::operations::screened;
use crate::store::Selection;
use crate::{review, skills};

use super::input::{Answer, Body, Names, Parameters, reply, skill};
use super::problem::Problem;
use super::route;
use super::state::{Call, Use};
use super::users::refuse_agents;

/// Selection of records.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    /// Only records of this skill, as `domain/skill`.
    #[schemars(regex(pattern = route::SKILL))]
    skill: Option<String>,
    /// Maximum number of records, newest first, 1 to 500; default 20.
    #[schemars(range(min = LISTED.least, max = LISTED.most))]
    limit: Option<i64>,
}

impl Page {
    fn read(&self) -> Result<(Option<SkillPath>, usize), Problem> {
        let of = self.skill.as_deref().map(skill).transpose()?;
        Ok((of, LISTED.check("limit", self.limit)?))
    }
}

/// `GET /v1/executions`, `/v1/corrections` and `/v1/reflexions`: the records below the name of their kind, and
/// warnings.
pub(crate) async fn list<R: Record + 'static>(
    call: Call,
    Parameters(page): Parameters<Page>,
) -> Answer {
    let (skill, limit) = page.read()?;
    let name = R::KIND.plural();
    let why = format!("serve {name}");
    let work = call.work(Use::Any, &why, async move |workspace| {
        let newest = Selection::newest(skill.as_ref(), limit);
        let mut found = workspace.store.list::<R>(&newest)?;
        found.records.reverse();
        let warnings: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
        let listed = [
            (name, to_raw_value(&found.records)?),
            ("warnings", to_raw_value(&warnings)?),
        ];
        Ok(BTreeMap::from(listed))
    });
    reply(&work.await?)
}

/// Execution that ran in another program.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecutionBody {
    /// Skill, as `domain/skill`.
    #[schemars(regex(pattern = route::SKILL))]
    skill: String,
    /// Input of the skill.
    #[schemars(with = "Value")]
    input: Box<RawValue>,
    /// Output of the skill.
    #[schemars(with = "Value")]
    output: Box<RawValue>,
    /// Verdict; `pending_review` if absent. A token of an agent cannot accept.
    #[schemars(extend("enum" = Outcome::NAMES))]
    outcome: Option<Outcome>,
    /// Cost in US dollars.
    #[schemars(range(min = 0))]
    cost_usd: Option<f64>,
    /// Wall-clock time in milliseconds.
    #[schemars(range(min = 0))]
    latency_ms: Option<f64>,
    /// Model, as `provider/model`.
    model_used: Option<String>,
    /// Token counts.
    usage: Option<Usage>,
    /// Ids of the rules in its prompt.
    #[serde(default)]
    reflexions_injected: Vec<String>,
}

/// `POST /v1/executions`
pub(crate) async fn log_execution(
    call: Call,
    Body(body): Body<ExecutionBody>,
) -> Result<(StatusCode, Response), Problem> {
    let outcome = body.outcome.unwrap_or_default();
    word("outcome", outcome.as_str(), Outcome::NAMES)?;
    // An accepted output answers for the person.
    if outcome == Outcome::Accepted {
        refuse_agents(&call, "an agent cannot accept an output")?;
    }
    let execution = Execution {
        skill: skill(&body.skill)?.to_string(),
        input_summary: body.input,
        output_summary: body.output,
        outcome,
        cost_usd: positive("cost_usd", body.cost_usd)?,
        latency_ms: positive("latency_ms", body.latency_ms)?,
        model_used: body.model_used.unwrap_or_default(),
        usage: body.usage,
        reflexions_injected: body.reflexions_injected,
        ..Execution::default()
    };
    let how = if execution.reflexions_injected.is_empty() {
        Use::Adds
    } else {
        Use::Writes
    };
    let work = call.work(how, "serve executions", async move |workspace| {
        Ok(skills::log_execution(workspace, execution)?)
    });
    Ok((StatusCode::CREATED, reply(&work.await?)?))
}

fn positive(name: &str, given: Option<f64>) -> Result<Option<f64>, Problem> {
    match given {
        Some(number) if number < 0.0 => Err(Problem::unfit(
            format!("`{name}` is out of range: {number}"),
            "give a number that is not negative",
        )),
        given => Ok(given),
    }
}

/// Correction of an execution.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CorrectionBody {
    /// Skill, as `domain/skill`.
    #[schemars(regex(pattern = route::SKILL))]
    skill: String,
    /// Execution id, a prefix of one, or `latest`; absent for a rule without an example.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    execution_id: Option<String>,
    /// Text of the correction: the mistake and the change.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    correction: String,
    /// Output as it should have been.
    #[schemars(with = "Option<Value>")]
    expected_output: Option<Box<RawValue>>,
    /// `true` keeps the correction as a rule even if it reads like a remark about one output.
    #[serde(default)]
    as_rule: bool,
}

/// `POST /v1/corrections`
pub(crate) async fn correct(call: Call, Body(body): Body<CorrectionBody>) -> Answer {
    let by_agent = call.caller.is_agent;
    if by_agent {
        screened(&body.correction)?;
    }
    let options = CorrectOptions {
        skill: skill(&body.skill)?,
        execution: body
            .execution_id
            .map(|id| text("execution_id", id, LONGEST_NAME))
            .transpose()?,
        correction: text("correction", body.correction, LONGEST_TEXT)?,
        expected: body.expected_output,
        assertions: Vec::new(),
        is_rule: body.as_rule,
        by_agent,
    };
    let work = call.work(Use::Any, "serve corrections", async move |workspace| {
        Ok(rules::correct(workspace, options, &mut |_| {}).await?)
    });
    reply(&work.await?)
}

/// Confidence of a rule that names none, as in the source document.
const USUAL: f64 = 0.8;

/// `GET /v1/reflexions/{id}`
pub(crate) async fn reflexion(call: Call, Names(id): Names<String>) -> Answer {
    let work = call.work(Use::Any, "serve reflexions", async move |workspace| {
        let id = workspace.store.resolve(Kind::Reflexion, &id, None)?;
        Ok(workspace.store.get::<Reflexion>(&id)?)
    });
    reply(&work.await?)
}

/// Rule that another program has worded.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReflexionBody {
    /// Skill, as `domain/skill`.
    #[schemars(regex(pattern = route::SKILL))]
    skill: String,
    /// Guidance for the prompt.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    rule: String,
    /// Condition under which the rule applies.
    #[serde(default)]
    applies_when: String,
    /// The mistake.
    #[serde(default)]
    mistake: String,
    /// Cause of the mistake.
    #[serde(default)]
    root_cause: String,
    /// Id of the correction that the rule comes from.
    #[serde(default)]
    correction_id: String,
    /// From 0 to 1; default 0.8.
    #[schemars(range(min = 0, max = 1))]
    confidence: Option<f64>,
    /// `true` if a test of the caller holds with the rule and fails without it.
    #[serde(default)]
    validated_by_test: bool,
    /// Ids of these tests.
    #[serde(default)]
    generated_test_ids: Vec<String>,
}

impl ReflexionBody {
    fn read(self) -> Result<Reflexion, Problem> {
        let confidence = self.confidence.unwrap_or(USUAL);
        if !(0.0..=1.0).contains(&confidence) {
            return Err(Problem::unfit(
                format!("`confidence` is out of range: {confidence}"),
                "give a number from 0 to 1",
            ));
        }
        Ok(Reflexion {
            skill: skill(&self.skill)?.to_string(),
            correction_id: self.correction_id,
            mistake: self.mistake,
            root_cause: self.root_cause,
            rule: text("rule", self.rule, LONGEST_TEXT)?,
            applies_when: self.applies_when,
            confidence: Some(confidence),
            validated_by_test: self.validated_by_test,
            generated_test_ids: self.generated_test_ids,
            ..Reflexion::default()
        })
    }
}

/// `POST /v1/reflexions`
pub(crate) async fn add_reflexion(
    call: Call,
    Body(body): Body<ReflexionBody>,
) -> Result<(StatusCode, Response), Problem> {
    let by_agent = call.caller.is_agent;
    let rule = body.read()?;
    if by_agent {
        for text in [
            &rule.rule, &rule.applies_when, &rule.mistake, &rule.root_cause,
        ] {
            screened(text)?;
        }
    }
    let work = call.work(Use::Writes, "serve reflexions", async move |workspace| {
        Ok(rules::add_rule(workspace, rule, by_agent)?)
    });
    let added: AddedRule = work.await?;
    Ok((StatusCode::CREATED, reply(&added)?))
}

/// `PATCH /v1/reflexions/{id}`
pub(crate) async fn update_reflexion(
    call: Call,
    Names(id): Names<String>,
    Body(updates): Body<BTreeMap<String, Value>>,
) -> Answer {
    refuse_agents(&call, "an agent cannot edit a rule")?;
    let given = updates.into_iter().map(|(field, value)| match value {
        Value::String(text) => Ok((field, text)),
        value if value.is_null() || review::is_text(Kind::Reflexion, &field) => {
            let found = if value.is_null() { "null" } else { "no text" };
            let message = format!("`{}` is {found}", field.escape_debug());
            Err(Problem::unfit(message, "give it a value, or leave it out"))
        }
        value => Ok((field, value.to_string())),
    });
    let given: Vec<(String, String)> = given.collect::<Result<_, _>>()?;
    let work = call.work(Use::Writes, "serve reflexions", async move |workspace| {
        // Only rules are edited here.
        let id = workspace.store.resolve(Kind::Reflexion, &id, None)?;
        Ok(review::edit(workspace, &id, &given)?)
    });
    reply(&work.await?)
}
