//! Executions from OpenTelemetry traces: an OTLP/JSON exporter sends its spans here, and every
//! agent run named `domain/skill` is stored.
//!
//! Spans that are not runs (tools, requests) are ignored. Runs that cannot be stored are reported
//! in `partialSuccess`, as the protocol defines it.
//!
//! Deliberately absent: storage of spans. An export that is sent twice is stored twice, except for
//! runs of this program, which carry their execution id.

use std::collections::BTreeSet;

use axum::extract::{Extension, State};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::engine::{self, ExecutionOptions};
use crate::model::{Execution, Outcome, Reflexion, SkillPath, Usage};
use crate::serve::token::Caller;
use crate::store;
use crate::transcript::otlp::{Traced, spans, traced};
use crate::workspace::Workspace;

use super::super::input::Body;
use super::super::problem::Problem;
use super::super::reply::reply;
use super::super::state::Server;

/// Spans of an export, in the JSON format of the protocol.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TracesBody {
    /// Resources with their spans.
    resource_spans: Vec<Value>,
}

/// Result of an export.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Taken {
    /// Rejected runs; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_success: Option<Partial>,
    /// Ids of the stored executions.
    executions: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Partial {
    /// Number as text: the protocol writes 64-bit numbers this way.
    rejected_spans: String,
    error_message: String,
}

/// `POST /v1/traces`
pub(crate) async fn traces(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Body(body): Body<TracesBody>,
) -> Result<Response, Problem> {
    let export = json!({ "resourceSpans": body.resource_spans });
    of_export(&server, &caller, &export).await
}

/// Returns `true` if a body is an export of spans.
pub(crate) fn is_export(body: &Value) -> bool {
    body.get("resourceSpans").is_some()
}

/// Stores the runs of an export.
pub(crate) async fn of_export(
    server: &Server,
    caller: &Caller,
    body: &Value,
) -> Result<Response, Problem> {
    let spans = spans(body).map_err(|reason| {
        Problem::unfit(
            format!("the body is not an export of spans: {reason}"),
            "point OTEL_EXPORTER_OTLP_TRACES_ENDPOINT here, with the protocol `http/json`",
        )
    })?;
    let runs: Vec<Traced> = spans.iter().filter_map(traced).collect();
    if runs.is_empty() {
        return reply(&Taken::default());
    }
    let work = server.write(caller, "serve traces", move |workspace| {
        Ok(keep(workspace, runs))
    });
    reply(&work.await?)
}

/// Stores the valid runs.
fn keep(workspace: &Workspace, runs: Vec<Traced>) -> Taken {
    let mut taken = Taken::default();
    let mut reasons = BTreeSet::new();
    let mut rejected = 0_u64;
    for run in runs {
        if is_known(workspace, &run) {
            continue;
        }
        match kept(workspace, run) {
            Ok(id) => taken.executions.push(id),
            Err(reason) => {
                rejected += 1;
                reasons.insert(reason);
            }
        }
    }
    taken.partial_success = (rejected > 0).then(|| Partial {
        rejected_spans: rejected.to_string(),
        error_message: reasons.into_iter().collect::<Vec<_>>().join("; "),
    });
    taken
}

/// Returns `true` if a run is an execution of this memory. Another memory may use the same id for
/// another run.
fn is_known(workspace: &Workspace, run: &Traced) -> bool {
    let Some(id) = &run.execution_id else {
        return false;
    };
    let known = workspace.store.get::<Execution>(id);
    known.is_ok_and(|known| {
        let same_time = known
            .latency_ms
            .is_some_and(|ms| (ms - run.latency_ms).abs() < 0.01);
        known.skill == run.skill && known.model_used == run.model && same_time
    })
}

fn kept(workspace: &Workspace, run: Traced) -> Result<String, String> {
    let skill: SkillPath = run
        .skill
        .parse()
        .map_err(|_| "`gen_ai.agent.name` is not `domain/skill`".to_owned())?;
    // Unknown rules are dropped from the run: they may belong to another workspace or be deleted.
    let is_own = |id: &String| {
        let rule = workspace.store.get::<Reflexion>(id);
        rule.is_ok_and(|rule| rule.skill == run.skill)
    };
    let raw = |text: Option<&String>| {
        to_raw_value(&text).map_err(|error| store::Error::from(error).to_string())
    };
    let options = ExecutionOptions {
        skill,
        input: raw(run.input.as_ref())?,
        output: raw(run.output.as_ref().or(run.error.as_ref()))?,
        outcome: if run.error.is_some() {
            Outcome::Error
        } else {
            Outcome::PendingReview
        },
        cost_usd: run.cost_usd.filter(|cost| *cost >= 0.0),
        latency_ms: Some(run.latency_ms),
        model_used: run.model,
        usage: run
            .input_tokens
            .zip(run.output_tokens)
            .map(|(input_tokens, output_tokens)| Usage {
                input_tokens,
                output_tokens,
            }),
        reflexions_injected: run
            .injected
            .iter()
            .filter(|id| is_own(id))
            .cloned()
            .collect(),
    };
    let logged = engine::log_execution(workspace, options).map_err(|error| error.to_string())?;
    Ok(logged.execution_id)
}
