//! Question to a model, the progress of its answer, and the answer with its tokens and cost in US dollars.
//!
//! The provider's own figure takes precedence. Otherwise the table of the `genai-prices` crate
//! applies, which works offline and is as old as its release. It is decoded on first use (some 60
//! ms), so programs that use no model do not pay for it. A model that is not in the table costs
//! `None`, never 0, so that an unknown price does not look like a free answer.
//!
//! Only a model of a provider `local` or `ollama` is free. A local address may be a gateway that bills.

use std::time::Duration;

use genai_prices::{Calculator, PriceRequest, UsageKey};
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

/// Price source for the models of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pricing {
    /// Free models on the user's own machine.
    Free,
    /// Provider id in the table: `anthropic`, `openai`, …
    Provider(&'static str),
    /// Provider of the base URL, if the table knows it.
    BaseUrl,
}

impl Pricing {
    /// Price source for the models of a provider without an id in the table.
    pub(super) fn by_address(provider: &str) -> Self {
        match provider {
            "ollama" | "local" => Self::Free,
            _ => Self::BaseUrl,
        }
    }
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

/// Cost from the table; `None` if unknown.
pub(super) fn price(pricing: Pricing, base_url: &str, model: &str, tokens: Tokens) -> Option<f64> {
    let usage = genai_prices::Usage::from([
        (UsageKey::INPUT_TOKENS, count(tokens.input)),
        (UsageKey::CACHE_READ_TOKENS, count(tokens.cache_read)),
        (UsageKey::CACHE_WRITE_TOKENS, count(tokens.cache_write)),
        (UsageKey::OUTPUT_TOKENS, count(tokens.output)),
    ]);
    let request = PriceRequest::new(model, &usage);
    let request = match pricing {
        // Ollama runs some models in its own cloud and bills them by subscription.
        Pricing::Free => return (!model.ends_with("cloud")).then_some(0.0),
        Pricing::Provider(id) => request.with_provider_id(id),
        Pricing::BaseUrl => request.with_provider_api_url(base_url),
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

    #[test]
    fn known_models_have_a_price_and_unknown_ones_none() {
        let has_price = |pricing: Pricing, url, model| {
            price(pricing, url, model, MILLION).is_some_and(|dollars| dollars > 0.0)
        };
        let anthropic = Pricing::Provider("anthropic");
        assert!(has_price(anthropic, "", "claude-haiku-4-5"));
        assert!(has_price(anthropic, "", "claude-haiku-4-5-20251001"));
        assert!(has_price(Pricing::Provider("openai"), "", "gpt-5"));
        let groq = "https://api.groq.com/openai/v1";
        assert!(has_price(Pricing::BaseUrl, groq, "llama-3.3-70b-versatile"));
        assert_eq!(price(anthropic, "", "no-such-model", MILLION), None);
        // A known model name at an unknown address has no known price.
        let own = "http://10.0.0.5:8000/v1";
        assert_eq!(price(Pricing::BaseUrl, own, "gpt-5", MILLION), None);
    }

    #[test]
    fn own_machines_cost_nothing() {
        let free = |model| price(Pricing::Free, "", model, MILLION);
        assert_eq!(free("llama3.2"), Some(0.0));
        assert_eq!(free("gpt-oss:120b-cloud"), None);
    }

    #[test]
    fn cached_tokens_are_cheaper_to_read_and_dearer_to_write() {
        let dollars = |tokens| {
            price(
                Pricing::Provider("anthropic"),
                "",
                "claude-haiku-4-5",
                tokens,
            )
            .unwrap()
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
