//! Scores of the keyword and semantic rankings, their fusion, and the best of many without a full sort.
//!
//! Either half can be nearly worthless for a query: the semantic half for an error code, the
//! keyword half for a paraphrased question. Fusion by rank cannot see that. The best hit of a bad
//! ranking counts as much as that of a good one, and equal weights then lose to the better half
//! alone. The default therefore uses scores that are comparable across queries and needs no
//! weights: a half that finds nothing scores low.
//!
//! Reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009) is available as an option, and for
//! databases that can only rank.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Method of combining two rankings.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Fusion {
    /// Weighted mean of covered query weight and cosine.
    #[default]
    Coverage,
    /// Reciprocal rank fusion.
    Rrf(Rrf),
    /// The keyword ranking alone.
    Keyword,
    /// The semantic ranking alone.
    Semantic,
}

impl Fusion {
    /// Name on the command line and in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Coverage => "default",
            Self::Rrf(_) => "rrf",
            Self::Keyword => "keyword",
            Self::Semantic => "semantic",
        }
    }
}

/// Parameters of reciprocal rank fusion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rrf {
    /// Rank constant, default 50. Larger values reduce the advantage of the first ranks.
    pub k: f64,
    /// Weight of the keyword ranking, default 1.
    pub keyword: f64,
    /// Weight of the semantic ranking, default 1.
    pub semantic: f64,
}

impl Default for Rrf {
    fn default() -> Self {
        Self {
            k: 50.0,
            keyword: 1.0,
            semantic: 1.0,
        }
    }
}

/// Weight of a cosine of 1, relative to a keyword score at its ceiling.
const MEANING: f64 = 0.8;

/// Fused scores of two rankings, best first; ties in document order. Each rank, from 1, adds
/// `weight / (k + rank)`.
#[expect(clippy::cast_precision_loss, reason = "ranks are small")]
pub(crate) fn rrf(keyword: &[Hit], semantic: &[Hit], parameters: Rrf) -> Vec<Hit> {
    let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
    for (ranking, weight) in [
        (keyword, parameters.keyword),
        (semantic, parameters.semantic),
    ] {
        for (i, hit) in ranking.iter().enumerate() {
            *scores.entry(hit.document).or_default() += weight / (parameters.k + 1.0 + i as f64);
        }
    }
    best_first(scores)
}

/// Fused score of a document, from 0 to 1.
///
/// `words` is the keyword score relative to its ceiling. It falls with every missing word, most
/// with rare ones. `meaning` is the cosine. A document without a vector gets `words` for `meaning`,
/// so that the missing vector changes nothing; without any vectors the order is the keyword order.
pub(crate) fn coverage(words: f64, meaning: Option<f64>) -> f64 {
    let meaning = meaning.map_or(words, |cosine| cosine.max(0.0));
    (words + MEANING * meaning) / (1.0 + MEANING)
}

/// Sorts documents by score.
fn best_first(scores: impl IntoIterator<Item = (usize, f64)>) -> Vec<Hit> {
    let hit = |(document, score)| Hit { document, score };
    let mut hits: Vec<Hit> = scores.into_iter().map(hit).collect();
    hits.sort_unstable_by(Hit::order);
    hits
}

/// Default minimum cosine of a document without a query word. Unrelated texts have cosines of 0 to 0.2.
pub(crate) const FLOOR: f32 = 0.3;

/// Scores of one part's documents.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'v> {
    /// Number of the first document among all.
    pub start: usize,
    /// Keyword scores, or empty.
    pub words: &'v [f64],
    /// Cosines, or empty.
    pub cosines: &'v [f32],
    /// Minimum cosine of a document without a query word.
    pub floor: f32,
}

/// One of the two rankings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    Keyword,
    Semantic,
}

impl View<'_> {
    /// Score in one ranking; `None` if the document does not take part in it.
    pub(crate) fn score(&self, half: Half, place: usize) -> Option<f64> {
        match half {
            Half::Keyword => self.words(place),
            Half::Semantic => self.meaning(place),
        }
    }

    /// Keyword score; `None` without a query word.
    pub(crate) fn words(&self, place: usize) -> Option<f64> {
        let score = self.words.get(place).copied();
        score.filter(|score| *score > 0.0)
    }

    /// Cosine; `None` without a vector.
    pub(crate) fn cosine(&self, place: usize) -> Option<f32> {
        let cosine = self.cosines.get(place).copied();
        cosine.filter(|cosine| !cosine.is_nan())
    }

    /// Cosine of a document that is near enough or contains a query word, so that it can count for
    /// or against that word.
    pub(crate) fn meaning(&self, place: usize) -> Option<f64> {
        let cosine = self.cosine(place)?;
        let counts = cosine >= self.floor || self.words(place).is_some();
        counts.then(|| f64::from(cosine))
    }

    /// Documents that match in either ranking.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = usize> {
        let scored = self.words.len().max(self.cosines.len());
        (0..scored).filter(|place| self.matches(*place))
    }

    fn matches(&self, place: usize) -> bool {
        let is_near = || {
            self.cosine(place)
                .is_some_and(|cosine| cosine >= self.floor)
        };
        self.words(place).is_some() || is_near()
    }

    /// Hits in one of the rankings.
    pub(crate) fn hits(&self, half: Half) -> impl Iterator<Item = Hit> {
        self.candidates().filter_map(move |place| {
            let score = self.score(half, place)?;
            Some(Hit {
                document: self.start + place,
                score,
            })
        })
    }
}

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
    hits: Vec<Hit>,
    limit: usize,
    /// Scores below this are discarded.
    least: f64,
}

