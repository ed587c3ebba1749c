//! How good a ranking is: the usual measures, for answers that are relevant or not.

/// The measures of one query, or the means over many. Each from 0 to 1, higher is better.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Metrics {
    /// The share of the relevant that comes first.
    pub recall_at_1: f64,
    /// The share of the relevant among the first five.
    pub recall_at_5: f64,
    /// The share of the relevant among the first ten.
    pub recall_at_10: f64,
    /// Whether anything relevant is among the first five.
    pub hit_at_5: f64,
    /// One over the rank of the first relevant; 0 beyond ten.
    pub mrr_at_10: f64,
    /// Discounted cumulative gain among the first ten, as a share of the best possible.
    pub ndcg_at_10: f64,
}

impl Metrics {
    /// Measures a ranking: for each rank from the first on, whether what stands there is relevant;
    /// `relevant` is how many there are to be found, at least one.
    #[expect(clippy::cast_precision_loss, reason = "ranks are small")]
    pub fn of(ranking: &[bool], relevant: usize) -> Self {
        let top = |k: usize| &ranking[..ranking.len().min(k)];
        let found = |k: usize| top(k).iter().filter(|r| **r).count() as f64;
        let recall = |k| found(k) / relevant.max(1) as f64;
        let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
        let gains = (0..).zip(top(10)).filter(|(_, r)| **r);
        let best: f64 = (0..relevant.clamp(1, 10)).map(gain).sum();
        Self {
            recall_at_1: recall(1),
            recall_at_5: recall(5),
            recall_at_10: recall(10),
            hit_at_5: found(5).min(1.0),
            mrr_at_10: top(10)
                .iter()
                .position(|r| *r)
                .map_or(0.0, |rank| 1.0 / (rank as f64 + 1.0)),
            ndcg_at_10: gains.map(|(rank, _)| gain(rank)).sum::<f64>() / best,
        }
    }

    /// The means; all 0 where there is nothing to measure.
    #[expect(clippy::cast_precision_loss, reason = "counts of queries are small")]
    pub fn mean(all: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / all.len().max(1) as f64;
        Self {
            recall_at_1: mean(|m| m.recall_at_1),
            recall_at_5: mean(|m| m.recall_at_5),
            recall_at_10: mean(|m| m.recall_at_10),
            hit_at_5: mean(|m| m.hit_at_5),
            mrr_at_10: mean(|m| m.mrr_at_10),
            ndcg_at_10: mean(|m| m.ndcg_at_10),
        }
    }
}

/// The value below which this share of the values lies (nearest rank); 0 where there are none.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a length lies within it"
)]
pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted
        .get(rank.min(sorted.len()).saturating_sub(1))
        .copied()
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    }

    #[test]
    fn measures_are_what_a_hand_computes() {
        // Relevant at ranks 2, 4 and 11, one of four never found.
        let mut ranking = [false; 12];
        (ranking[1], ranking[3], ranking[10]) = (true, true, true);
        let metrics = Metrics::of(&ranking, 4);
        near(metrics.recall_at_1, 0.0);
        near(metrics.recall_at_5, 0.5);
        near(metrics.recall_at_10, 0.5);
        near(metrics.hit_at_5, 1.0);
        near(metrics.mrr_at_10, 0.5);
        // (1/log2 3 + 1/log2 5) / (1 + 1/log2 3 + 1/2 + 1/log2 5)
        near(metrics.ndcg_at_10, 1.061_606_311_6 / 2.561_606_311_6);
        assert_eq!(Metrics::of(&[], 3), Metrics::default());
        near(Metrics::of(&[true], 1).ndcg_at_10, 1.0);
    }

    #[test]
    fn means_and_percentiles() {
        let mean = Metrics::mean(&[Metrics::of(&[true], 1), Metrics::of(&[false, true], 1)]);
        near(mean.recall_at_1, 0.5);
        near(mean.mrr_at_10, 0.75);
        assert_eq!(Metrics::mean(&[]), Metrics::default());
        let values = [5.0, 1.0, 4.0, 2.0, 3.0];
        near(percentile(&values, 0.5), 3.0);
        near(percentile(&values, 0.95), 5.0);
        near(percentile(&values, 0.0), 1.0);
        near(percentile(&[], 0.5), 0.0);
    }

    proptest! {
        #[test]
        fn no_measure_leaves_its_range(ranking in prop::collection::vec(any::<bool>(), 0..30), missed in 0usize..5) {
            let relevant = ranking.iter().filter(|r| **r).count() + missed;
            let m = Metrics::of(&ranking, relevant);
            for value in [m.recall_at_1, m.recall_at_5, m.recall_at_10, m.hit_at_5, m.mrr_at_10, m.ndcg_at_10] {
                prop_assert!((0.0..=1.0 + 1e-12).contains(&value));
            }
            prop_assert!(m.recall_at_1 <= m.recall_at_5 && m.recall_at_5 <= m.recall_at_10);
        }
    }
}
