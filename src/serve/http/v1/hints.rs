//! Hints for failures, and recording of failures and recoveries: the loop of the source document's
//! agents.
//!
//! Sessions belong to a user: two users with the same session name have two sessions.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::input::{Answer, Body, reply};
use super::super::problem::Problem;
use super::super::state::{Call, Use};
use crate::lessons::{HintOptions, Success};
use crate::serve::arguments::{
    HINTS, HINTS_OF_RECORDED, LONGEST_NAME, LONGEST_TEXT, SESSION, text,
};
use crate::serve::operations::hint_service;
use crate::store;
use crate::store::project::project_named;
use crate::store::workspace::Workspace;

/// Request for hints.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HintBody {
    /// Output of the failing call.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    error: String,
    /// Command or code that failed.
    command: Option<String>,
    /// Tool that failed, by its name in the agent host.
    tool: Option<String>,
    /// Project of the call, by the name or path of its directory. Lessons of one project are returned
    /// only there.
    project: Option<String>,
    /// Session that records the failure, and does not repeat ignored hints.
    session: Option<String>,
    /// Maximum number of hints, 1 to 20; default 3.
    #[schemars(range(min = HINTS.least, max = HINTS.most))]
    max_hints: Option<i64>,
}

/// `POST /v1/hints`
pub(crate) async fn hint(call: Call, Body(body): Body<HintBody>) -> Answer {
    let project = body.project.as_deref().and_then(project_named);
    let options = HintOptions {
        error: text("error", body.error, LONGEST_TEXT)?,
        tool: body.tool,
        command: body.command,
        session: body.session.map(|name| own(&call, &name)).transpose()?,
        max_hints: HINTS.check("max_hints", body.max_hints)?,
    };
    let work = call.work(Use::Any, "serve hints", async move |workspace| {
        Ok(hint_service(workspace, project.as_deref()).hint(&options)?)
    });
    reply(&work.await?)
}

/// Code that failed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FailureBody {
    /// Code or command.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    code: String,
    /// Error output.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    error: String,
    /// Project of the call, by the name or path of its directory.
    project: Option<String>,
    /// Session; default `default`.
    session: Option<String>,
    /// Maximum number of hints, 1 to 20; default 5.
    #[schemars(range(min = HINTS_OF_RECORDED.least, max = HINTS_OF_RECORDED.most))]
    max_hints: Option<i64>,
}

/// `POST /v1/failures`
pub(crate) async fn failure(call: Call, Body(body): Body<FailureBody>) -> Answer {
    let project = body.project.as_deref().and_then(project_named);
    let failure = HintOptions {
        error: text("error", body.error, LONGEST_TEXT)?,
        command: Some(text("code", body.code, LONGEST_TEXT)?),
        session: Some(own(&call, body.session.as_deref().unwrap_or(SESSION))?),
        max_hints: HINTS_OF_RECORDED.check("max_hints", body.max_hints)?,
        ..HintOptions::default()
    };
    let work = call.work(Use::Any, "serve failures", async move |workspace| {
        may_learn(workspace)?;
        Ok(hint_service(workspace, project.as_deref()).record_failure(&failure)?)
    });
    reply(&work.await?)
}

/// Code that works.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SuccessBody {
    /// Code or command.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    code: String,
    /// Output of the code.
    output: String,
    /// Session; default `default`.
    session: Option<String>,
}

/// `POST /v1/successes`
pub(crate) async fn success(call: Call, Body(body): Body<SuccessBody>) -> Answer {
    if body.output.len() > LONGEST_TEXT {
        return Err(Problem::unfit("`output` is too long", "send its end"));
    }
    let success = Success {
        session: own(&call, body.session.as_deref().unwrap_or(SESSION))?,
        code: text("code", body.code, LONGEST_TEXT)?,
        output: body.output,
    };
    let work = call.work(Use::Any, "serve successes", async move |workspace| {
        may_learn(workspace)?;
        Ok(hint_service(workspace, None).record_success(&success)?)
    });
    reply(&work.await?)
}

/// Checks that the caller may add patterns. They belong to no domain, so only a scope that can see
/// them can add them.
fn may_learn(workspace: &Workspace) -> Result<(), Problem> {
    if workspace.store.scope().allows(None) {
        return Ok(());
    }
    Err(store::Error::OutOfScope("procedures".to_owned()).into())
}

/// Name of a session of the caller.
fn own(call: &Call, name: &str) -> Result<String, Problem> {
    let name = text("session", name.to_owned(), LONGEST_NAME)?;
    Ok(format!("{}/{name}", call.caller.user))
}
