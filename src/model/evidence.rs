//! Evidence from use for a rule or a lesson.
//!
//! The posterior is a Beta distribution with prior (2, 2): an untried record has one half, and a
//! few outcomes move it. It equals the reference implementation's
//! `utility_score = (helped + 2) / (injected + 4)` if every injection that did not help counts
//! against the rule.

use serde::{Deserialize, Serialize};

/// Counts of uses and their outcomes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Evidence {
    /// Number of times shown to a model or an agent.
    pub shown: u64,
    /// Number of outcomes in favour.
    pub helped: u64,
    /// Number of outcomes against.
    pub harmed: u64,
}

impl Evidence {
    /// Returns the mean of the posterior, from 0 to 1. A showing without an outcome does not count.
    #[expect(clippy::cast_precision_loss, reason = "counts of uses stay far below 2^52")]
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
