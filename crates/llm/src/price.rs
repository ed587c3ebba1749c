//! Cost of an answer in US dollars.
//!
//! The provider's own figure takes precedence. Otherwise the table of the `genai-prices` crate
//! applies, which works offline and is as old as its release. It is decoded on first use (some 60
//! ms), so programs that use no model do not pay for it. A model that is not in the table costs
//! `None`, never 0, so that an unknown price does not look like a free answer.
//!
//! Only a model of a provider `local` or `ollama` is free. A local address may be a gateway that bills.

use genai_prices::{Calculator, PriceRequest, UsageKey};

use super::Usage;

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
