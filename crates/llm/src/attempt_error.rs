//! Failure of one attempt, before the retry decision.
//!
//! Most servers report errors in the same shape, so they are parsed here: an object `error` (or the
//! whole body) with a `message`, and a code in one of three fields.

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::retry::Failure;

/// Failure of one attempt.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The server answered with an error, by status or within a stream.
    Status {
        status: u16,
        headers: Box<HeaderMap>,
        code: String,
        message: String,
    },
    /// No response.
    NoAnswer(reqwest::Error),
    /// The response ended too early.
    Broken(String),
    /// Response in an unknown format.
    Malformed { reason: String, text: String },
}

impl Fault {
    /// Parses the error object that all protocols share.
    pub(crate) fn read(status: u16, headers: HeaderMap, body: &Value) -> Self {
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
            (Some(message), Some(raw)) => format!("{message}: {}", shortened(raw)),
            (Some(message), None) => message.to_owned(),
            (None, _) => shortened(&body.to_string()),
        };
        Self::Status {
            status,
            headers: Box::new(headers),
            code: code.unwrap_or_default().to_owned(),
            message,
        }
    }

    /// Input of the retry policy.
    pub(crate) fn failure(&self) -> Failure<'_> {
        match self {
            Self::Status {
                status,
                headers,
                code,
                message,
            } => Failure {
                status: Some(*status),
                headers: Some(headers),
                code,
                message,
            },
            _ => Failure::default(),
        }
    }

    /// Text for the progress line.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Status {
                status, message, ..
            } => format!("status {status}: {message}"),
            Self::NoAnswer(_) => "no connection".to_owned(),
            Self::Broken(reason) | Self::Malformed { reason, .. } => reason.clone(),
        }
    }
}

/// Parses JSON of a provider's protocol. A premature end counts as broken, not as malformed.
pub(crate) fn parse(text: &str) -> Result<Value, Fault> {
    serde_json::from_str(text).map_err(|error| {
        if error.is_eof() {
            Fault::Broken("the answer ends in the middle".to_owned())
        } else {
            Fault::Malformed {
                reason: format!("invalid JSON: {error}"),
                text: text.to_owned(),
            }
        }
    })
}

/// First 500 characters of a text that may be a whole web page.
pub(crate) fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(500) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
