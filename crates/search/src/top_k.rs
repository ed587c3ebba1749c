//! Top-k selection without a full sort.

use std::cmp::Ordering;

/// Document with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Document number, in insertion order.
    pub document: usize,
    /// Higher is better; comparable only within one result.
    pub score: f64,
}

impl Hit {
    /// Orders by score, best first, then by document number.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then(self.document.cmp(&other.document))
    }
}

/// Keeps the `limit` best hits.
#[derive(Debug)]
pub(crate) struct Best {
    kept: Vec<Hit>,
    limit: usize,
    /// Scores below this are discarded.
    least: f64,
}

impl Best {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            kept: Vec::new(),
            limit,
            least: f64::NEG_INFINITY,
        }
    }

    pub(crate) fn push(&mut self, document: usize, score: f64) {
        // An equal score pushed earlier ranks first and is already kept.
        if score < self.least || self.limit == 0 {
            return;
        }
        self.kept.push(Hit { document, score });
        if self.kept.len() >= self.limit.saturating_mul(2).saturating_add(64) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.kept.len() > self.limit {
            self.kept.select_nth_unstable_by(self.limit - 1, Hit::order);
            self.kept.truncate(self.limit);
            self.least = self.kept[self.limit - 1].score;
        }
    }

    /// Hits, best first; ties in document order.
    pub(crate) fn sorted(mut self) -> Vec<Hit> {
        self.cut();
        self.kept.sort_unstable_by(Hit::order);
        self.kept
    }
}

/// Ranks of hits among all, from 1; `None` for a missing hit. `count` returns what [`between`] does, for all
/// documents.
pub(crate) fn ranks(
    wanted: &[Option<Hit>],
    count: impl Fn(&[Hit]) -> Vec<usize>,
) -> Vec<Option<usize>> {
    let mut sorted: Vec<Hit> = wanted.iter().flatten().copied().collect();
    sorted.sort_unstable_by(Hit::order);
    let between = count(&sorted);
    let rank = |hit: &Hit| {
        let place = sorted.partition_point(|other| other.order(hit).is_lt());
        between[..=place].iter().sum::<usize>() + 1
    };
    wanted.iter().map(|hit| hit.as_ref().map(rank)).collect()
}

/// Number of hits between each wanted hit, which are sorted, and the one before it. Results for parts of the
/// documents can be summed.
pub(crate) fn between(sorted: &[Hit], all: impl Iterator<Item = Hit>) -> Vec<usize> {
    let mut between = vec![0; sorted.len()];
    if let Some(worst) = sorted.last() {
        let is_above = |hit: &Hit| hit.score >= worst.score && hit.order(worst).is_lt();
        for hit in all.filter(is_above) {
            let above = |wanted: &Hit| wanted.order(&hit) != Ordering::Greater;
            between[sorted.partition_point(above)] += 1;
        }
    }
    between
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_best_are_those_of_a_full_sort(scores in prop::collection::vec(0u8..20, 0..300), limit in 0usize..12) {
            let hits = || scores.iter().enumerate().map(|(document, s)| Hit { document, score: f64::from(*s) });
            let mut sorted: Vec<Hit> = hits().collect();
            sorted.sort_by(Hit::order);
            let mut best = Best::new(limit);
            for hit in hits() {
                best.push(hit.document, hit.score);
            }
            let best = best.sorted();
            prop_assert_eq!(&best[..], &sorted[..limit.min(sorted.len())]);
            let wanted: Vec<Option<Hit>> = best.iter().copied().map(Some).rev().chain([None]).collect();
            let (some, others) = scores.split_at(scores.len() / 2);
            let part = |sorted: &[Hit], scores: &[u8], first| {
                let hit = |(document, s): (usize, &u8)| Hit { document, score: f64::from(*s) };
                between(sorted, (first..).zip(scores).map(hit))
            };
            let found = ranks(&wanted, |sorted| {
                let others = part(sorted, others, some.len());
                part(sorted, some, 0).into_iter().zip(others).map(|(a, b)| a + b).collect()
            });
            let expected = (1..=best.len()).map(Some).rev().chain([None]);
            prop_assert_eq!(found, expected.collect::<Vec<_>>());
        }
    }
}
