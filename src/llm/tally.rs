//! What a question has come to so far: the answer in the making, the attempts, and what they cost.
//!
//! Filled while somebody waits, and read when the waiting ends, in whichever way it does. Paid text is
//! never dropped here, and a sum with an unknown part is unknown, not too small.

use std::time::{Duration, Instant};

use super::price::Tokens;
use super::{Paid, Usage};

/// An answer in the making.
#[derive(Debug, Clone, Default)]
pub(super) struct Draft {
    pub(super) text: String,
    pub(super) stop: Stop,
    /// The provider has said that nothing more of the text will come.
    pub(super) complete: bool,
    pub(super) tokens: Option<Tokens>,
    /// The provider's own figure.
    pub(super) cost_usd: Option<f64>,
}

/// Why an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Stop {
    #[default]
    End,
    Length,
    Refusal,
}

/// What a question has come to so far. It outlives the future that fills it, so that a time limit
/// does not lose an answer.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) start: Instant,
    pub(super) limit: Duration,
    pub(super) attempts: u32,
    pub(super) draft: Draft,
    /// The answer that is being repaired.
    pub(super) earlier: Option<Paid>,
}

impl Tally {
    pub(super) fn new(start: Instant, limit: Duration) -> Self {
        Self {
            start,
            limit,
            attempts: 0,
            draft: Draft::default(),
            earlier: None,
        }
    }

    /// What remains of the time limit.
    pub(super) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.start.elapsed())
    }

    /// The bill of the draft, with that of the earlier answer added. A sum with an unknown part is
    /// unknown.
    pub(super) fn bill(&self, draft: Paid) -> Paid {
        let Some(earlier) = &self.earlier else {
            return draft;
        };
        if draft.text.is_empty() && draft.usage.is_none() {
            return earlier.clone();
        }
        Paid {
            usage: earlier.usage.zip(draft.usage).map(|(a, b)| Usage {
                input_tokens: a.input_tokens + b.input_tokens,
                output_tokens: a.output_tokens + b.output_tokens,
            }),
            cost_usd: earlier.cost_usd.zip(draft.cost_usd).map(|(a, b)| a + b),
            ..draft
        }
    }
}
