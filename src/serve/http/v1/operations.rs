//! Operations for agents, for programs that serve agents: `POST /v1/operations/{name}` takes the
//! arguments, and returns data and a text for a model.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Map, Value, json};

use crate::serve::operations::Operation;
use crate::serve::token::Caller;

use super::super::input::{Body, Names};
use super::super::problem::Problem;
use super::super::reply::reply;
use super::super::state::Server;

/// `POST /v1/operations/{operation}`
pub(crate) async fn operation(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Names(name): Names<String>,
    Body(arguments): Body<Map<String, Value>>,
) -> Result<Response, Problem> {
    let Some(operation) = Operation::from_name(&name) else {
        let names = Operation::ALL.map(Operation::name).join(", ");
        return Err(Problem::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "unknown operation",
            format!("it is one of {names}"),
        ));
    };
    let work = server.work_with_model(&caller, "serve operations", async move |workspace| {
        let answer = operation.call(workspace, Value::Object(arguments));
        Ok(answer.await?)
    });
    let answer = work.await?;
    reply(&json!({ "data": answer.data, "text": answer.text }))
}
