//! Errors of requests to models, the failure of one attempt, and whether it is sent again.
//!
//! Messages are fragments without a full stop; the user interface adds hints by [`ErrorKind`]. No
//! message holds a key, a URL or a header.
//!
//! Most servers report errors in the same shape, so they are parsed here: an object `error` (or the whole
//! body) with a `message`, and a code in one of three fields.
//!
//! The decision is a pure function of the server's response, the number of retries and a random number, so
//! that each case is one line in a test. As in the providers' own client libraries, connection errors, 408,
//! 409, 429 and 5xx (including 529) are retried, and the server's waiting time is obeyed. Two rules are our
//! own. A spending limit is never retried, although some providers report it as 429. A wait beyond the time
//! limit fails at once.

use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::Paid;
use super::request::{Limits, shortened};

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
    paid: Option<Box<Paid>>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Creates an error.
    pub fn new(kind: ErrorKind, message: String) -> Self {
        Self {
            kind,
            message,
            paid: None,
            source: None,
        }
    }

    /// Adds what the provider delivered, and probably billed, before the error.
    pub(super) fn after(mut self, paid: Paid) -> Self {
        self.paid = Some(Box::new(paid));
        self
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
        paid.filter(|text| !text.is_empty())
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
        Err(Self::read(status.unwrap_or(500), HeaderMap::new(), body))
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

/// Maximum pause if the server requests none.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// Maximum wait that a server may request.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// Returns the pause before the next attempt, after `retries` earlier retries; `None` if a retry is pointless, or
/// all are used up.
///
/// `left` is the remaining time limit, and `random` is in `0.0..1.0`.
pub(super) fn pause(
    limits: &Limits,
    retries: u32,
    fault: &Fault,
    left: Duration,
    random: f64,
) -> Option<Duration> {
    let may_pass = match fault {
        Fault::Malformed { .. } => false,
        Fault::Status { status, .. } => {
            matches!(status, 408 | 409 | 429 | 500..) && !fault.is_spend_limit()
        }
        Fault::NoAnswer(_) | Fault::Broken { .. } => true,
    };
    if !may_pass || retries >= limits.max_retries {
        return None;
    }
    if let Some(wait) = fault.retry_after() {
        return Some(wait).filter(|wait| *wait <= LONGEST_WAIT.min(left));
    }
    let doubled = limits
        .first_pause
        .saturating_mul(2_u32.saturating_pow(retries));
    let pause = doubled
        .min(LONGEST_PAUSE)
        .mul_f64(1.0 - random.clamp(0.0, 1.0) * 0.25);
    Some(pause).filter(|pause| *pause < left)
}

impl Fault {
    /// Returns `true` if the account has reached its spending limit.
    pub(super) fn is_spend_limit(&self) -> bool {
        let Self::Status {
            status,
            code,
            message,
            ..
        } = self
        else {
            return false;
        };
        *status == 402
            || matches!(
                code.as_str(),
                "enforced_spend_limit_reached"
                    | "contract_spend_limit_reached"
                    | "linked_organization_spend_limit_reached"
                    | "insufficient_quota"
                    | "credit_balance_exhausted"
                    | "billing_hard_limit_reached"
                    | "billing_error"
            )
            // Reported as a plain 400 without a specific code.
            || message.contains("credit balance is too low")
    }

    /// Wait that the server requests, in seconds.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let Self::Status { headers, .. } = self else {
            return None;
        };
        let value = headers.get("retry-after")?.to_str().ok()?;
        let seconds = value.trim().parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

#[cfg(test)]
mod tests_of_retries {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn fault(status: u16, pairs: &[(&'static str, &'static str)]) -> Fault {
        let pairs = pairs.iter().map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        Fault::Status {
            status,
            headers: Box::new(pairs.collect()),
            code: String::new(),
            message: String::new(),
        }
    }

    fn no_answer() -> Fault {
        Fault::Broken {
            reason: String::new(),
            text: String::new(),
        }
    }

    fn pause_of(retries: u32, fault: &Fault) -> Option<Duration> {
        let left = Duration::from_secs(100);
        pause(&Limits::default(), retries, fault, left, 0.0)
    }

    #[expect(clippy::unnecessary_wraps, reason = "compared with a pause that may be none")]
    const fn after(ms: u64) -> Option<Duration> {
        Some(Duration::from_millis(ms))
    }

    #[test]
    fn only_passing_troubles_are_worth_a_retry() {
        for status in [408, 409, 429, 500, 502, 503, 504, 529] {
            assert_eq!(pause_of(0, &fault(status, &[])), after(500), "{status}");
        }
        assert_eq!(pause_of(0, &no_answer()), after(500));
        for status in [302, 400, 401, 403, 404, 413, 422] {
            assert_eq!(pause_of(0, &fault(status, &[])), None, "{status}");
        }
    }

    #[test]
    fn pauses_double_shrink_at_random_and_end_after_two() {
        assert_eq!(pause_of(1, &fault(500, &[])), after(1000));
        assert_eq!(pause_of(2, &fault(500, &[])), None);
        let many = Limits {
            max_retries: 1000,
            ..Limits::default()
        };
        let check = |retries, random, expected| {
            let left = Duration::from_secs(100);
            let decision = pause(&many, retries, &no_answer(), left, random);
            assert_eq!(decision, expected, "{retries} {random}");
        };
        check(0, 1.0, after(375));
        check(3, 0.5, after(3500));
        check(4, 0.0, after(8000));
        check(999, 0.0, after(8000));
    }

    #[test]
    fn the_server_may_name_the_wait() {
        let check = |status, pairs: &[_], expected| {
            assert_eq!(
                pause_of(0, &fault(status, pairs)),
                expected,
                "{status} {pairs:?}"
            );
        };
        check(429, &[("retry-after", "3")], after(3000));
        check(429, &[("retry-after", "0")], after(0));
        check(429, &[("retry-after", "soon")], after(500));
        check(429, &[("retry-after", "-4")], after(500));
        check(429, &[("retry-after", "nan")], after(500));
    }

    #[test]
    fn a_wait_that_is_too_long_ends_the_question_at_once() {
        let headers = [("retry-after", "86400")];
        assert_eq!(pause_of(0, &fault(429, &headers)), None);
        assert_eq!(
            pause_of(0, &fault(429, &[("retry-after", "1e300")])),
            after(500),
            "no number of seconds"
        );
        let fault = fault(429, &[("retry-after", "30")]);
        let left = Duration::from_secs(10);
        let decision = pause(&Limits::default(), 0, &fault, left, 0.0);
        assert_eq!(decision, None);
    }

    #[test]
    fn spending_limits_are_never_retried() {
        let check = |status, code: &str, message: &str| {
            let fault = Fault::Status {
                status,
                headers: Box::default(),
                code: code.to_owned(),
                message: message.to_owned(),
            };
            assert!(fault.is_spend_limit(), "{status} {code} {message}");
            assert_eq!(pause_of(0, &fault), None);
        };
        check(429, "enforced_spend_limit_reached", "");
        check(429, "contract_spend_limit_reached", "");
        check(402, "linked_organization_spend_limit_reached", "");
        check(429, "insufficient_quota", "");
        check(429, "credit_balance_exhausted", "");
        check(402, "", "");
        check(
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the API",
        );
    }
}
