//! What an answer cost, in US dollars.
//!
//! The provider's own figure wins. Else tokens are priced by the table of the `genai-prices`
//! crate, which is dated by its release and works offline; it is decoded at the first price asked
//! for (some 60 ms), so programs that ask no model never pay for it. A model that the table does
//! not know costs `None`, never 0: an unknown price must not look like a free answer.
//!
//! [`Pricing::Free`] is said, not guessed. An address on this machine may just as well be a gateway
//! that bills.

use genai_prices::{Calculator, PriceRequest, UsageKey};

use super::Usage;

/// Where the price of a provider's models is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pricing {
    /// The models run on the user's own machine.
    Free,
    /// By the provider's id in the table: `anthropic`, `openai`, …
    Provider(&'static str),
    /// By the base URL, as far as the table knows whose it is.
    BaseUrl,
}

/// Tokens as they are billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tokens {
    /// All that was read, those of the next two fields included.
    pub(super) input: u64,
    /// Read from a cache.
    pub(super) cache_read: u64,
    /// Written to a cache.
    pub(super) cache_write: u64,
    /// Written by the model, hidden reasoning included.
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

/// The price of an answer whose provider names none; `None` where it is not known.
pub(super) fn price(pricing: &Pricing, base_url: &str, model: &str, tokens: Tokens) -> Option<f64> {
    let usage = genai_prices::Usage::from([
        (UsageKey::INPUT_TOKENS, count(tokens.input)),
        (UsageKey::CACHE_READ_TOKENS, count(tokens.cache_read)),
        (UsageKey::CACHE_WRITE_TOKENS, count(tokens.cache_write)),
        (UsageKey::OUTPUT_TOKENS, count(tokens.output)),
    ]);
    let request = PriceRequest::new(model, &usage);
    let request = match pricing {
        // Ollama passes some models on to its own machines, and those are billed by subscription.
        Pricing::Free => return (!model.ends_with("cloud")).then_some(0.0),
        Pricing::Provider(id) => request.with_provider_id(id),
        Pricing::BaseUrl => request.with_provider_api_url(base_url),
    };
    let price = Calculator::bundled().calculate(&request).ok()?.total_price;
    price.is_finite().then_some(price)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "token counts stay far below 2^52"
)]
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
        let known = |pricing: &Pricing, url, model| {
            price(pricing, url, model, MILLION).is_some_and(|dollars| dollars > 0.0)
        };
        let anthropic = Pricing::Provider("anthropic");
        assert!(known(&anthropic, "", "claude-haiku-4-5"));
        assert!(known(&anthropic, "", "claude-haiku-4-5-20251001"));
        assert!(known(&Pricing::Provider("openai"), "", "gpt-5"));
        let groq = "https://api.groq.com/openai/v1";
        assert!(known(&Pricing::BaseUrl, groq, "llama-3.3-70b-versatile"));
        assert_eq!(price(&anthropic, "", "no-such-model", MILLION), None);
        // A well-known name at an unknown address is not sold at the well-known price.
        let own = "http://10.0.0.5:8000/v1";
        assert_eq!(price(&Pricing::BaseUrl, own, "gpt-5", MILLION), None);
    }

    #[test]
    fn own_machines_cost_nothing() {
        let free = |model| price(&Pricing::Free, "", model, MILLION);
        assert_eq!(free("llama3.2"), Some(0.0));
        assert_eq!(free("gpt-oss:120b-cloud"), None);
    }

    #[test]
    fn cached_tokens_are_cheaper_to_read_and_dearer_to_write() {
        let dollars = |tokens| {
            price(
                &Pricing::Provider("anthropic"),
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
