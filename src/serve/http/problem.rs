//! Error responses.
//!
//! One [`Problem`] has three formats, chosen by the path. Native endpoints use that of the command
//! line, `{"error": {"kind", "message", "hint"}}`. Functions use `{"error": message}`, as in the
//! source document. Paths below `/rest/` use `{"code", "message", "details", "hint"}`, as
//! `PostgREST` does. The client gets the details of its own errors. Details of internal errors go
//! only to the log.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::model::error::{Explain as _, Kind, UserError};
use crate::serve::token::Refused;
use crate::store::workspace::Error;

/// Hint of an error that passes.
const RETRY: &str = "try again after the time in `retry-after`";

/// Error of a request.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// Seconds after which the client may retry; `None` sends no `retry-after`.
    pub(super) retry_after: Option<u64>,
    /// Detail for the log, never for the client.
    pub(super) inner: Option<String>,
}

impl Problem {
    pub(super) fn new(
        status: u16,
        kind: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            status,
            kind,
            message: message.into(),
            hint: Some(hint.into()),
            retry_after: None,
            inner: None,
        }
    }

    /// Returns the error for a malformed request.
    pub(super) fn input(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(400, "input", message, hint)
    }

    /// Returns the error for a well-formed request with invalid content.
    pub(super) fn unfit(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(422, "input", message, hint)
    }

    /// Adds the time after which the client may retry.
    pub(super) fn after(self, seconds: u64) -> Self {
        Self {
            retry_after: Some(seconds),
            ..self
        }
    }

    /// Returns the error for an overloaded server.
    pub(super) fn busy(message: &str, retry_after: u64) -> Self {
        Self::new(503, "busy", message, RETRY).after(retry_after)
    }

    /// Returns the error for a disabled memory.
    pub(super) fn disabled() -> Self {
        let message = "the memory is switched off";
        Self::new(503, "disabled", message, "memctl memory enable").after(60)
    }

    /// Returns an internal error, whose cause goes to the log.
    pub(super) fn internal(cause: &impl ToString) -> Self {
        UserError::internal(cause.to_string()).into()
    }

    fn body(&self, path: &str) -> Value {
        let Self { message, hint, .. } = self;
        if path.starts_with("/functions/") {
            json!({ "error": message, "kind": self.kind, "hint": hint })
        } else if path.starts_with("/rest/") {
            json!({ "code": self.code(), "message": message, "details": null, "hint": hint })
        } else {
            json!({ "error": { "kind": self.kind, "message": message, "hint": hint } })
        }
    }

    /// Returns the error code of `PostgREST`.
    fn code(&self) -> &'static str {
        match (self.kind, self.status) {
            ("token", _) => "PGRST301",
            ("permission" | "origin" | "host", _) => "42501",
            ("function", _) => "PGRST202",
            (_, 404) => "PGRST125",
            (_, 406) => "PGRST116",
            (_, 400) => "PGRST102",
            (_, 422) => "22023",
            _ => "XX000",
        }
    }
}

/// Attaches the problem to the response; [`render`] writes the format of the path.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        let headers = response.headers_mut();
        if self.status == 401 {
            let challenge = HeaderValue::from_static("Bearer");
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Writes problems in the format that clients of this path expect.
pub(super) async fn render(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let response = next.run(request).await;
    let Some(problem) = response.extensions().get::<Problem>() else {
        return response;
    };
    let body = Body::from(problem.body(&path).to_string());
    let (mut head, _) = response.into_parts();
    let kind = HeaderValue::from_static("application/json");
    head.headers.insert(header::CONTENT_TYPE, kind);
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head, body)
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let hint = match refused {
            Refused::Missing => "send `Authorization: Bearer TOKEN`; `memctl token` creates one",
            Refused::Audience => "create a token for the `--audience` of this server",
            Refused::NoKeys => RETRY,
            _ => "memctl token --sub ID --scope DOMAINS",
        };
        let message = refused.to_string();
        match refused {
            Refused::NoScope => Self::new(403, Kind::Permission.name(), message, hint),
            Refused::NoKeys => Self::new(503, "token", message, hint).after(30),
            _ => Self::new(401, "token", message, hint),
        }
    }
}

