//! Errors of requests to models, and the failure of one attempt.
//!
//! Messages are fragments without a full stop; the user interface adds hints by [`ErrorKind`]. No
//! message holds a key, a URL or a header.
//!
//! Most servers report errors in the same shape, so they are parsed here: an object `error` (or the whole
//! body) with a `message`, and a code in one of three fields.

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::Paid;
use super::request::shortened;

/// Kind of an error, which decides the way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Unusable configuration: an invalid base URL, a key that is not a valid header value, an
    /// invalid command line or file of recorded replies.
    Config,
    /// The key is missing, invalid, or not allowed to use this model (401, 403).
    Auth,
    /// The account has no credit left or has reached its spending limit. Never retried.
    SpendLimit,
    /// Rate limit (429), also after the retries.
    RateLimited,
    /// The provider cannot answer now (408, 409, 5xx, 529), also after the retries.
    Overloaded,
    /// The provider rejects the request with this status, for example for an unknown model or a
    /// prompt that is too long.
    BadRequest(u16),
    /// No connection.
    Unreachable,
    /// The connection broke off during the answer, in each attempt.
    Interrupted,
    /// The time limit is over.
    TimedOut,
    /// The answer exceeds `max_tokens` or the model's context.
    Truncated,
    /// The model declined to answer.
    Refused,
    /// The response does not follow the provider's protocol.
    Malformed,
    /// The answer does not match the requested schema, even after one repair.
    InvalidStructure,
    /// A program could not be started, failed, or wrote too much.
    Program,
    /// No recorded reply matches the question.
    NoReply,
}

/// Error of a request to a model.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Kind of the error.
    pub kind: ErrorKind,
    message: String,
    text: String,
    paid: Option<Box<Paid>>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Creates an error.
    pub fn new(kind: ErrorKind, message: String) -> Self {
        Self {
            kind,
            message,
            text: String::new(),
            paid: None,
            source: None,
        }
    }

    /// Adds the answer that the provider delivered, and probably billed, before the error.
    pub(super) fn after(mut self, paid: Paid) -> Self {
        self.paid = Some(Box::new(paid));
        self
    }

    /// Adds received text that is no answer.
    pub(super) fn with_text(self, text: String) -> Self {
        Self { text, ..self }
    }

    /// Adds the cause.
    pub(super) fn because(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Answer that the provider delivered, and probably billed, before the error.
    pub fn paid(&self) -> Option<&Paid> {
        self.paid.as_deref()
    }

    /// Received text in its original form.
    pub fn raw_text(&self) -> Option<&str> {
        let paid = self.paid().map(|paid| paid.text.as_str());
        Some(paid.unwrap_or(&self.text)).filter(|text| !text.is_empty())
    }
}

/// Appends a text to a message, if there is one.
pub(super) fn after_colon(text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => format!(": {text}"),
    }
}

/// Maximum characters of a message, which may be a whole web page.
pub(super) const LONGEST: usize = 500;

/// Failure of one attempt.
#[derive(Debug)]
pub(super) enum Fault {
    /// The server answered with an error.
    Status {
        status: u16,
        headers: Box<HeaderMap>,
        code: String,
        message: String,
    },
    /// No response.
    NoAnswer(reqwest::Error),
    /// The response ended too early.
    Broken { reason: String, text: String },
    /// Response in an unknown format.
    Malformed { reason: String, text: String },
}

impl Fault {
    /// Parses the error object that all protocols share.
    pub(super) fn read(status: u16, headers: HeaderMap, body: &Value) -> Self {
        // Some servers wrap it into a list with one item.
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").unwrap_or(body);
        let code = ["/details/error_code", "/code", "/type"]
            .into_iter()
            .find_map(|path| error.pointer(path)?.as_str());
        let message = error.as_str().or_else(|| error.get("message")?.as_str());
        // OpenRouter wraps the upstream provider's error, which is more specific.
        let raw = error.pointer("/metadata/raw").and_then(Value::as_str);
        let message = match (message, raw) {
            (Some(message), Some(raw)) => format!("{message}: {}", shortened(raw, LONGEST)),
            (Some(message), None) => message.to_owned(),
            (None, _) => shortened(&body.to_string(), LONGEST),
        };
        Self::Status {
            status,
            headers: Box::new(headers),
            code: code.unwrap_or_default().to_owned(),
            message,
        }
    }

    /// Returns the error in a response with status 200, as on some servers.
    pub(super) fn in_success(body: &Value) -> Result<(), Self> {
        let Some(error) = body.get("error").filter(|error| !error.is_null()) else {
            return Ok(());
        };
        let status = error["code"].as_u64();
        let status = status.and_then(|code| u16::try_from(code).ok());
        let kind = error["type"].as_str().or(error["code"].as_str());
        let status = status.unwrap_or_else(|| match kind.unwrap_or_default() {
            "invalid_request_error" => 400,
            "authentication_error" | "invalid_api_key" => 401,
            "billing_error" => 402,
            "permission_error" => 403,
            "not_found_error" => 404,
            "request_too_large" => 413,
            "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => 429,
            "overloaded_error" | "overloaded" => 529,
            _ => 500,
        });
        Err(Self::read(status, HeaderMap::new(), body))
    }

    /// Response without a part that the protocol demands.
    pub(super) fn lacks(what: &str, body: &Value) -> Self {
        Self::Malformed {
            reason: what.to_owned(),
            text: body.to_string(),
        }
    }
    /// Text for the progress line.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Status {
                status, message, ..
            } => format!("status {status}: {message}"),
            Self::NoAnswer(_) => "no connection".to_owned(),
            Self::Broken { reason, .. } | Self::Malformed { reason, .. } => reason.clone(),
        }
    }
}
