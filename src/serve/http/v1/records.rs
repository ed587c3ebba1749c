//! Executions and corrections.

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::model::{Correction, Execution, Outcome, SkillPath, Usage};
use crate::rules::{self, CorrectOptions};
use crate::serve::arguments::{LISTED, LONGEST_NAME, LONGEST_TEXT, text, word};
use crate::serve::operations::screened;
use crate::skills;

use super::super::input::{Answer, Body, Parameters, reply};
use super::super::problem::Problem;
use super::super::route;
use super::super::state::{Call, Use};
use super::skill;
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
    pub(super) fn read(&self) -> Result<(Option<SkillPath>, usize), Problem> {
        let of = self.skill.as_deref().map(skill).transpose()?;
        Ok((of, LISTED.check("limit", self.limit)?))
    }
}

/// Executions, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Executions {
    executions: Vec<Execution>,
    warnings: Vec<String>,
}

/// Corrections, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Corrections {
    #[schemars(with = "Vec<Map<String, Value>>")]
    corrections: Vec<Correction>,
    warnings: Vec<String>,
}

/// `GET /v1/executions`
pub(crate) async fn executions(call: Call, Parameters(page): Parameters<Page>) -> Answer {
    let (skill, limit) = page.read()?;
    let work = call.work(Use::Any, "serve executions", async move |workspace| {
        let found = skills::records(workspace, skill.as_ref(), limit)?;
        Ok(Executions {
            executions: found.records,
            warnings: found.warnings,
        })
    });
    reply(&work.await?)
}

/// `GET /v1/corrections`
pub(crate) async fn corrections(call: Call, Parameters(page): Parameters<Page>) -> Answer {
    let (skill, limit) = page.read()?;
    let work = call.work(Use::Any, "serve corrections", async move |workspace| {
        let found = skills::records(workspace, skill.as_ref(), limit)?;
        Ok(Corrections {
            corrections: found.records,
            warnings: found.warnings,
        })
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
