//! Failure of one attempt.
//!
//! Most servers report errors in the same shape, so they are parsed here: an object `error` (or the whole
//! body) with a `message`, and a code in one of three fields.

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::request::shortened;

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
