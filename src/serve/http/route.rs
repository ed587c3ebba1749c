//! One operation of the server: its method, path, access and schemas.

use axum::handler::Handler;
use axum::routing::{self, MethodRouter};
use serde_json::Value;

use super::schemas::{self, Answer};
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
    pub(super) handler: MethodRouter<Server>,
}

impl Route {
    /// Creates a route that reads.
    pub(super) fn get<T: 'static>(path: &'static str, handler: impl Handler<T, Server>) -> Self {
        Self {
            method: "get",
            path,
            id: "",
            summary: "",
            access: Access::Token,
            parameters: None,
            body: None,
            answer: schemas::OBJECT,
            handler: routing::get(handler),
        }
    }

    /// Creates a route that takes a body, or changes something.
    pub(super) fn post<T: 'static>(path: &'static str, handler: impl Handler<T, Server>) -> Self {
        Self {
            method: "post",
            handler: routing::post(handler.clone()),
            ..Self::get(path, handler)
        }
    }

    /// Creates a route that deletes.
    pub(super) fn delete<T: 'static>(path: &'static str, handler: impl Handler<T, Server>) -> Self {
        Self {
            method: "delete",
            handler: routing::delete(handler.clone()),
            ..Self::get(path, handler)
        }
    }

    /// Sets the operation id and the summary.
    pub(super) fn named(self, id: &'static str, summary: &'static str) -> Self {
        Self {
            id,
            summary,
            ..self
        }
    }

    /// Sets the answer; any object without it.
    pub(super) fn answers(self, answer: Answer) -> Self {
        Self { answer, ..self }
    }

    /// Opens the route to clients without a token.
    pub(super) fn open(self) -> Self {
        Self {
            access: Access::Open,
            ..self
        }
    }

    /// Adds query parameters.
    pub(super) fn parameters(self, schema: fn() -> Value) -> Self {
        Self {
            parameters: Some(schema),
            ..self
        }
    }

    /// Adds a body.
    pub(super) fn body(self, schema: fn() -> Value) -> Self {
        Self {
            body: Some(schema),
            ..self
        }
    }
}
