//! State of a question: draft of the answer, number of attempts, and cost.
//!
//! A caller reads it when a request succeeds, fails or times out. It never drops paid text. A sum
//! with an unknown part is unknown.

use std::time::{Duration, Instant};

use super::price::Tokens;
use super::{Paid, Usage};

/// Partial answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draft {
    pub text: String,
    pub stop: Stop,
    /// The provider has signalled the end of the text.
    pub complete: bool,
    pub tokens: Option<Tokens>,
    /// Cost reported by the provider, in US dollars.
    pub cost_usd: Option<f64>,
}

/// Reason why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stop {
    #[default]
    End,
    Length,
    Refusal,
}

/// State of a question. It outlives the future that fills it, so that a time limit does not lose an
/// answer.
#[derive(Debug)]
pub(crate) struct Tally {
    pub start: Instant,
    pub limit: Duration,
    pub attempts: u32,
    pub draft: Draft,
    /// Earlier answer that is being repaired.
    pub earlier: Option<Paid>,
}

impl Tally {
    pub(crate) fn new(start: Instant, limit: Duration) -> Self {
        Self {
            start,
            limit,
            attempts: 0,
            draft: Draft::default(),
            earlier: None,
        }
    }

    /// Remaining time.
    pub(crate) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.start.elapsed())
    }

    /// Usage and cost of the draft plus those of the earlier answer.
    pub(crate) fn bill(&self, draft: Paid) -> Paid {
        let Some(earlier) = &self.earlier else {
            return draft;
        };
        if draft.text.is_empty() && draft.usage.is_none() {
            return earlier.clone();
        }
        Paid {
            usage: earlier.usage.zip(draft.usage).map(|(a, b)| Usage {
                input_tokens: a.input_tokens.saturating_add(b.input_tokens),
                output_tokens: a.output_tokens.saturating_add(b.output_tokens),
            }),
            cost_usd: earlier.cost_usd.zip(draft.cost_usd).map(|(a, b)| a + b),
            ..draft
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_counts_of_two_answers_saturate() {
        let paid = |tokens: u64| Paid {
            text: "x".to_owned(),
            model: "m".to_owned(),
            usage: Some(Usage {
                input_tokens: tokens,
                output_tokens: tokens,
            }),
            cost_usd: None,
        };
        let mut tally = Tally::new(Instant::now(), Duration::ZERO);
        tally.earlier = Some(paid(u64::MAX));
        let usage = tally.bill(paid(2)).usage.unwrap();
        assert_eq!(usage.input_tokens, u64::MAX);
        assert_eq!(usage.output_tokens, u64::MAX);
    }
}
