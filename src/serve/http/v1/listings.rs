//! Listings of what one user has: memories, sessions, and the log of a session.
//!
//! Log lines belong to no domain, so a token for some domains sees none.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::model::{MemoryType, SessionState};
use crate::notes;
use crate::notes::sessions;
use crate::serve::arguments::LISTED;
use crate::serve::token::Caller;

use super::super::input::reply;
use super::super::input::{Names, Parameters};
use super::super::problem::Problem;
use super::super::state::Server;

/// Selection of memories.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoriesPage {
    /// Only memories of this type.
    memory_type: Option<MemoryType>,
    /// Maximum number of memories, newest first, 1 to 500; default 20.
    #[schemars(range(min = LISTED.least, max = LISTED.most))]
    limit: Option<i64>,
}

/// `GET /v1/memories`
pub(crate) async fn memories(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Parameters(page): Parameters<MemoriesPage>,
) -> Result<Response, Problem> {
    let limit = LISTED.check("limit", page.limit)?;
    let work = server.work(&caller, "serve memories", move |workspace| {
        Ok(notes::list_memories(
            workspace,
            page.memory_type,
            &[],
            limit,
        )?)
    });
    let found = work.await?;
    reply(&json!({ "memories": found.records, "total": found.total, "warnings": found.warnings }))
}

/// Selection of sessions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionsPage {
    /// Only sessions in this state.
    #[schemars(extend("enum" = states()))]
    status: Option<String>,
    /// Maximum number of sessions, newest first, 1 to 500; default 20.
    #[schemars(range(min = LISTED.least, max = LISTED.most))]
    limit: Option<i64>,
}

/// `GET /v1/sessions`
pub(crate) async fn sessions(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Parameters(page): Parameters<SessionsPage>,
) -> Result<Response, Problem> {
    let limit = LISTED.check("limit", page.limit)?;
    let status = page.status.map(|name| state(&name)).transpose()?;
    let work = server.work(&caller, "serve sessions", move |workspace| {
        Ok(sessions::list(workspace, status.as_ref(), limit)?)
    });
    reply(&work.await?)
}

/// Returns the names of the known states.
fn states() -> Vec<&'static str> {
    SessionState::names().map(|(name, _)| name).collect()
}

/// Returns the state of this name.
fn state(name: &str) -> Result<SessionState, Problem> {
    let known = SessionState::all().find(|state| state.as_str() == name);
    known.ok_or_else(|| {
        Problem::unfit(
            format!("`status` is `{}`", name.escape_debug()),
            format!("it is one of {}", states().join(", ")),
        )
    })
}

/// Selection of log lines.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogPage {
    /// Maximum number of log lines, the newest, 1 to 500; default 20.
    #[schemars(range(min = LISTED.least, max = LISTED.most))]
    limit: Option<i64>,
}

/// `GET /v1/sessions/{session}`
pub(crate) async fn session(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Names(name): Names<String>,
    Parameters(page): Parameters<LogPage>,
) -> Result<Response, Problem> {
    let limit = LISTED.check("limit", page.limit)?;
    let work = server.work(&caller, "serve sessions", move |workspace| {
        Ok(sessions::show(workspace, &name, limit)?)
    });
    reply(&work.await?)
}
