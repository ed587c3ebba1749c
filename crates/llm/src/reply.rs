//! Answer of a model, with its token counts and cost.

use std::time::Duration;

use serde::{Deserialize, Serialize};

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

/// Partial result of a request without a [`Reply`].
#[derive(Debug, Clone, PartialEq)]
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
