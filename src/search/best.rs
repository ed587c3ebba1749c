//! The best of many, without sorting them all.

use std::cmp::Ordering;

/// A document and how well it fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The document's number, in the order of insertion.
    pub document: usize,
    /// Higher is better; comparable within one answer only.
    pub score: f64,
}

impl Hit {
    /// Best first; equal ones in their order.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then(self.document.cmp(&other.document))
    }
}

/// Keeps the best so many of what is pushed.
#[derive(Debug)]
pub(super) struct Best {
    kept: Vec<Hit>,
    limit: usize,
    /// Whatever is no better than this is not among the best.
    least: f64,
}

impl Best {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            kept: Vec::new(),
            limit,
            least: f64::NEG_INFINITY,
        }
    }

    pub(super) fn push(&mut self, document: usize, score: f64) {
        // An equal one that came earlier stands before it, and is kept already.
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

    /// The best, best first; equal ones in their order.
    pub(super) fn sorted(mut self) -> Vec<Hit> {
        self.cut();
        self.kept.sort_unstable_by(Hit::order);
        self.kept
    }
}

/// The rank, from 1, of each of these among all: one more than how many are better. Those who do not
/// take part have no score, and no rank.
pub(super) fn ranks(wanted: &[Option<Hit>], all: impl Iterator<Item = Hit>) -> Vec<Option<usize>> {
    let mut sorted: Vec<&Hit> = wanted.iter().flatten().collect();
    sorted.sort_unstable_by(|a, b| a.order(b));
    // How many stand between each of them and the one before it.
    let mut between = vec![0usize; sorted.len()];
    if let Some(worst) = sorted.last() {
        for hit in all.filter(|hit| hit.order(worst) == Ordering::Less) {
            let place = sorted.partition_point(|other| other.order(&hit) != Ordering::Greater);
            between[place] += 1;
        }
    }
    let mut better = 0;
    let above: Vec<usize> = between
        .into_iter()
        .map(|n| {
            better += n;
            better
        })
        .collect();
    let rank = |hit: &Hit| {
        let place = sorted.iter().position(|other| *other == hit);
        place.map(|place| above[place] + 1)
    };
    wanted
        .iter()
        .map(|hit| hit.as_ref().and_then(rank))
        .collect()
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
            let mut wanted: Vec<Option<Hit>> = best.iter().copied().map(Some).rev().collect();
            wanted.push(None);
            let mut expected: Vec<Option<usize>> = (1..=best.len()).map(Some).rev().collect();
            expected.push(None);
            prop_assert_eq!(ranks(&wanted, hits()), expected);
        }
    }
}
