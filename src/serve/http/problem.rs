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

    /// Adds a detail for the log.
    fn because(self, inner: String) -> Self {
        Self {
            inner: Some(inner),
            ..self
        }
    }

    /// Returns the error for an overloaded server.
    pub(super) fn busy(message: &str, retry_after: u64) -> Self {
        let hint = "try again after the time in `retry-after`";
        Self::new(503, "busy", message, hint).after(retry_after)
    }

    /// Returns the error for a disabled memory.
    pub(super) fn disabled() -> Self {
        let message = "the memory is switched off";
        Self::new(503, "disabled", message, "memctl memory enable").after(60)
    }

    /// Returns the error for a database that does not answer.
    fn no_database(inner: String) -> Self {
        Self::busy("the database of the memory does not answer", 2).because(inner)
    }

    /// Returns an internal error; `inner` goes to the log.
    pub(super) fn fault(kind: &'static str, message: &str, inner: String) -> Self {
        let hint = "see the server's log for the request with this `x-request-id`";
        Self::new(500, kind, message, hint).because(inner)
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
            (_, 405) => "PGRST117",
            (_, 406) => "PGRST116",
            (_, 415) => "PGRST107",
            (_, 400) => "PGRST102",
            (_, 422) => "22023",
            (_, 413) => "54000",
            (_, 429 | 503) => "53300",
            (_, 504) => "57014",
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
        let message = refused.to_string();
        let mint = "memctl token --sub ID --scope DOMAINS";
        let (status, kind, hint) = match refused {
            Refused::Missing => {
                let hint = "send `Authorization: Bearer TOKEN`; `memctl token` creates one";
                (401, "token", hint)
            }
            Refused::Audience => (
                401,
                "token",
                "create a token for the `--audience` of this server",
            ),
            Refused::NoScope => (403, Kind::Permission.name(), mint),
            Refused::NoKeys => {
                let hint = "try again after the time in `retry-after`";
                return Self::new(503, "token", message, hint).after(30);
            }
            _ => (401, "token", mint),
        };
        Self::new(status, kind, message, hint)
    }
}

/// Converts an error of an operation. The details of an error of the server go to the log.
impl From<UserError> for Problem {
    fn from(error: UserError) -> Self {
        let UserError {
            kind,
            message,
            hint,
        } = error;
        let hint = hint.unwrap_or_else(|| "see /openapi.json".to_owned());
        let (status, shown) = match kind {
            Kind::Usage | Kind::Input => return Self::unfit(message, hint),
            Kind::NotFound => return Self::new(404, kind.name(), message, hint),
            Kind::Permission => return Self::new(403, kind.name(), message, hint),
            Kind::Remote => return Self::no_database(message),
            Kind::Model => (502, "the model did not answer"),
            Kind::Store => (500, UNUSABLE),
            Kind::Io => (500, "the operating system of the server reported an error"),
            Kind::Internal | Kind::Interrupted => (500, "the server failed to answer"),
        };
        Self {
            status,
            ..Self::fault(kind.name(), shown, message)
        }
    }
}

/// Message for a store that fails.
const UNUSABLE: &str = "the memory cannot be read or written";

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
        let message = error.to_string();
        let (kind, hint) = error.explain();
        let kind = match error {
            Error::NotStored { source, .. } => return Self::of(source),
            Error::Group(error) => return Self::of(error),
            Error::NotFound { .. } => {
                let hint = "not found in the domains of the token";
                return Self::new(404, Kind::NotFound.name(), message, hint);
            }
            Error::Ambiguous { .. } => return Self::input(message, "give the whole id"),
            Error::Exists { .. } => {
                return Self::new(409, "exists", message, "choose another id");
            }
            Error::OutOfScope { .. } => {
                let hint = "use a token whose `domain_scope` covers it";
                return Self::new(403, Kind::Permission.name(), message, hint);
            }
            Error::Locked { .. } | Error::Changing { .. } => {
                return Self::busy("another program is writing to the memory", 1);
            }
            Error::Disabled { .. } => return Self::disabled(),
            Error::DisabledForUser { .. } => {
                let message = "the memory is switched off for this user";
                return Self::new(403, "disabled", message, "POST /v1/users/me/enable");
            }
            Error::NoSkill { .. } | Error::NoSkills(_) => {
                let hint = "memctl list executions --json shows the skills that ran";
                return Self::new(404, Kind::NotFound.name(), "the skill does not exist", hint);
            }
            Error::Forgotten { .. } => {
                let hint = "the record was deleted on purpose";
                return Self::new(410, "forgotten", message, hint);
            }
            Error::SkillPath(_) => {
                return Self::input(message, "a skill is written as `domain/skill`");
            }
            Error::NoId(_) | Error::NotJson { .. } => {
                return Self::input(message, "correct the request");
            }
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
        let message = chain(error);
        Self::from(UserError {
            kind,
            message,
            hint,
        })
    }
}

/// Returns the message and those of its sources.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    crate::model::error::message(error)
}
