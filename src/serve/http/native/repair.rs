//! Hints at a failure, and what failed and what then worked: the loop of the source document's agents.
//!
//! Sessions are a caller's own: two users who call theirs by one name have two.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::engine::{Adviser, Engine, HintOptions, Success};
use crate::serve::token::Caller;
use crate::store;

use super::super::input::{Body, LONGEST_TEXT, text, within};
use super::super::problem::Problem;
use super::super::reply::reply;
use super::super::state::Server;

/// The session of a caller who names none.
const SESSION: &str = "default";

/// What failed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct HintBody {
    /// What the failing call printed.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    error: String,
    /// The command or code that failed.
    command: Option<String>,
    /// The tool, as its host names it.
    tool: Option<String>,
    /// The session: the failure is noted there, and no hint is shown twice that was not taken up.
    session: Option<String>,
    /// How many at most: 3 where nobody says, 20 at most.
    #[schemars(range(min = 1, max = 20))]
    max_hints: Option<i64>,
}

/// `POST /v1/hints`
pub(in super::super) async fn hint(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Body(body): Body<HintBody>,
) -> Result<Response, Problem> {
    let options = HintOptions {
        error: text("error", body.error, LONGEST_TEXT)?,
        tool: body.tool,
        command: body.command,
        session: body.session.map(|name| own(&caller, &name)).transpose()?,
        max_hints: within("max_hints", body.max_hints, 3, (1, 20))?,
    };
    let work = server.work(&caller, "serve hints", move |engine| {
        Ok(adviser(engine).hint(&options)?)
    });
    reply(&work.await?)
}

/// Code that failed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct FailureBody {
    /// The code or command.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    code: String,
    /// What it said.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    error: String,
    /// The session.
    session: Option<String>,
    /// How many hints at most: 5 where nobody says, 20 at most.
    #[schemars(range(min = 1, max = 20))]
    max_hints: Option<i64>,
}

/// `POST /v1/failures`
pub(in super::super) async fn failure(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Body(body): Body<FailureBody>,
) -> Result<Response, Problem> {
    let session = own(&caller, body.session.as_deref().unwrap_or(SESSION))?;
    let code = text("code", body.code, LONGEST_TEXT)?;
    let error = text("error", body.error, LONGEST_TEXT)?;
    let most = within("max_hints", body.max_hints, 5, (1, 20))?;
    let work = server.work(&caller, "serve failures", move |engine| {
        may_learn(engine)?;
        Ok(adviser(engine).record_failure(&code, &error, &session, most)?)
    });
    reply(&work.await?)
}

/// Code that works.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct SuccessBody {
    /// The code or command.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    code: String,
    /// What it printed.
    output: String,
    /// The session.
    session: Option<String>,
}

/// `POST /v1/successes`
pub(in super::super) async fn success(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Body(body): Body<SuccessBody>,
) -> Result<Response, Problem> {
    if body.output.len() > LONGEST_TEXT {
        return Err(Problem::unfit("`output` is too long", "send its end"));
    }
    let success = Success {
        session: own(&caller, body.session.as_deref().unwrap_or(SESSION))?,
        code: text("code", body.code, LONGEST_TEXT)?,
        output: body.output,
    };
    let work = server.work(&caller, "serve successes", move |engine| {
        may_learn(engine)?;
        Ok(adviser(engine).record_success(&success)?)
    });
    reply(&work.await?)
}

/// Fixes belong to no domain: who may not see them may not add to them.
fn may_learn(engine: &Engine) -> Result<(), Problem> {
    if engine.store.scope().allows(None) {
        return Ok(());
    }
    let what = "fixes".to_owned();
    Err(store::Error::OutOfScope { what }.into())
}

fn own(caller: &Caller, session: &str) -> Result<String, Problem> {
    let session = text("session", session.to_owned(), 200)?;
    Ok(format!("{}/{session}", caller.user))
}

fn adviser(engine: &Engine) -> Adviser<'_> {
    Adviser {
        store: &engine.store,
        now: engine.now,
        random: engine.random,
        withhold: engine.settings.withhold,
    }
}
