//! Tools for agents over HTTP: `POST /mcp`, for agent hosts that speak the Model Context Protocol
//! to a URL.
//!
//! The token, the host name and the origin are checked before a request gets here. There are no
//! sessions, so that there is no GET and no DELETE.

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::response::Response;
use tower_service::Service as _;

use crate::model::error::UserError;
use crate::serve::mcp::service;
use crate::serve::operations::Operation;
use crate::serve::token::Caller;

use super::problem::Problem;
use super::state::Server;

/// `POST /mcp`
pub(super) async fn mcp(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Problem> {
    let _slot = server.slot(&caller).await?;
    let longest_body = server.limits().body;
    let open = move |_: &Parts, operation: Operation| {
        let why = format!("serve mcp {}", operation.name());
        server.caught_up(&caller, &why).map_err(UserError::from)
    };
    match service(longest_body, open).call(request).await {
        Ok(response) => Ok(response.map(Body::new)),
        Err(never) => match never {},
    }
}
