//! Errors of requests to models.
//!
//! Messages are fragments without a full stop; the user interface adds hints. No variant holds a
//! key, a URL or a header.

use std::io;
use std::time::Duration;

use super::Paid;

/// Error of a request to a model.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Unusable configuration: an invalid base URL, or a key that is not a valid header value.
    #[error("the model `{model}` is not usable: {reason}")]
    Config {
        /// `provider/model`.
        model: String,
        /// Reason as text.
        reason: String,
    },
    /// The key is missing, invalid, or not allowed to use this model (401, 403).
    #[error("`{provider}` refused the key: {message}")]
    Auth {
        /// Name of the provider.
        provider: String,
        /// Message of the provider.
        message: String,
    },
    /// The account has no credit left or has reached its spending limit. Never retried.
    #[error("the spending limit at `{provider}` is reached: {message}")]
    SpendLimit {
        /// Name of the provider.
        provider: String,
        /// Message of the provider.
        message: String,
    },
    /// Rate limit (429), also after the retries.
    #[error("`{provider}` limits the rate of requests{}: {message}", wait(*retry_after))]
    RateLimited {
        /// Name of the provider.
        provider: String,
        /// Message of the provider.
        message: String,
        /// Requested wait, if it exceeds the limits.
        retry_after: Option<Duration>,
        /// Number of requests sent.
        attempts: u32,
        /// Partial answer, if any.
        paid: Option<Box<Paid>>,
    },
    /// The provider cannot answer now (408, 409, 5xx, 529), also after the retries.
    #[error("`{provider}` is overloaded or failing (status {status}){}: {message}", wait(*retry_after))]
    Overloaded {
        /// Name of the provider.
        provider: String,
        /// HTTP status, or the equivalent status of an error within a stream.
        status: u16,
        /// Message of the provider.
        message: String,
        /// Requested wait, if it exceeds the limits.
        retry_after: Option<Duration>,
        /// Number of requests sent.
        attempts: u32,
        /// Partial answer, if any.
        paid: Option<Box<Paid>>,
    },
    /// The provider rejects the request, for example for an unknown model or a prompt that is too
    /// long.
    #[error("`{provider}` does not accept the request (status {status}): {message}")]
    BadRequest {
        /// Name of the provider.
        provider: String,
        /// HTTP status.
        status: u16,
        /// Message of the provider.
        message: String,
    },
    /// No connection.
    #[error("`{host}` cannot be reached")]
    Unreachable {
        /// Host and port, without path or credentials.
        host: String,
        /// Number of requests tried.
        attempts: u32,
        /// Network error, with the URL removed.
        source: reqwest::Error,
    },
    /// The connection broke off during the answer, in each attempt.
    #[error("the answer of `{provider}` broke off: {reason}")]
    Interrupted {
        /// Name of the provider.
        provider: String,
        /// Reason as text.
        reason: String,
        /// Number of requests sent.
        attempts: u32,
        /// Partial answer.
        paid: Box<Paid>,
    },
    /// The time limit is over.
    #[error("`{model}` did not answer within {} s", after.as_secs_f64())]
    TimedOut {
        /// `provider/model`.
        model: String,
        /// Time limit.
        after: Duration,
        /// Partial answer, if any.
        paid: Option<Box<Paid>>,
    },
    /// The answer exceeds `max_tokens` or the model's context.
    #[error("the answer of `{}` was cut at {max_tokens} tokens", paid.model)]
    Truncated {
        /// Token limit that was sent.
        max_tokens: u32,
        /// Beginning of the answer.
        paid: Box<Paid>,
    },
    /// The model declined to answer.
    #[error("`{}` declined to answer{}", paid.model, said(&paid.text))]
    Refused {
        /// Text of the refusal, if any.
        paid: Box<Paid>,
    },
    /// The response does not follow the provider's protocol.
    #[error("`{provider}` violated its protocol: {reason}")]
    Malformed {
        /// Name of the provider.
        provider: String,
        /// Reason as text.
        reason: String,
        /// Complete received text.
        text: String,
    },
    /// The answer does not match the requested schema, even after one repair.
    #[error("the answer of `{}` does not match the requested schema: {reason}", paid.model)]
    InvalidStructure {
        /// Missing or invalid part.
        reason: String,
        /// Last answer as received, with the usage and cost of both answers.
        paid: Box<Paid>,
    },
    /// A program could not be started or used.
    #[error("the program `{program}` cannot be run")]
    ExecStart {
        /// Program name.
        program: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A program exited with an error.
    #[error("the program `{program}` failed ({status}){}", said(stderr))]
    ExecFailed {
        /// Program name.
        program: String,
        /// `exit status: 1`, `signal: 9`, …
        status: String,
        /// End of the standard error output.
        stderr: String,
        /// Standard output.
        text: String,
    },
    /// A program wrote more than the size limit.
    #[error("the program `{program}` wrote more than {limit} bytes")]
    ExecOutput {
        /// Program name.
        program: String,
        /// Limit in bytes.
        limit: usize,
        /// Beginning of the output.
        text: String,
    },
    /// Invalid command line.
    #[error("invalid command `{line}`: {reason}")]
    ExecCommand {
        /// Command line.
        line: String,
        /// Reason as text.
        reason: &'static str,
    },
    /// Invalid file of recorded replies.
    #[error("invalid recorded replies `{script}`: {place}: {reason}")]
    ScriptInvalid {
        /// `scripted/<name>`.
        script: String,
        /// `reply 3` or `line 3`, counted from 1.
        place: String,
        /// Reason as text.
        reason: String,
    },
    /// No recorded reply matches the question.
    #[error("none of the {} replies of `{script}` fits the question `{question}`{}", looked_for.len(), list(looked_for))]
    ScriptNoMatch {
        /// `scripted/<name>`.
        script: String,
        /// Beginning of the question.
        question: String,
        /// First unmet condition of each reply, in order.
        looked_for: Vec<String>,
    },
}

impl Error {
    /// Partial answer that the provider delivered, and probably billed, before the error.
    pub fn paid(&self) -> Option<&Paid> {
        match self {
            Self::Interrupted { paid, .. }
            | Self::Truncated { paid, .. }
            | Self::Refused { paid }
            | Self::InvalidStructure { paid, .. } => Some(paid),
            Self::TimedOut { paid, .. }
            | Self::RateLimited { paid, .. }
            | Self::Overloaded { paid, .. } => paid.as_deref(),
            _ => None,
        }
    }

    /// Received text in its original form.
    pub fn raw_text(&self) -> Option<&str> {
        let text = match self {
            Self::Malformed { text, .. }
            | Self::ExecFailed { text, .. }
            | Self::ExecOutput { text, .. } => text,
            _ => &self.paid()?.text,
        };
        (!text.is_empty()).then_some(text)
    }
}

fn wait(retry_after: Option<Duration>) -> String {
    retry_after.map_or_else(String::new, |wait| {
        format!(" and asks to wait {} s", wait.as_secs())
    })
}

fn said(text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => format!(": {text}"),
    }
}

/// Lists at most five conditions, since a script can be long.
fn list(looked_for: &[String]) -> String {
    let mut text = String::new();
    for (number, wanted) in (1..).zip(looked_for).take(5) {
        let mark = if number == 1 { ": " } else { "; " };
        text = text + mark + &format!("reply {number} waits for {wanted}");
    }
    if looked_for.len() > 5 {
        text += "; …";
    }
    text
}
