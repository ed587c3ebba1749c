//! Trained weights of the features, and the score from which a message is proposed.

use std::sync::LazyLock;

use serde::Deserialize;

/// Linear model over the features of a sentence.
#[derive(Debug, Deserialize)]
pub(super) struct Model {
    /// Minimum score of a proposal.
    pub(super) limit: f64,
    weights: Vec<f64>,
}

impl Model {
    /// Score of a sentence: the logarithm of the odds.
    pub(super) fn score(&self, features: &[f64]) -> f64 {
        debug_assert_eq!(features.len(), self.weights.len());
        let terms = features.iter().zip(&self.weights);
        terms.map(|(feature, weight)| feature * weight).sum()
    }
}

/// Returns the built-in model.
pub(super) fn model() -> &'static Model {
    static MODEL: LazyLock<Model> = LazyLock::new(|| {
        #[expect(clippy::unwrap_used, reason = "the file is part of the program")]
        serde_json::from_str(include_str!("model.json")).unwrap()
    });
    &MODEL
}
