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

    /// Keeps only hits of at least this score.
    pub(crate) fn at_least(limit: usize, least: f64) -> Self {
        Self {
            least,
            ..Self::new(limit)
        }
    }

    /// Score below which a hit is certainly not kept. It rises with the hits.
    pub(crate) fn least(&self) -> f64 {
        self.least
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

/// Computes the ranks of some hits among all.
#[derive(Debug)]
pub(crate) struct RankCounter {
    wanted: Vec<Hit>,
}

impl RankCounter {
    /// Counter for the given hits; `None` values are skipped.
    pub(crate) fn new(wanted: impl IntoIterator<Item = Option<Hit>>) -> Self {
        let mut wanted: Vec<Hit> = wanted.into_iter().flatten().collect();
        wanted.sort_unstable_by(Hit::order);
        Self { wanted }
    }

    /// Number of hits between each wanted hit and the one before it. Results for parts of the documents
    /// can be summed.
    pub(crate) fn between(&self, all: impl Iterator<Item = Hit>) -> Vec<usize> {
        let mut between = vec![0; self.wanted.len()];
        if let Some(worst) = self.wanted.last() {
            let is_above = |hit: &Hit| hit.score >= worst.score && hit.order(worst).is_lt();
            for hit in all.filter(is_above) {
                let above = |wanted: &Hit| wanted.order(&hit) != Ordering::Greater;
                between[self.wanted.partition_point(above)] += 1;
            }
        }
        between
    }

    /// Rank of a hit, from 1; `None` if the hit is not wanted.
    pub(crate) fn rank(&self, hit: &Hit, between: &[usize]) -> Option<usize> {
        let place = self.wanted.iter().position(|wanted| wanted == hit)?;
        Some(between.iter().take(place + 1).sum::<usize>() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::top_k::*;
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
            let ladder = RankCounter::new(best.iter().copied().map(Some).rev().chain([None]));
            let (some, others) = scores.split_at(scores.len() / 2);
            let hits = |scores: &[u8], first| {
                let hit = move |(document, s): (usize, u8)| Hit { document, score: f64::from(s) };
                (first..).zip(scores.to_vec()).map(hit).collect::<Vec<_>>()
            };
            let (a, b) = (hits(some, 0), hits(others, some.len()));
            let between = ladder.between(a.into_iter()).into_iter().zip(ladder.between(b.into_iter()));
            let between: Vec<usize> = between.map(|(a, b)| a + b).collect();
            for (hit, rank) in best.iter().zip(1..) {
                prop_assert_eq!(ladder.rank(hit, &between), Some(rank));
            }
        }
    }
}
