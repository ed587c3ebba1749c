//! Errors of requests to models.
//!
//! Messages are fragments without a full stop; the user interface adds hints by [`ErrorKind`]. No
//! message holds a key, a URL or a header.

use super::Paid;

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
pub(super) fn said(text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => format!(": {text}"),
    }
}
