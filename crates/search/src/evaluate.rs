//! Retrieval metrics for rankings with binary or graded relevance.

/// Metrics of one query, or means over many. Each is from 0 to 1, higher is better.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Metrics {
    /// Share of the relevant answers at rank 1.
    pub recall_at_1: f64,
    /// Share of the relevant answers in the first five.
    pub recall_at_5: f64,
    /// Share of the relevant answers in the first ten.
    pub recall_at_10: f64,
    /// 1 if the first answer is relevant, else 0. `LongMemEval` calls these `recall_any`.
    pub hit_at_1: f64,
    /// 1 if the first five contain a relevant answer, else 0.
    pub hit_at_5: f64,
    /// 1 if the first ten contain a relevant answer, else 0.
    pub hit_at_10: f64,
    /// 1 if the first five contain all relevant answers, else 0. `LongMemEval` calls it `recall_all`.
    pub all_at_5: f64,
    /// Reciprocal rank of the first relevant answer; 0 beyond rank ten.
    pub mrr_at_10: f64,
    /// Discounted cumulative gain of the first ten, relative to the ideal ranking.
    pub ndcg_at_10: f64,
}

impl Metrics {
    /// Metrics of a ranking. `ranking` is the gain at each rank, 0 if not relevant; `relevant` is
    /// the gains of all relevant answers, in any order.
    #[expect(clippy::cast_precision_loss, reason = "ranks are small")]
    pub fn of(ranking: &[f64], relevant: &[f64]) -> Self {
        let top = |k: usize| &ranking[..ranking.len().min(k)];
        let found = |k: usize| top(k).iter().filter(|gain| **gain > 0.0).count() as f64;
        let recall = |k| found(k) / relevant.len().max(1) as f64;
        let mut best = relevant.to_vec();
        best.sort_by(|a, b| b.total_cmp(a));
        best.truncate(10);
        Self {
            recall_at_1: recall(1),
            recall_at_5: recall(5),
            recall_at_10: recall(10),
            hit_at_1: found(1).min(1.0),
            hit_at_5: found(5).min(1.0),
            hit_at_10: found(10).min(1.0),
            all_at_5: f64::from(!relevant.is_empty() && recall(5) >= 1.0),
            mrr_at_10: top(10)
                .iter()
                .position(|gain| *gain > 0.0)
                .map_or(0.0, |rank| 1.0 / (rank as f64 + 1.0)),
            ndcg_at_10: discounted(top(10)) / discounted(&best).max(f64::MIN_POSITIVE),
        }
    }

    /// Means; all 0 if `all` is empty.
    #[expect(clippy::cast_precision_loss, reason = "counts of queries are small")]
    pub fn mean(all: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / all.len().max(1) as f64;
        Self {
            recall_at_1: mean(|m| m.recall_at_1),
            recall_at_5: mean(|m| m.recall_at_5),
            recall_at_10: mean(|m| m.recall_at_10),
            hit_at_1: mean(|m| m.hit_at_1),
            hit_at_5: mean(|m| m.hit_at_5),
            hit_at_10: mean(|m| m.hit_at_10),
            all_at_5: mean(|m| m.all_at_5),
            mrr_at_10: mean(|m| m.mrr_at_10),
            ndcg_at_10: mean(|m| m.ndcg_at_10),
        }
    }
}

/// Discounted gain: later ranks count less.
#[expect(clippy::cast_precision_loss, reason = "ranks are small")]
fn discounted(gains: &[f64]) -> f64 {
    let at = |(rank, gain): (usize, &f64)| gain / (rank as f64 + 2.0).log2();
    gains.iter().enumerate().map(at).sum()
}

/// Percentile by nearest rank; 0 if `values` is empty.
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
        // Relevant at ranks 2, 4 and 11; one of four is never found.
        let mut ranking = [0.0; 12];
        (ranking[1], ranking[3], ranking[10]) = (1.0, 1.0, 1.0);
        let metrics = Metrics::of(&ranking, &[1.0; 4]);
        near(metrics.recall_at_1, 0.0);
        near(metrics.recall_at_5, 0.5);
        near(metrics.recall_at_10, 0.5);
        near(metrics.hit_at_1, 0.0);
        near(metrics.hit_at_5, 1.0);
        near(metrics.hit_at_10, 1.0);
        near(metrics.all_at_5, 0.0);
        near(metrics.mrr_at_10, 0.5);
        // (1/log2 3 + 1/log2 5) / (1 + 1/log2 3 + 1/2 + 1/log2 5)
        near(metrics.ndcg_at_10, 1.061_606_311_6 / 2.561_606_311_6);
        assert_eq!(Metrics::of(&[], &[1.0; 3]), Metrics::default());
        let both = Metrics::of(&[0.0, 1.0, 1.0], &[1.0, 1.0]);
        near(both.all_at_5, 1.0);
        near(both.hit_at_1, 0.0);
        near(Metrics::of(&[1.0], &[1.0]).ndcg_at_10, 1.0);
    }

    #[test]
    fn what_is_worth_more_counts_more() {
        let (good, better) = (1.0, 3.0);
        near(
            Metrics::of(&[better, good], &[good, better]).ndcg_at_10,
            1.0,
        );
        let swapped = Metrics::of(&[good, better], &[good, better]);
        // (1 + 3/log2 3) / (3 + 1/log2 3)
        near(swapped.ndcg_at_10, 2.892_789_260_6 / 3.630_929_753_6);
        near(swapped.recall_at_5, 1.0);
    }

    #[test]
    fn means_and_percentiles() {
        let mean = Metrics::mean(&[
            Metrics::of(&[1.0], &[1.0]),
            Metrics::of(&[0.0, 1.0], &[1.0]),
        ]);
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
        fn no_measure_leaves_its_range(ranking in prop::collection::vec(0u8..4, 0..30), missed in prop::collection::vec(1u8..4, 0..5)) {
            let ranking: Vec<f64> = ranking.into_iter().map(f64::from).collect();
            let found = ranking.iter().copied().filter(|gain| *gain > 0.0);
            let relevant: Vec<f64> = found.chain(missed.into_iter().map(f64::from)).collect();
            let m = Metrics::of(&ranking, &relevant);
            for value in [m.recall_at_1, m.recall_at_5, m.recall_at_10, m.hit_at_5, m.mrr_at_10, m.ndcg_at_10] {
                prop_assert!((0.0..=1.0 + 1e-12).contains(&value));
            }
            prop_assert!(m.recall_at_1 <= m.recall_at_5 && m.recall_at_5 <= m.recall_at_10);
        }
    }
}
