//! Everything that can go wrong between a question and its answer.
//!
//! Messages are fragments without a full stop; what to type next is added at the edge of the
//! program. No variant holds a key, a URL or a header.

use std::io;
use std::time::Duration;

use super::Paid;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration cannot work: a base URL that is none, a key that fits in no header.
    #[error("the model `{model}` is not usable: {reason}")]
    Config {
        /// `provider/model`.
        model: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The key is missing, wrong, or may not use this model (401, 403).
    #[error("`{provider}` refused the key: {message}")]
    Auth {
        /// Name of the provider.
        provider: String,
        /// The provider's words.
        message: String,
    },
    /// The account has no money left, or may not spend it. Never retried.
    #[error("the spending limit at `{provider}` is reached: {message}")]
    SpendLimit {
        /// Name of the provider.
        provider: String,
        /// The provider's words.
        message: String,
    },
    /// Too many questions in too short a time (429), even after the retries.
    #[error("`{provider}` limits the rate of questions{}: {message}", wait(*retry_after))]
    RateLimited {
        /// Name of the provider.
        provider: String,
        /// The provider's words.
        message: String,
        /// How long the provider asks to wait, where that is longer than we may.
        retry_after: Option<Duration>,
        /// Requests that were sent.
        attempts: u32,
        /// What had come by then, if anything.
        paid: Option<Box<Paid>>,
    },
    /// The provider cannot answer now (408, 409, 5xx, 529), even after the retries.
    #[error("`{provider}` is overloaded or failing (status {status}){}: {message}", wait(*retry_after))]
    Overloaded {
        /// Name of the provider.
        provider: String,
        /// HTTP status, or the status that an error within a stream stands for.
        status: u16,
        /// The provider's words.
        message: String,
        /// How long the provider asks to wait, where that is longer than we may.
        retry_after: Option<Duration>,
        /// Requests that were sent.
        attempts: u32,
        /// What had come by then, if anything.
        paid: Option<Box<Paid>>,
    },
    /// The provider does not take this request: unknown model, prompt too long, and the like.
    #[error("`{provider}` does not accept the request (status {status}): {message}")]
    BadRequest {
        /// Name of the provider.
        provider: String,
        /// HTTP status.
        status: u16,
        /// The provider's words.
        message: String,
    },
    /// No connection.
    #[error("`{host}` cannot be reached")]
    Unreachable {
        /// Host and port, without path or credentials.
        host: String,
        /// Requests that were tried.
        attempts: u32,
        /// What the network said; its URL is removed.
        source: reqwest::Error,
    },
    /// The connection broke off in the middle of the answer, at each attempt.
    #[error("the answer of `{provider}` broke off: {reason}")]
    Interrupted {
        /// Name of the provider.
        provider: String,
        /// How it broke.
        reason: String,
        /// Requests that were sent.
        attempts: u32,
        /// What had come by then.
        paid: Box<Paid>,
    },
    /// The time limit of the question is over.
    #[error("`{model}` gave no answer within {} s", after.as_secs_f64())]
    TimedOut {
        /// `provider/model`.
        model: String,
        /// The limit.
        after: Duration,
        /// What had come by then, if anything.
        paid: Option<Box<Paid>>,
    },
    /// The answer is longer than `max_tokens`, or than the model's context.
    #[error("the answer of `{}` was cut at {max_tokens} tokens", paid.model)]
    Truncated {
        /// The limit that was sent.
        max_tokens: u32,
        /// The beginning of the answer.
        paid: Box<Paid>,
    },
    /// The model declined to answer.
    #[error("`{}` declined to answer{}", paid.model, said(&paid.text))]
    Refused {
        /// Its words, if any.
        paid: Box<Paid>,
    },
    /// What came is not in the provider's protocol.
    #[error("`{provider}` sent something that is not its protocol: {reason}")]
    Malformed {
        /// Name of the provider.
        provider: String,
        /// What was expected.
        reason: String,
        /// What came, whole.
        text: String,
    },
    /// The answer has not the asked form, even after one repair.
    #[error("the answer of `{}` has not the asked form: {reason}", paid.model)]
    InvalidStructure {
        /// What is missing or wrong.
        reason: String,
        /// The last answer as it came; usage and cost are those of both.
        paid: Box<Paid>,
    },
    /// A program could not be started or spoken to.
    #[error("the program `{program}` cannot be run")]
    ExecStart {
        /// The program's name.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// A program ended with an error.
    #[error("the program `{program}` failed ({status}){}", said(stderr))]
    ExecFailed {
        /// The program's name.
        program: String,
        /// `exit status: 1`, `signal: 9`, …
        status: String,
        /// The end of what it wrote to standard error.
        stderr: String,
        /// What it wrote to standard output.
        text: String,
    },
    /// A program wrote more than an answer can be.
    #[error("the program `{program}` wrote more than {limit} bytes")]
    ExecOutput {
        /// The program's name.
        program: String,
        /// The limit in bytes.
        limit: usize,
        /// The beginning of what it wrote.
        text: String,
    },
    /// A command line that cannot be split into words.
    #[error("the command `{line}` is not understood: {reason}")]
    ExecCommand {
        /// The line.
        line: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A file of recorded replies that is not in its format.
    #[error("the recorded replies `{script}` are not understood: {place}: {reason}")]
    ScriptInvalid {
        /// `scripted/<name>`.
        script: String,
        /// `reply 3` or `line 3`, counted from 1.
        place: String,
        /// What is wrong there.
        reason: String,
    },
    /// No recorded reply fits the question.
    #[error("none of the {} replies of `{script}` fits the question `{question}`{}", looked_for.len(), list(looked_for))]
    ScriptNoMatch {
        /// `scripted/<name>`.
        script: String,
        /// The beginning of the question.
        question: String,
        /// What each reply waits for and does not find, in order.
        looked_for: Vec<String>,
    },
}

impl Error {
    /// What the provider delivered, and has likely billed, before things went wrong.
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

    /// Whatever text came back, in its original form.
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

/// Names the first few, since a script can be long.
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
