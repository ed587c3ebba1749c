//! Question to a model, the progress of its answer, and the answer with its tokens and cost.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Question to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Instructions shared by all requests of this kind; providers cache them. May be empty.
    pub system: String,
    /// Text of the question.
    pub user: String,
    /// Schema of the answer; `None` accepts any text.
    pub schema: Option<Schema>,
    /// Maximum length of the answer in tokens. Programs and recorded replies ignore it.
    pub max_tokens: u32,
}

/// Schema of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// Letters, digits, `_` and `-`, at most 64. Providers require a name.
    pub name: String,
    /// JSON Schema of an object.
    pub json: Value,
}

/// Progress of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// The request failed and is sent again.
    Retry {
        /// Pause before the retry.
        after: Duration,
        /// Reason as text.
        reason: &'a str,
    },
    /// The answer does not match the schema and is requested again.
    Repair {
        /// Reason as text.
        reason: &'a str,
    },
}

/// Callback for [`Progress`]; `&mut |_| {}` ignores it.
pub type OnProgress<'a> = &'a mut (dyn FnMut(Progress<'_>) + Send);

/// Request with its schema as text, for models without structured output.
pub(super) fn in_words(request: &Request) -> Request {
    let Some(schema) = &request.schema else {
        return request.clone();
    };
    let form = format!(
        "Answer with one JSON object and nothing else. It must fit this JSON Schema:\n{}",
        schema.json
    );
    let system = match request.system.as_str() {
        "" => form,
        system => format!("{system}\n\n{form}"),
    };
    Request {
        system,
        ..request.clone()
    }
}

/// First `length` characters of a text.
pub(super) fn beginning(text: &str, length: usize) -> &str {
    let end = text.char_indices().nth(length);
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// Beginning of a text, with `…` if there is more.
pub(super) fn shortened(text: &str, length: usize) -> String {
    let text = text.trim();
    let short = beginning(text, length);
    let mark = if short.len() < text.len() { "…" } else { "" };
    [short, mark].concat()
}

/// Answer of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Answer text. With a schema: only the JSON object, as the model wrote it.
    pub text: String,
    /// `provider/model`.
    pub model: String,
    /// Token counts, including a repair; `None` if not reported.
    pub usage: Option<Usage>,
    /// Cost in US dollars; `None` (not 0) if the price is unknown.
    pub cost_usd: Option<f64>,
    /// Wall-clock time from the question to the end of the answer.
    pub latency: Duration,
    /// Number of requests sent; 1 without retries.
    pub attempts: u32,
    /// `true` if the first answer did not match the schema.
    pub repaired: bool,
}

/// Token counts of a question and its answer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Usage {
    /// Tokens read, including cached tokens.
    pub input_tokens: u64,
    /// Tokens written, including hidden reasoning.
    pub output_tokens: u64,
}

/// Answer of a request that failed nevertheless.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Paid {
    /// Text as received.
    pub text: String,
    /// `provider/model`.
    pub model: String,
    /// Token counts, as far as reported.
    pub usage: Option<Usage>,
    /// Cost in US dollars; `None` if unknown.
    pub cost_usd: Option<f64>,
}
