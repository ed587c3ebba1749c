//! Question to a model, its limits, the progress of its answer, and the answer with its tokens and cost in US dollars.
//!
//! The provider's own figure takes precedence. Otherwise the table of the `genai-prices` crate
//! applies, which works offline and is as old as its release. It is decoded on first use (some 60
//! ms), so programs that use no model do not pay for it. A model that is not in the table costs
//! `None`, never 0, so that an unknown price does not look like a free answer.
//!
//! Only a model of a provider `local` or `ollama` is free. A local address may be a gateway that bills.

use std::time::{Duration, Instant};

use genai_prices::{Calculator, PriceRequest, UsageKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Endpoint;

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
    /// JSON Schema of an object, with the keywords that all providers accept: `type`, `properties`, `required`,
    /// `items`, `enum`, `description`, `$defs`, `$ref`, and `additionalProperties`, which is `false`.
    pub json: Value,
}

/// Limits of a request over the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Time limit of a request, including retries and repair; 120 s by default.
    pub answer_within: Duration,
    /// Time limit of connecting; 10 s by default.
    pub connect_within: Duration,
    /// Maximum answer size in bytes; 32 MiB by default.
    pub max_bytes: usize,
    /// Maximum number of retries; 2 by default.
    pub max_retries: u32,
    /// First pause if the server requests none; doubles each time. 500 ms by default.
    pub first_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer_within: Duration::from_mins(2),
            connect_within: Duration::from_secs(10),
            max_bytes: 32 << 20,
            max_retries: 2,
            first_pause: Duration::from_millis(500),
        }
    }
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

/// Attempts at one question.
pub(super) struct Attempts<'a> {
    pub(super) progress: OnProgress<'a>,
    pub(super) start: Instant,
    limit: Duration,
}

impl<'a> Attempts<'a> {
    pub(super) fn new(limit: Duration, progress: OnProgress<'a>) -> Self {
        Self {
            progress,
            start: Instant::now(),
            limit,
        }
    }

    /// Remaining time.
    pub(super) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.start.elapsed())
    }
}

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
        schema: None,
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
    /// Token counts, as far as reported.
    pub usage: Option<Usage>,
    /// Cost in US dollars; `None` if unknown.
    pub cost_usd: Option<f64>,
}

/// Billed token counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tokens {
    /// Input tokens, including the next two fields.
    pub(super) input: u64,
    /// Tokens read from a cache.
    pub(super) cache_read: u64,
    /// Tokens written to a cache.
    pub(super) cache_write: u64,
    /// Output tokens, including hidden reasoning.
    pub(super) output: u64,
}

impl From<Tokens> for Usage {
    fn from(tokens: Tokens) -> Self {
        Self {
            input_tokens: tokens.input,
            output_tokens: tokens.output,
        }
    }
}

/// Cost of a model's tokens from the table; `None` if unknown. `id` is the provider in the table; without one, it is
/// looked up by the base URL.
pub(super) fn price(endpoint: &Endpoint, id: Option<&str>, tokens: Tokens) -> Option<f64> {
    if matches!(endpoint.provider.as_str(), "ollama" | "local") {
        // Ollama runs some models in its own cloud and bills them by subscription.
        return (!endpoint.model.ends_with("cloud")).then_some(0.0);
    }
    let usage = genai_prices::Usage::from([
        (UsageKey::INPUT_TOKENS, count(tokens.input)),
        (UsageKey::CACHE_READ_TOKENS, count(tokens.cache_read)),
        (UsageKey::CACHE_WRITE_TOKENS, count(tokens.cache_write)),
        (UsageKey::OUTPUT_TOKENS, count(tokens.output)),
    ]);
    let request = PriceRequest::new(&endpoint.model, &usage);
    let request = match id {
        Some(id) => request.with_provider_id(id),
        None => request.with_provider_api_url(&endpoint.base_url),
    };
    let price = Calculator::bundled().calculate(&request).ok()?.total_price;
    price.is_finite().then_some(price)
}

#[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^52")]
const fn count(tokens: u64) -> f64 {
    tokens as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLION: Tokens = Tokens {
        input: 1_000_000,
        cache_read: 0,
        cache_write: 0,
        output: 0,
    };

    fn dollars(
        provider: &str,
        id: Option<&str>,
        url: &str,
        model: &str,
        tokens: Tokens,
    ) -> Option<f64> {
        let endpoint = Endpoint {
            base_url: url.to_owned(),
            ..Endpoint::new(provider, model, None)
        };
        price(&endpoint, id, tokens)
    }

    #[test]
    fn known_models_have_a_price_and_unknown_ones_none() {
        let has_price = |provider, url: &str, model| {
            let id = url.is_empty().then_some(provider);
            dollars(provider, id, url, model, MILLION).is_some_and(|dollars| dollars > 0.0)
        };
        assert!(has_price("anthropic", "", "claude-haiku-4-5"));
        assert!(has_price("anthropic", "", "claude-haiku-4-5-20251001"));
        assert!(has_price("openai", "", "gpt-5"));
        let groq = "https://api.groq.com/openai/v1";
        assert!(has_price("groq", groq, "llama-3.3-70b-versatile"));
        assert!(!has_price("anthropic", "", "no-such-model"));
        // A known model name at an unknown address has no known price.
        assert!(!has_price("own", "http://10.0.0.5:8000/v1", "gpt-5"));
    }

    #[test]
    fn own_machines_cost_nothing() {
        let free = |model| dollars("ollama", None, "", model, MILLION);
        assert_eq!(free("llama3.2"), Some(0.0));
        assert_eq!(free("gpt-oss:120b-cloud"), None);
    }

    #[test]
    fn cached_tokens_are_cheaper_to_read_and_dearer_to_write() {
        let dollars = |tokens| {
            let id = Some("anthropic");
            dollars("anthropic", id, "", "claude-haiku-4-5", tokens).unwrap()
        };
        let plain = dollars(MILLION);
        let read = dollars(Tokens {
            cache_read: 1_000_000,
            ..MILLION
        });
        let written = dollars(Tokens {
            cache_write: 1_000_000,
            ..MILLION
        });
        assert!(read < plain && plain < written, "{read} {plain} {written}");
    }
}
