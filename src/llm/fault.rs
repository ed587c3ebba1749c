//! How one attempt to get an answer fails, before anything is decided about it.
//!
//! All servers say what went wrong in nearly the same shape, so it is read in one place: an object
//! `error` (or the whole body) with a `message`, and a code that stands in one of three fields.

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::retry::Failure;

/// How an attempt failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// The server answered with an error, by status or in the middle of a stream.
    Status {
        status: u16,
        headers: Box<HeaderMap>,
        code: String,
        message: String,
    },
    /// No answer began.
    NoAnswer(reqwest::Error),
    /// An answer began and did not end.
    Broken(String),
    /// An answer in no known form.
    Malformed { reason: String, text: String },
}

impl Fault {
    /// Reads the error object that all protocols share: `error` or the whole body, with `message`,
    /// and a code in one of several places.
    pub(super) fn read(status: u16, headers: HeaderMap, body: &Value) -> Self {
        // Some servers put it into a list of one.
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").unwrap_or(body);
        let code = ["/details/error_code", "/code", "/type"]
            .into_iter()
            .find_map(|path| error.pointer(path)?.as_str());
        let message = error.as_str().or_else(|| error.get("message")?.as_str());
        // OpenRouter wraps the error of whom it asked, which says more.
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

    /// What the retry policy looks at.
    pub(super) fn failure(&self) -> Failure<'_> {
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

    /// For the progress line.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Status {
                status, message, ..
            } => format!("status {status}: {message}"),
            Self::NoAnswer(_) => "no connection".to_owned(),
            Self::Broken(reason) | Self::Malformed { reason, .. } => reason.clone(),
        }
    }
}

/// Parses a piece of a provider's protocol. What ends too early counts as broken, not as wrong.
pub(super) fn parse(text: &str) -> Result<Value, Fault> {
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

/// The beginning of a text that may be a whole web page.
pub(super) fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(500) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
