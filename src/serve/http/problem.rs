//! What is answered when something cannot be done.
//!
//! One [`Problem`] has three shapes, by the path that was asked: ours is that of the command line,
//! `{"error": {"kind", "message", "hint"}}`; functions say `{"error": message}` as those of the source
//! document do; what stands below `/rest/` is `{"code", "message", "details", "hint"}`, as `PostgREST`
//! has it. Whoever asks is told what is wrong with what he sent; what is wrong here is told to the
//! log, and to him only that it is.

use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::engine::Error;
use crate::serve::token::Refused;
use crate::{skill, store};

/// Why something was not done.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) kind: &'static str,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// Seconds after which it may be tried again.
    pub(super) retry_after: Option<u64>,
    /// What the log is told, and nobody else.
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

    /// Something in what was sent is not as it should be.
    pub(super) fn input(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "input", message, hint)
    }

    /// It can be read, and does not fit.
    pub(super) fn unfit(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "input", message, hint)
    }

    /// Too much is going on.
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

    /// Something is wrong here.
    pub(super) fn fault(kind: &'static str, message: &str, inner: String) -> Self {
        Self {
            inner: Some(inner),
            ..Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                kind,
                message,
                "the server's log says more; `x-request-id` names the request there",
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

    /// The code that `PostgREST` would give.
    fn code(&self) -> &'static str {
        match (self.kind, self.status.as_u16()) {
            ("token", _) => "PGRST301",
            ("scope" | "origin" | "host", _) => "42501",
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

/// The problem travels with the answer; [`render`] gives it the shape of the path.
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

/// Gives problems the shape that the client at this path understands.
pub(super) async fn render(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let response = next.run(request).await;
    let Some(problem) = response.extensions().get::<Problem>() else {
        return response;
    };
    let body = Json(problem.body(&path)).into_response();
    let (mut head, _) = response.into_parts();
    let (shape, body) = body.into_parts();
    head.headers.extend(shape.headers);
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head, body)
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let hint = match refused {
            Refused::Missing => "send `Authorization: Bearer TOKEN`; `memctl token` makes one",
            Refused::Audience => "make a token for the `--audience` of this server",
            Refused::NoKeys => "try again after the time in `retry-after`",
            _ => "memctl token --sub ID --scope DOMAINS",
        };
        match refused {
            Refused::NoScope => {
                Self::new(StatusCode::FORBIDDEN, "scope", refused.to_string(), hint)
            }
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

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Store(error) | Error::NotStored { source: error, .. } => Self::from(error),
            Error::Skill(error) => of_skill(&error),
            Error::Forgotten { .. } => Self::new(
                StatusCode::GONE,
                "forgotten",
                message,
                "it was removed on purpose",
            ),
            Error::SkillPath(_) => Self::input(message, "a skill is written as `domain/skill`"),
            Error::NoId(_) | Error::NotJson { .. } => Self::input(message, "mend it"),
            Error::Llm(_) | Error::Asked { .. } | Error::ModelName { .. } => Self {
                status: StatusCode::BAD_GATEWAY,
                ..Self::fault("model", "the model did not answer", message)
            },
            Error::Embed(_) | Error::VectorSize { .. } | Error::Runtime { .. } => {
                Self::fault("model", "the model of the search cannot be used", message)
            }
            Error::Index => Self::fault("store", "the search index cannot be made", message),
            Error::Unreadable { .. } => Self::fault("store", "a file cannot be read", message),
            _ => Self::unfit(message, "mend what was sent"),
        }
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        use store::Error as Of;
        let message = error.to_string();
        match error {
            Of::NotFound { .. } => Self::new(
                StatusCode::NOT_FOUND,
                "not_found",
                message,
                "it is not there, or not in the domains of the token",
            ),
            Of::Ambiguous { .. } => Self::input(message, "give the whole id"),
            Of::Exists { .. } => {
                Self::new(StatusCode::CONFLICT, "exists", message, "choose another id")
            }
            Of::OutOfScope { .. } => Self::new(
                StatusCode::FORBIDDEN,
                "scope",
                message,
                "use a token whose `domain_scope` covers it",
            ),
            Of::Locked { .. } | Of::Changing { .. } => {
                Self::busy("another program is writing to the memory", 1)
            }
            Of::Disabled { .. } => Self::disabled(),
            Of::Primary(error) => Self {
                inner: Some(chain(&*error)),
                ..Self::busy("the database that the memory lies in does not answer", 2)
            },
            _ => Self::fault(
                "store",
                "the memory cannot be read or written",
                chain(&error),
            ),
        }
    }
}

impl Problem {
    /// The memory is switched off.
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

fn of_skill(error: &skill::Error) -> Problem {
    match error {
        skill::Error::NotFound { .. } | skill::Error::NoDirectory { .. } => Problem::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "there is no such skill",
            "memctl memory list executions --json shows the skills that ran",
        ),
        error => Problem::fault("skill", "the skill cannot be read", chain(error)),
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.extend([": ", &error.to_string()]);
        source = error.source();
    }
    text
}
