//! Retrieval metrics for rankings with binary or graded relevance.

/// Names of the measures: the share of the relevant answers in the first 1, 5 and 10; the share of the first 5
/// that are relevant; whether one of them is there, which `LongMemEval` calls `recall_any`; whether all of them
/// are (`recall_all`); the reciprocal rank of the first one; the discounted gain relative to the ideal ranking.
const MEASURES: [&str; 10] = [
    "recall@1", "recall@5", "recall@10", "precision@5", "hit@1", "hit@5", "hit@10", "all@5",
    "mrr@10", "ndcg@10",
];

/// Measures of one query, or means over many. Each is from 0 to 1, higher is better.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Metrics([f64; MEASURES.len()]);

impl Metrics {
    /// Metrics of a ranking. `ranking` is the gain at each rank, 0 if not relevant; `relevant` is
    /// the gains of all relevant answers, in any order.
    #[expect(clippy::cast_precision_loss, reason = "ranks are small")]
    pub fn of(ranking: &[f64], relevant: &[f64]) -> Self {
        let top = |k: usize| &ranking[..ranking.len().min(k)];
        let found = |k: usize| top(k).iter().filter(|gain| **gain > 0.0).count() as f64;
        let recall = |k| found(k) / relevant.len().max(1) as f64;
        let hit = |k| found(k).min(1.0);
        let all = f64::from(!relevant.is_empty() && recall(5) >= 1.0);
        let first = top(10).iter().position(|gain| *gain > 0.0);
        let reciprocal = first.map_or(0.0, |rank| 1.0 / (rank as f64 + 1.0));
        let mut best = relevant.to_vec();
        best.sort_by(|a, b| b.total_cmp(a));
        best.truncate(10);
        let gain = discounted(top(10)) / discounted(&best).max(f64::MIN_POSITIVE);
        let recalls = [1, 5, 10].map(recall);
        let hits = [1, 5, 10].map(hit);
        let mut measures = [0.0; MEASURES.len()];
        let of_ranking = [
            &recalls[..],
            &[found(5) / 5.0],
            &hits,
            &[all, reciprocal, gain],
        ]
        .concat();
        measures.copy_from_slice(&of_ranking);
        Self(measures)
    }

    /// Means; all 0 if `all` is empty.
    #[expect(clippy::cast_precision_loss, reason = "counts of queries are small")]
    pub fn mean(all: &[Self]) -> Self {
        let sum = |at: usize| all.iter().map(|metrics| metrics.0[at]).sum::<f64>();
        Self(std::array::from_fn(|at| sum(at) / all.len().max(1) as f64))
    }

    /// The measures with their names.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, f64)> {
        MEASURES.into_iter().zip(self.0)
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
    let mut values = values.to_vec();
    let rank = (share * values.len() as f64).ceil().max(1.0) as usize;
    let place = rank.min(values.len()).saturating_sub(1);
    if values.is_empty() {
        return 0.0;
    }
    *values.select_nth_unstable_by(place, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    }

    fn get(metrics: &Metrics, name: &str) -> f64 {
        metrics.named().find(|(other, _)| *other == name).unwrap().1
    }

    #[test]
    fn measures_are_what_a_hand_computes() {
        // Relevant at ranks 2, 4 and 11; one of four is never found.
        let mut ranking = [0.0; 12];
        (ranking[1], ranking[3], ranking[10]) = (1.0, 1.0, 1.0);
        let metrics = Metrics::of(&ranking, &[1.0; 4]);
        near(get(&metrics, "recall@1"), 0.0);
        near(get(&metrics, "recall@5"), 0.5);
        near(get(&metrics, "recall@10"), 0.5);
        near(get(&metrics, "precision@5"), 0.4);
        near(get(&metrics, "hit@1"), 0.0);
        near(get(&metrics, "hit@5"), 1.0);
        near(get(&metrics, "hit@10"), 1.0);
        near(get(&metrics, "all@5"), 0.0);
        near(get(&metrics, "mrr@10"), 0.5);
        // (1/log2 3 + 1/log2 5) / (1 + 1/log2 3 + 1/2 + 1/log2 5)
        near(get(&metrics, "ndcg@10"), 1.061_606_311_6 / 2.561_606_311_6);
        assert_eq!(Metrics::of(&[], &[1.0; 3]), Metrics::default());
        let both = Metrics::of(&[0.0, 1.0, 1.0], &[1.0, 1.0]);
        near(get(&both, "all@5"), 1.0);
        near(get(&both, "hit@1"), 0.0);
        near(get(&Metrics::of(&[1.0], &[1.0]), "ndcg@10"), 1.0);
    }

    #[test]
    fn higher_grade_counts_more() {
        let (good, better) = (1.0, 3.0);
        let ideal = Metrics::of(&[better, good], &[good, better]);
        near(get(&ideal, "ndcg@10"), 1.0);
        let swapped = Metrics::of(&[good, better], &[good, better]);
        // (1 + 3/log2 3) / (3 + 1/log2 3)
        near(get(&swapped, "ndcg@10"), 2.892_789_260_6 / 3.630_929_753_6);
        near(get(&swapped, "recall@5"), 1.0);
    }

    #[test]
    fn means_and_percentiles() {
        let mean = Metrics::mean(&[
            Metrics::of(&[1.0], &[1.0]),
            Metrics::of(&[0.0, 1.0], &[1.0]),
        ]);
        near(get(&mean, "recall@1"), 0.5);
        near(get(&mean, "mrr@10"), 0.75);
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
            for value in [get(&m, "recall@1"), get(&m, "recall@5"), get(&m, "recall@10"), get(&m, "hit@5"), get(&m, "mrr@10"), get(&m, "ndcg@10")] {
                prop_assert!((0.0..=1.0 + 1e-12).contains(&value));
            }
            prop_assert!(get(&m, "recall@1") <= get(&m, "recall@5") && get(&m, "recall@5") <= get(&m, "recall@10"));
        }
    }
}
