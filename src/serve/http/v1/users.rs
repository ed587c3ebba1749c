//! All data of the caller: export, deletion, and the switch of their memory, each with one request.
//!
//! All need a token for all domains, because a part of the data must not be taken for all of it.

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::serve::token::Caller;
use crate::upkeep;
use crate::upkeep::exchange;

use super::super::input::Parameters;
use super::super::input::reply;
use super::super::problem::Problem;
use super::super::state::Server;

/// `GET /v1/users/me/export`
pub(crate) async fn export_user(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let work = server.own_data(&caller, "serve export", |workspace| {
        Ok(exchange::export_user(workspace)?)
    });
    let text = work.await?;
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], text).into_response())
}

/// Confirmation of a deletion.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Confirmation {
    /// The user id in the token (`sub`), as a confirmation.
    #[schemars(length(min = 1))]
    confirm: String,
}

fn refuse_agents(caller: &Caller, message: &'static str) -> Result<(), Problem> {
    if caller.is_agent() {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "permission",
            message,
            "use a token without the role `agent`",
        ));
    }
    Ok(())
}

/// Numbers of what was deleted.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeletedUser {
    user_id: String,
    /// Records by kind.
    records: BTreeMap<String, u64>,
    log_lines: u64,
    warnings: Vec<String>,
}

/// State of the switch of a user's memory.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Switched {
    user_id: String,
    enabled: bool,
    changed: bool,
}

/// `DELETE /v1/users/me`
pub(crate) async fn delete_user(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Parameters(given): Parameters<Confirmation>,
) -> Result<Response, Problem> {
    refuse_agents(&caller, "an agent cannot delete the data of its user")?;
    if given.confirm != caller.user.as_str() {
        return Err(Problem::unfit(
            "`confirm` is not the user of the token",
            "give the `sub` of the token as `confirm`",
        ));
    }
    let work = server.own_data(&caller, "serve delete user", |workspace| {
        Ok(upkeep::purge_user(workspace)?)
    });
    let report = work.await?;
    reply(&DeletedUser {
        user_id: caller.user.to_string(),
        records: report.records,
        log_lines: report.lines,
        warnings: report.warnings,
    })
}

/// `POST /v1/users/me/disable`
pub(crate) async fn disable_user(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    switch(&server, &caller, "serve disable user", true).await
}

/// `POST /v1/users/me/enable`
pub(crate) async fn enable_user(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    switch(&server, &caller, "serve enable user", false).await
}

async fn switch(
    server: &Server,
    caller: &Caller,
    why: &'static str,
    is_disabled: bool,
) -> Result<Response, Problem> {
    refuse_agents(caller, "an agent cannot switch the memory of its user")?;
    let user = caller.user.clone();
    let work = server.own_data(caller, why, move |workspace| {
        workspace.whole_user()?;
        Ok(workspace.store.switch_user(&user, is_disabled)?)
    });
    let changed = work.await?;
    reply(&Switched {
        user_id: caller.user.to_string(),
        enabled: !is_disabled,
        changed,
    })
}
