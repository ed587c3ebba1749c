//! Preview of a correction: the request that a model would get, and the rule without a model.
//!
//! Writes nothing, and asks no model.

use serde::Serialize;
use serde_json::Value;

use super::CorrectOptions;
use super::reflection::{choose, context, neighbours, request};
use super::storage::{Checked, check};
use crate::rules::reflect::{Neighbour, Reflection, offline};
use crate::store::workspace::providers::Chosen;
use crate::store::workspace::{Error, Workspace, dollars};

/// Usual length of an answer in tokens, for the price estimate.
const USUAL_ANSWER: u64 = 300;
/// Bytes of a question per token, for the price estimate.
const BYTES_PER_TOKEN: u64 = 4;

/// Preview of a correction.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct CorrectPreview {
    /// Always true: nothing was written, and no model was asked.
    pub dry_run: bool,
    /// Id of the execution; `None` without one.
    pub execution_id: Option<String>,
    /// Model that would be asked, as `provider/model`; `offline` if none would.
    pub model: String,
    /// Estimated price of the call in US dollars; `None` if it is not known.
    pub cost_usd: Option<f64>,
    /// Request to the model. It is shown without a model, too.
    pub request: PreviewedRequest,
    /// Existing rules in the request, nearest first.
    pub neighbours: Vec<Neighbour>,
    /// Outcome without a model.
    pub without_model: PreviewedRule,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Request to a model.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct PreviewedRequest {
    /// Instructions.
    pub system: String,
    /// Correction with its context.
    pub user: String,
    /// JSON Schema of the answer.
    pub schema: Option<Value>,
}

/// Rule that a correction would make without a model.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct PreviewedRule {
    /// Text of the rule; `None` if none would be learned.
    pub rule: Option<String>,
    /// Condition of the rule; empty if there is none.
    pub applies_when: String,
    /// Specificity of the correction, from 0 to 1.
    pub confidence: f64,
    /// Reason why there would be no rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_learned: Option<String>,
    /// Reason why the rule would be a candidate until a person approves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<&'static str>,
}

/// Returns what a correction would send to a model, and what it would make without one.
pub async fn preview_correction(
    workspace: &Workspace,
    options: CorrectOptions,
) -> Result<CorrectPreview, Error> {
    let Checked {
        options,
        execution,
        warnings,
    } = check(workspace, options)?;
    let chosen = choose(workspace, &options).await?;
    let neighbours = neighbours(workspace, &options)?;
    let context = context(&options, execution.as_ref(), &neighbours);
    let request = request(workspace, &context);
    let bytes = (request.system.len() + request.user.len()) as u64;
    let cost_usd = match &chosen {
        Chosen::Model(llm) => llm.estimate(bytes / BYTES_PER_TOKEN, USUAL_ANSWER),
        Chosen::Offline => Some(0.0),
    };
    Ok(CorrectPreview {
        dry_run: true,
        execution_id: execution.as_ref().map(|run| run.execution_id.clone()),
        model: chosen.name().to_owned(),
        cost_usd: cost_usd.map(dollars),
        without_model: PreviewedRule::of(offline(&context)),
        request: PreviewedRequest {
            system: request.system,
            user: request.user,
            schema: request.schema.map(|schema| schema.json),
        },
        neighbours,
        warnings,
    })
}

impl PreviewedRule {
    fn of(reflection: Reflection) -> Self {
        match reflection {
            Reflection::Rule(draft) => Self {
                rule: Some(draft.rule),
                applies_when: draft.applies_when,
                confidence: draft.confidence,
                not_learned: None,
                doubt: draft.doubt,
            },
            Reflection::Nothing { reason, confidence } => Self {
                rule: None,
                applies_when: String::new(),
                confidence,
                not_learned: Some(reason),
                doubt: None,
            },
        }
    }
}
