//! All data of the caller: export and deletion, each with one request.
//!
//! Both need a token for all domains, because a part of the data must not be taken for all of it.

use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::exchange;
use crate::maintenance;
use crate::serve::token::Caller;

use super::super::input::Parameters;
use super::super::problem::Problem;
use super::super::reply::reply;
use super::super::state::Server;

/// `GET /v1/users/me/export`
pub(crate) async fn export_user(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let work = server.work(&caller, "serve export", |workspace| {
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

/// `DELETE /v1/users/me`
pub(crate) async fn delete_user(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Parameters(given): Parameters<Confirmation>,
) -> Result<Response, Problem> {
    if caller.is_agent() {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "permission",
            "an agent cannot delete the data of its user",
            "use a token without the role `agent`",
        ));
    }
    if given.confirm != caller.user.as_str() {
        return Err(Problem::unfit(
            "`confirm` is not the user of the token",
            "give the `sub` of the token as `confirm`",
        ));
    }
    let work = server.write(&caller, "serve delete user", |workspace| {
        Ok(maintenance::purge_user(workspace)?)
    });
    let report = work.await?;
    reply(&json!({
        "user_id": caller.user,
        "records": report.records,
        "log_lines": report.lines,
        "warnings": report.warnings,
    }))
}
