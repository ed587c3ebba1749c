//! All data of the caller: export, deletion, and the switch of their memory, each with one request.
//!
//! All need a token for all domains, because a part of the data must not be taken for all of it.

use std::collections::BTreeMap;

use axum::http::header;
use axum::response::IntoResponse as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::upkeep;

use super::input::{Answer, Parameters, reply};
use super::problem::Problem;
use super::state::{Call, Use};

/// `GET /v1/users/me/export`
pub(crate) async fn export_user(call: Call) -> Answer {
    let work = call.work(Use::OwnData, "serve export", async move |workspace| {
        Ok(upkeep::export_user(workspace)?)
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

pub(super) fn refuse_agents(call: &Call, message: &'static str) -> Result<(), Problem> {
    if call.caller.is_agent {
        return Err(Problem::new(
            403,
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
pub(crate) async fn delete_user(call: Call, Parameters(given): Parameters<Confirmation>) -> Answer {
    refuse_agents(&call, "an agent cannot delete the data of its user")?;
    let user = call.caller.user.to_string();
    if given.confirm != user {
        return Err(Problem::unfit(
            "`confirm` is not the user of the token",
            "give the `sub` of the token as `confirm`",
        ));
    }
    let work = call.work(Use::OwnData, "serve delete user", async move |workspace| {
        Ok(upkeep::purge_user(workspace)?)
    });
    let report = work.await?;
    reply(&DeletedUser {
        user_id: user,
        records: report.records,
        log_lines: report.lines,
        warnings: report.warnings,
    })
}

/// `POST /v1/users/me/disable` and `POST /v1/users/me/enable`
pub(crate) async fn switch(call: Call, why: &'static str, is_disabled: bool) -> Answer {
    refuse_agents(&call, "an agent cannot switch the memory of its user")?;
    let user = call.caller.user.clone();
    let user_id = user.to_string();
    let work = call.work(Use::OwnData, why, async move |workspace| {
        workspace.whole_user()?;
        Ok(workspace.store.switch_user(&user, is_disabled)?)
    });
    let changed = work.await?;
    reply(&Switched {
        user_id,
        enabled: !is_disabled,
        changed,
    })
}
