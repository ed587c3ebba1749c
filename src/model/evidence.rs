//! What use has shown of a rule, a fix or a procedure.
//!
//! The posterior is that of a Beta distribution with prior (2, 2): a record that nobody has tried
//! yet stands at one half, and a handful of outcomes moves it. The reference implementation's
//! `utility_score = (helped + 2) / (injected + 4)` is the same figure where every injection that
//! did not help counts against the rule.

use serde::{Deserialize, Serialize};

/// Counts of what happened after a record was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// How often it was put before a model or an agent.
    pub shown: u64,
    /// How often the outcome spoke for it.
    pub helped: u64,
    /// How often the outcome spoke against it.
    pub harmed: u64,
}

impl Evidence {
    /// The mean of the posterior, between 0 and 1. Shown without an outcome counts neither way.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of uses stay far below 2^52"
    )]
    pub fn posterior(self) -> f64 {
        (self.helped as f64 + 2.0) / ((self.helped + self.harmed) as f64 + 4.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_move_the_posterior_and_mere_showing_does_not() {
        let posterior = |shown, helped, harmed| {
            Evidence {
                shown,
                helped,
                harmed,
            }
            .posterior()
        };
        assert!((posterior(0, 0, 0) - 0.5).abs() < 1e-9);
        assert!((posterior(50, 0, 0) - 0.5).abs() < 1e-9);
        assert!(posterior(5, 5, 0) > 0.7);
        assert!(posterior(5, 0, 5) < 0.3);
    }
}