/// Converts an error of an operation. The details of an error of the server go to the log.
impl From<UserError> for Problem {
    fn from(error: UserError) -> Self {
        let (kind, message) = (error.kind, error.message);
        let hint = error.hint;
        let hint = hint.unwrap_or_else(|| "see /openapi.json".to_owned());
        let (status, shown) = match kind {
            Kind::Usage | Kind::Input => return Self::unfit(message, hint),
            Kind::NotFound => return Self::new(404, kind.name(), message, hint),
            Kind::Permission => return Self::new(403, kind.name(), message, hint),
            Kind::Remote => {
                return Self {
                    inner: Some(message),
                    ..Self::busy("the database of the memory does not answer", 2)
                };
            }
            Kind::Model => (502, "the model did not answer"),
            Kind::Store => (500, "the memory cannot be read or written"),
            Kind::Io => (500, "the operating system of the server reported an error"),
            Kind::Internal | Kind::Interrupted => (500, "the server failed to answer"),
        };
        let hint = "see the server's log for the request with this `x-request-id`";
        Self {
            inner: Some(message),
            ..Self::new(status, kind.name(), shown, hint)
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::of(&error)
    }
}

impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Self {
        Error::from(error).into()
    }
}

impl Problem {
    fn of(error: &Error) -> Self {
        let message = match error {
            Error::DisabledForUser(_) => "the memory is switched off for this user".to_owned(),
            Error::NoSkill { .. } | Error::NoSkills(_) => "the skill does not exist".to_owned(),
            _ => error.to_string(),
        };
        let not_found = Kind::NotFound.name();
        let (status, kind, hint) = match error {
            Error::NotStored { source, .. } => return Self::of(source),
            Error::Group(error) => return Self::of(error),
            Error::Locked { .. } | Error::Changing(_) => {
                return Self::busy("another program is writing to the memory", 1);
            }
            Error::Disabled(_) => return Self::disabled(),
            Error::NotFound(..) => (404, not_found, "not found in the domains of the token"),
            Error::NoSkill { .. } | Error::NoSkills(_) => {
                let hint = "memctl list executions --json shows the skills that ran";
                (404, not_found, hint)
            }
            Error::Forgotten { .. } => (410, "forgotten", "the record was deleted on purpose"),
            Error::Exists(_) => (409, "exists", "choose another id"),
            Error::DisabledForUser(_) => (403, "disabled", "POST /v1/users/me/enable"),
            Error::OutOfScope(_) => {
                let hint = "use a token whose `domain_scope` covers it";
                (403, Kind::Permission.name(), hint)
            }
            Error::NoId(_) => (400, "input", "correct the request"),
            Error::BadVector { .. } => {
                let hint = "give a vector of this memory's embedder: `/v1/embeddings` returns one";
                (422, "input", hint)
            }
            _ => return Self::explained(error),
        };
        Self::new(status, kind, message, hint)
    }

    /// Returns the problem of an error that has nothing of its own here.
    fn explained(error: &Error) -> Self {
        let (kind, hint) = error.explain();
        let kind = match error {
            Error::Primary(_) => Kind::Remote,
            // The caller chose neither the model nor the files of the server.
            Error::ModelName { .. } => Kind::Model,
            Error::Unreadable { .. } => Kind::Io,
            Error::BadSkill(..) => Kind::Store,
            _ => kind,
        };
        let hint = match kind {
            Kind::Usage | Kind::Input => Some("correct the request".to_owned()),
            _ => hint,
        };
        let message = crate::model::error::message(error);
        UserError {
            kind,
            message,
            hint,
        }
        .into()
    }
}