impl Best {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            hits: Vec::new(),
            limit,
            least: f64::NEG_INFINITY,
        }
    }

    pub(crate) fn push(&mut self, document: usize, score: f64) {
        // An equal score pushed earlier ranks first and is already kept.
        if score < self.least || self.limit == 0 {
            return;
        }
        self.hits.push(Hit { document, score });
        if self.hits.len() >= self.limit.saturating_mul(2).saturating_add(64) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.hits.len() > self.limit {
            self.hits.select_nth_unstable_by(self.limit - 1, Hit::order);
            self.hits.truncate(self.limit);
            self.least = self.hits[self.limit - 1].score;
        }
    }

    /// Hits, best first; ties in document order.
    pub(crate) fn sorted(mut self) -> Vec<Hit> {
        self.cut();
        self.hits.sort_unstable_by(Hit::order);
        self.hits
    }
}

/// Number of hits above each wanted one; 0 for a missing one. Results for parts of the documents can be summed.
pub(crate) fn above(wanted: &[Option<Hit>], all: impl Iterator<Item = Hit>) -> Vec<usize> {
    let mut above = vec![0; wanted.len()];
    let worst = wanted.iter().flatten().max_by(|a, b| a.order(b));
    for hit in all.filter(|hit| worst.is_some_and(|worst| hit.order(worst).is_lt())) {
        for (wanted, above) in wanted.iter().zip(&mut above) {
            *above += usize::from(wanted.is_some_and(|wanted| hit.order(&wanted).is_lt()));
        }
    }
    above
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hits(scores: &[(usize, f64)]) -> Vec<Hit> {
        best_first(scores.iter().copied())
    }

    fn order(hits: &[Hit]) -> Vec<usize> {
        hits.iter().map(|hit| hit.document).collect()
    }

    #[test]
    fn first_in_both_is_two_fifty_firsts() {
        let fused = rrf(
            &hits(&[(3, 9.0), (1, 8.0)]),
            &hits(&[(3, 0.9), (2, 0.8)]),
            Rrf::default(),
        );
        assert_eq!(order(&fused), [3, 1, 2]);
        assert!((fused[0].score - 2.0 / 51.0).abs() < 1e-12);
        assert!((fused[1].score - 1.0 / 52.0).abs() < 1e-12);
        let parameters = Rrf {
            semantic: 2.0,
            ..Rrf::default()
        };
        let fused = rrf(&hits(&[(1, 1.0)]), &hits(&[(2, 1.0)]), parameters);
        assert_eq!(order(&fused), [2, 1]);
    }

    #[test]
    fn a_half_that_found_little_says_little() {
        // Two query words occur nowhere: the best keyword score is far below its ceiling.
        assert!(coverage(0.1, Some(0.2)) < coverage(0.0, Some(0.7)));
        // Nearly all query words occur in one document.
        assert!(coverage(0.7, Some(0.2)) > coverage(0.0, Some(0.7)));
    }

    #[test]
    fn missing_vector_changes_no_rank() {
        assert!((coverage(0.4, None) - 0.4).abs() < 1e-12);
        assert!(coverage(0.4, Some(0.3)) < 0.4 && coverage(0.4, Some(0.5)) > 0.4);
        assert!((coverage(0.0, Some(-1.0))).abs() < 1e-12);
    }

    fn ranking() -> impl Strategy<Value = Vec<Hit>> {
        prop::collection::btree_map(0usize..40, 0.0f64..1.0, 0..30).prop_map(best_first)
    }

    proptest! {
        #[test]
        fn rrf_takes_its_halves_in_any_order(a in ranking(), b in ranking()) {
            let there = rrf(&a, &b, Rrf::default());
            let back = rrf(&b, &a, Rrf::default());
            prop_assert_eq!(there, back);
        }

        #[test]
        fn every_document_comes_once_and_best_first(a in ranking(), b in ranking()) {
            let fused = rrf(&a, &b, Rrf::default());
            let mut once = order(&fused);
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(once.len(), fused.len());
            prop_assert!(fused.is_sorted_by(|a, b| a.score >= b.score));
        }

        #[test]
        fn hit_of_both_halves_comes_first(words in 0.0f64..1.0, meaning in -1.0f64..1.0, more in 0.0f64..1.0, nearer in 0.0f64..1.0) {
            let score = coverage(words, Some(meaning));
            prop_assert!((0.0..=1.0).contains(&score));
            prop_assert!(coverage(words + more, Some(meaning + nearer)) >= score);
        }
    }
}

#[cfg(test)]
mod tests_of_top_k {
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
            let expected: Vec<usize> = (0..best.len()).rev().chain([0]).collect();
            prop_assert_eq!(above(&wanted, hits()), expected);
        }
    }
}
