//! Cosines of all documents with the query: estimates from binary vectors, exact for the documents
//! that can be results.
//!
//! The best documents by their estimates are compared first. Then the others whose estimate leaves them
//! a chance to be among the results: so the number of comparisons depends on how close the results are
//! to the rest, not on the number of documents.

use super::super::fusion::fuse::{Fusion, MEANING_SHARE};
use super::super::fusion::top_k::Hit;
use super::super::fusion::view::FLOOR;
use super::super::vector::binary_vectors::BinaryQuery;
use super::super::vector::quantized_vectors::QueryVector;
use super::keywords::KindWeights;
use super::{ByWords, MANY_VECTORS, MinimumScores, POOL, Question, Ranker};
use memctl_files::parallel::each;

/// Minimum number of documents that are compared exactly, and their number for each result.
const CANDIDATES: usize = 1_000;
const PER_RESULT: usize = 4;
/// Maximum number.
const MOST: usize = 65_536;
/// Margin below the cosine that an estimate may have: 2.5 standard deviations.
const MARGIN: f32 = 0.1;

/// Cosines of each part's documents.
#[derive(Debug, Default)]
pub(super) struct Cosines {
    /// [`f32::NAN`] without a vector; empty for a part without vectors.
    pub(super) of: Vec<Vec<f32>>,
    /// Documents that were compared exactly, in order, where the others have estimates; `None` for all.
    pub(super) exact: Vec<Option<Vec<usize>>>,
}

impl Ranker<'_> {
    /// Cosines with the query vector.
    pub(super) fn cosines(
        &self,
        vector: &[f32],
        query: &QueryVector,
        words: &ByWords,
        question: &Question<'_>,
    ) -> Cosines {
        let (of, estimated) = self.estimates(vector, query);
        let mut cosines = Cosines {
            of,
            exact: vec![None; self.parts.len()],
        };
        if !estimated.contains(&true) {
            return cosines;
        }
        let (fusion, results) = match question.fusion {
            Fusion::Rrf(_) => (Fusion::Semantic, POOL.max(question.limit)),
            fusion => (fusion, question.limit),
        };
        let exact = Question {
            fusion,
            limit: results,
            ..*question
        };
        let estimate = |limit| Question {
            floor: Some(question.floor.unwrap_or(FLOOR) - MARGIN),
            limit,
            ..exact
        };
        let first = estimate(CANDIDATES.max(PER_RESULT.saturating_mul(results)));
        let views = self.views(&cosines, words, &first);
        let candidates = self.fused(&views, words, &first, MinimumScores::NOTHING);
        self.compare(query, &mut cosines, &candidates, &estimated);

        let views = self.views(&cosines, words, &exact);
        let best = self.fused(&views, words, &exact, MinimumScores::RESULT);
        if let Some(last) = results.checked_sub(1).and_then(|last| best.get(last)) {
            let weight = KindWeights::new(question).greatest();
            let share = match fusion {
                Fusion::Semantic => 1.0,
                _ => MEANING_SHARE,
            };
            let minimum = MinimumScores {
                weighted: last.score - f64::from(MARGIN) * share * weight,
                ..MinimumScores::NOTHING
            };
            let second = estimate(MOST);
            let exact = std::mem::replace(&mut cosines.exact, vec![None; self.parts.len()]);
            let views = self.views(&cosines, words, &second);
            let candidates = self.fused(&views, words, &second, minimum);
            cosines.exact = exact;
            self.compare(query, &mut cosines, &candidates, &estimated);
        }
        cosines
    }

    /// Estimates of parts with binary vectors; exact cosines of the others. Says which are estimates.
    fn estimates(&self, vector: &[f32], query: &QueryVector) -> (Vec<Vec<f32>>, Vec<bool>) {
        let binary = BinaryQuery::new(vector);
        let cosines = each(&self.parts, self.total >= MANY_VECTORS, |part| {
            let admitted = part.admitted.as_deref();
            if let Some(vectors) = part.binary.filter(|_| part.vectors.is_some())
                && vectors.is_intact()
            {
                return (vectors.cosines(&binary, admitted), true);
            }
            let cosines = part.vectors.map(|slots| slots.cosines(query, admitted));
            (cosines.unwrap_or_default(), false)
        });
        cosines.into_iter().unzip()
    }

    /// Replaces the estimates of these documents.
    fn compare(
        &self,
        query: &QueryVector,
        cosines: &mut Cosines,
        candidates: &[Hit],
        estimated: &[bool],
    ) {
        let mut of_parts = vec![Vec::new(); self.parts.len()];
        for hit in candidates {
            if let Some((part, place)) = self
                .place(hit.document)
                .filter(|(part, _)| estimated[*part])
            {
                of_parts[part].push(place);
            }
        }
        let parts = self.parts.iter().zip(estimated).zip(of_parts);
        let parts = parts.zip(cosines.of.iter_mut().zip(&mut cosines.exact));
        each(
            parts,
            true,
            |(((part, estimated), mut places), (of, exact))| {
                if !*estimated {
                    return;
                }
                let known = exact.get_or_insert_default();
                places.retain(|place| known.binary_search(place).is_err());
                places.sort_unstable();
                let found = part.vectors.map(|slots| slots.cosines_of(&places, query));
                for (place, cosine) in places.iter().zip(found.unwrap_or_default()) {
                    of[*place] = cosine;
                }
                known.extend(places);
                known.sort_unstable();
            },
        );
    }
}
