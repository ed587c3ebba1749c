//! Ranking by keywords alone.
//!
//! A query with a frequent word matches most of the documents, and a result needs only a few of them. So the
//! scores of one part at a time are in memory. A document is kept only if it can be a result, or come before
//! one in the ranking without the weights of kinds.

use super::super::attributes::KINDS;
use super::super::fusion::top_k::{Best, Hit, RankCounter};
use super::super::lexical::keyword::KeywordQuery;
use super::super::part::Part;
use super::super::segment::Damaged;
use super::{Question, Ranked, Ranker};

/// Factor of the score by kind of the document.
#[derive(Debug, Clone, Copy)]
pub(super) struct KindWeights([f64; KINDS]);

impl KindWeights {
    pub(super) fn new(question: &Question<'_>) -> Self {
        Self(std::array::from_fn(|kind| {
            u8::try_from(kind).map_or(1.0, question.weight)
        }))
    }

    /// Factor of a document.
    pub(super) fn of(&self, part: &Part<'_>, place: usize) -> f64 {
        let kind = usize::from(part.segment.kind(place));
        self.0.get(kind).copied().unwrap_or(1.0)
    }

    /// The greatest factor that a document can have.
    pub(super) fn greatest(&self) -> f64 {
        self.0.into_iter().fold(1.0, f64::max)
    }
}

impl Ranker<'_> {
    /// Documents that contain a query word, best first.
    pub(super) fn rank_keywords(&self, question: &Question<'_>) -> Result<Vec<Ranked>, Damaged> {
        let weights = KindWeights::new(question);
        let query = KeywordQuery::new(&self.parts, question.text)?;
        let leading = query.each_part(&self.parts, |part, scores| {
            leading(part, &scores, weights, question.limit)
        });
        let leading: Vec<Hit> = leading.into_iter().flatten().collect();
        let mut best = Best::new(question.limit);
        for hit in &leading {
            let place = self.place(hit.document);
            let weight = place.map_or(1.0, |(part, place)| weights.of(&self.parts[part], place));
            best.push(hit.document, hit.score * weight);
        }
        let best = best.sorted();
        let unweighted = |hit: &Hit| {
            let at = leading.partition_point(|leading| leading.document < hit.document);
            leading.get(at).copied()
        };
        let ladder = RankCounter::new(best.iter().map(unweighted));
        let between = ladder.between(leading.iter().copied());
        let ranked = best.iter().map(|hit| {
            let words = unweighted(hit);
            Ranked {
                document: hit.document,
                score: hit.score,
                keyword: words.and_then(|words| ladder.rank(&words, &between)),
                semantic: None,
                words: words.map_or(0.0, |words| words.score),
                cosine: None,
                window: None,
                weak: false,
            }
        });
        Ok(ranked.collect())
    }
}

/// Documents of a part, in order, with their unweighted scores: those that can be among the `limit` best of
/// all parts, and those that can have a higher score than one of these.
fn leading(part: &Part<'_>, scores: &[f64], weights: KindWeights, limit: usize) -> Vec<Hit> {
    let greatest = weights.greatest();
    let mut best = Best::new(limit);
    let mut leading = Vec::new();
    for (place, score) in scores.iter().enumerate() {
        if *score <= 0.0 || score * greatest < best.least() {
            continue;
        }
        let document = part.start as usize + place;
        best.push(document, score * weights.of(part, place));
        leading.push(Hit {
            document,
            score: *score,
        });
    }
    let least = best.sorted().last().map(|hit| hit.score);
    leading.retain(|hit| least.is_some_and(|least| hit.score * greatest >= least));
    leading
}
