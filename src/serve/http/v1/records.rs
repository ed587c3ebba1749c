//! Executions and corrections.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::to_raw_value};

use crate::model::{Correction, Execution, Outcome, SkillPath, Usage};
use crate::rules::{self, CorrectOptions};
use crate::serve::arguments::{LISTED, LONGEST_NAME, LONGEST_TEXT, text};
use crate::serve::operations::screened;
use crate::serve::token::Caller;
use crate::skills::{self, ExecutionOptions, LoggedExecution};
use crate::store;
use crate::store::workspace::Workspace;

use super::super::input::reply;
use super::super::input::{Body, Parameters};
use super::super::problem::Problem;
use super::super::route;
use super::super::state::Server;
use super::skill;

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
pub(crate) async fn executions(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Parameters(page): Parameters<Page>,
) -> Result<Response, Problem> {
    let (skill, limit) = page.read()?;
    let work = server.work(&caller, "serve executions", move |workspace| {
        Ok(skills::records::<Execution>(
            workspace,
            skill.as_ref(),
            limit,
        )?)
    });
    let found = work.await?;
    reply(&Executions {
        executions: found.records,
        warnings: found.warnings,
    })
}

/// `GET /v1/corrections`
pub(crate) async fn corrections(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Parameters(page): Parameters<Page>,
) -> Result<Response, Problem> {
    let (skill, limit) = page.read()?;
    let work = server.work(&caller, "serve corrections", move |workspace| {
        Ok(skills::records::<Correction>(
            workspace,
            skill.as_ref(),
            limit,
        )?)
    });
    let found = work.await?;
    reply(&Corrections {
        corrections: found.records,
        warnings: found.warnings,
    })
}

/// Execution that ran in another program.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecutionBody {
    /// Skill, as `domain/skill`.
    #[schemars(regex(pattern = route::SKILL))]
    skill: String,
    /// Input of the skill.
    input: Value,
    /// Output of the skill.
    output: Value,
    /// Verdict; `pending_review` if absent.
    outcome: Option<Verdict>,
    /// Cost in US dollars.
    #[schemars(range(min = 0))]
    cost_usd: Option<f64>,
    /// Wall-clock time in milliseconds.
    #[schemars(range(min = 0))]
    latency_ms: Option<f64>,
    /// Model, as `provider/model`.
    model_used: Option<String>,
    /// Token counts.
    usage: Option<Tokens>,
    /// Ids of the rules in its prompt.
    #[serde(default)]
    reflexions_injected: Vec<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Accepted,
    Rejected,
    PendingReview,
    Error,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Tokens {
    /// Input tokens.
    input_tokens: u64,
    /// Output tokens.
    output_tokens: u64,
}

/// `POST /v1/executions`
pub(crate) async fn log_execution(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Body(body): Body<ExecutionBody>,
) -> Result<(StatusCode, Response), Problem> {
    let options = ExecutionOptions {
        skill: skill(&body.skill)?,
        input: to_raw_value(&body.input).map_err(store::Error::from)?,
        output: to_raw_value(&body.output).map_err(store::Error::from)?,
        outcome: match body.outcome {
            Some(Verdict::Accepted) => Outcome::Accepted,
            Some(Verdict::Rejected) => Outcome::Rejected,
            Some(Verdict::Error) => Outcome::Error,
            Some(Verdict::PendingReview) | None => Outcome::PendingReview,
        },
        cost_usd: positive("cost_usd", body.cost_usd)?,
        latency_ms: positive("latency_ms", body.latency_ms)?,
        model_used: body.model_used.unwrap_or_default(),
        usage: body.usage.map(|tokens| Usage {
            input_tokens: tokens.input_tokens,
            output_tokens: tokens.output_tokens,
        }),
        reflexions_injected: body.reflexions_injected,
    };
    let has_rules = !options.reflexions_injected.is_empty();
    let why = "serve executions";
    let work = move |workspace: &Workspace| Ok(skills::log_execution(workspace, options)?);
    let logged: LoggedExecution = if has_rules {
        server.write(&caller, why, work).await?
    } else {
        server.add(&caller, why, work).await?
    };
    Ok((StatusCode::CREATED, reply(&logged)?))
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
    expected_output: Option<Value>,
    /// `true` keeps the correction as a rule even if it reads like a remark about one output.
    #[serde(default)]
    as_rule: bool,
    /// `true` replaces the rules that the new rule contradicts.
    #[serde(default)]
    supersede: bool,
}

/// `POST /v1/corrections`
pub(crate) async fn correct(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Body(body): Body<CorrectionBody>,
) -> Result<Response, Problem> {
    let expected = body.expected_output.as_ref().map(to_raw_value).transpose();
    if caller.is_agent() {
        screened(&body.correction)?;
    }
    let options = CorrectOptions {
        skill: skill(&body.skill)?,
        execution: body
            .execution_id
            .map(|id| text("execution_id", id, LONGEST_NAME))
            .transpose()?,
        correction: text("correction", body.correction, LONGEST_TEXT)?,
        expected: expected.map_err(store::Error::from)?,
        assertions: Vec::new(),
        is_rule: body.as_rule,
        supersede: body.supersede,
        by_agent: caller.is_agent(),
    };
    let work = server.work_with_model(&caller, "serve corrections", async move |workspace| {
        Ok(rules::correct(workspace, options, &mut |_| {}).await?)
    });
    reply(&work.await?)
}
