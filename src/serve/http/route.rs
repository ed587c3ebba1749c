//! One operation of the server: its method, path, access and schemas.

use axum::routing::MethodRouter;
use serde_json::Value;

use super::schemas::Answer;
use super::state::Server;

/// Access to a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Everybody: the response reveals nothing of the memory.
    Open,
    /// Clients with a token.
    Token,
}

/// One method of one path.
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    /// Operation id in the description.
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) access: Access,
    /// Query parameters, as a schema.
    pub(super) parameters: Option<fn() -> Value>,
    /// Body, as a schema.
    pub(super) body: Option<fn() -> Value>,
    pub(super) answer: Answer,
    pub(super) handler: fn() -> MethodRouter<Server>,
}
