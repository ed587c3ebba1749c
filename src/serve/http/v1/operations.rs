//! Operations for agents, for programs that serve agents: `POST /v1/operations/{name}` takes the
//! arguments, and returns data and a text for a model.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;

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
    let handle = Handle::current();
    let work = server.work(&caller, "serve operations", move |workspace| {
        let call = operation.call(workspace, Value::Object(arguments));
        handle.block_on(call).map_err(Problem::from)
    });
    let answer = work.await?;
    reply(&json!({ "data": answer.data, "text": answer.text }))
}
