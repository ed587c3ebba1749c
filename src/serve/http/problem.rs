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
use crate::serve::arguments::Invalid;
use crate::serve::token::Refused;
use crate::store::workspace::Error;
use crate::store::{self, skill};

/// Error of a request.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
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
        status: StatusCode,
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
        Self::new(StatusCode::BAD_REQUEST, "input", message, hint)
    }

    /// Returns the error for a well-formed request with invalid content.
    pub(super) fn unfit(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "input", message, hint)
    }

    /// Returns the error for an overloaded server.
    pub(super) fn busy(message: &str, retry_after: u64) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                message,
                "try again after the time in `retry-after`",
            )
        }
    }

    /// Returns an internal error; `inner` goes to the log.
    pub(super) fn fault(kind: &'static str, message: &str, inner: String) -> Self {
        Self {
            inner: Some(inner),
            ..Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                kind,
                message,
                "see the server's log for the request with this `x-request-id`",
            )
        }
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
        match (self.kind, self.status.as_u16()) {
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
        let mut response = self.status.into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
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
            Refused::NoKeys => "try again after the time in `retry-after`",
            _ => "memctl token --sub ID --scope DOMAINS",
        };
        match refused {
            Refused::NoScope => Self::new(
                StatusCode::FORBIDDEN,
                Kind::Permission.name(),
                refused.to_string(),
                hint,
            ),
            Refused::NoKeys => Self {
                retry_after: Some(30),
                ..Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "token",
                    refused.to_string(),
                    hint,
                )
            },
            _ => Self::new(StatusCode::UNAUTHORIZED, "token", refused.to_string(), hint),
        }
    }
}

/// Returns the status of a kind. Statuses of single errors, such as 410, are decided below.
const fn status(kind: Kind) -> StatusCode {
    match kind {
        Kind::Usage | Kind::Input => StatusCode::UNPROCESSABLE_ENTITY,
        Kind::NotFound => StatusCode::NOT_FOUND,
        Kind::Permission => StatusCode::FORBIDDEN,
        Kind::Model => StatusCode::BAD_GATEWAY,
        Kind::Remote => StatusCode::SERVICE_UNAVAILABLE,
        Kind::Store | Kind::Io | Kind::Internal | Kind::Interrupted => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
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
        let shown = match kind {
            Kind::Usage | Kind::Input => return Self::unfit(message, hint),
            Kind::NotFound | Kind::Permission => {
                return Self::new(status(kind), kind.name(), message, hint);
            }
            Kind::Remote => {
                return Self {
                    inner: Some(message),
                    ..Self::busy("the database of the memory does not answer", 2)
                };
            }
            Kind::Model => "the model did not answer",
            Kind::Store => "the memory cannot be read or written",
            Kind::Io => "the operating system of the server reported an error",
            Kind::Internal | Kind::Interrupted => "the server failed to answer",
        };
        Self {
            status: status(kind),
            ..Self::fault(kind.name(), shown, message)
        }
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        UserError::from(invalid).into()
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Store(error) | Error::NotStored { source: error, .. } => Self::from(error),
            Error::Skill(error) => of_skill(error),
            Error::Forgotten { .. } => Self::new(
                StatusCode::GONE,
                "forgotten",
                message,
                "the record was deleted on purpose",
            ),
            Error::SkillPath(_) => Self::input(message, "a skill is written as `domain/skill`"),
            Error::NoId(_) | Error::NotJson { .. } => Self::input(message, "correct the request"),
            // The caller chose neither the model nor the files of the server.
            Error::ModelName { .. } => Self::from(UserError {
                kind: Kind::Model,
                ..error.into()
            }),
            Error::Unreadable { .. } => Self::from(UserError {
                kind: Kind::Io,
                ..error.into()
            }),
            error => match error.into() {
                UserError {
                    kind: Kind::Usage | Kind::Input,
                    message,
                    ..
                } => Self::unfit(message, "correct the request"),
                error => Self::from(error),
            },
        }
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        Self::of_store(&error)
    }
}

impl Problem {
    fn of_store(error: &store::Error) -> Self {
        use store::Error as Of;
        let message = error.to_string();
        match error {
            Of::NotFound { .. } => Self::new(
                status(Kind::NotFound),
                Kind::NotFound.name(),
                message,
                "not found in the domains of the token",
            ),
            Of::Ambiguous { .. } => Self::input(message, "give the whole id"),
            Of::Exists { .. } => {
                Self::new(StatusCode::CONFLICT, "exists", message, "choose another id")
            }
            Of::OutOfScope { .. } => Self::new(
                status(Kind::Permission),
                Kind::Permission.name(),
                message,
                "use a token whose `domain_scope` covers it",
            ),
            Of::Locked { .. } | Of::Changing { .. } => {
                Self::busy("another program is writing to the memory", 1)
            }
            Of::Disabled { .. } => Self::disabled(),
            Of::DisabledForUser { .. } => Self::new(
                StatusCode::FORBIDDEN,
                "disabled",
                "the memory is switched off for this user",
                "POST /v1/users/me/enable",
            ),
            Of::Group(error) => Self::of_store(error),
            Of::Primary(error) => Self {
                inner: Some(chain(error)),
                ..Self::busy("the database of the memory does not answer", 2)
            },
            // Every other error is a failure of the server.
            error => {
                let kind = match error.explain().0 {
                    kind @ Kind::Internal => kind,
                    _ => Kind::Store,
                };
                let message = "the memory cannot be read or written";
                Self::fault(kind.name(), message, chain(error))
            }
        }
    }

    /// Returns the error for a disabled memory.
    pub(super) fn disabled() -> Self {
        Self {
            retry_after: Some(60),
            ..Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "disabled",
                "the memory is switched off",
                "memctl memory enable",
            )
        }
    }
}

fn of_skill(error: skill::Error) -> Problem {
    match error {
        skill::Error::NotFound { .. } | skill::Error::NoDirectory { .. } => Problem::new(
            status(Kind::NotFound),
            Kind::NotFound.name(),
            "the skill does not exist",
            "memctl list executions --json shows the skills that ran",
        ),
        error => Problem::fault(
            Kind::Store.name(),
            "the skill cannot be read",
            chain(&error),
        ),
    }
}

/// Returns the message and those of its sources.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    crate::model::error::message(error)
}
