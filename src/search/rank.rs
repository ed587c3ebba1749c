//! Documents, ready to be ranked by words, by meaning, or by both.
//!
//! The one ranking of this program: `memory search` and `eval retrieval` both come here, so what is
//! measured is what is used. Makes no vectors: who asks brings them, for as many documents as
//! there are.

use super::embed::{Vector, cosine};
use super::fuse::{Fusion, best_first, coverage, rrf};
use super::keyword::{Corpus, Hit};

/// How near in meaning a document must be that holds no word of the query. Unrelated texts have
/// cosines of 0 to 0.2.
const FLOOR: f32 = 0.3;

/// The least fused score of a document whose meaning is known: what shares a passing word with the
/// query and means something else lies below it.
const LEAST: f64 = 0.1;

/// Documents, ready to be ranked.
#[derive(Debug, Default)]
pub struct Ranker {
    corpus: Corpus,
    vectors: Vec<Option<Box<Vector>>>,
}

/// A document that fits the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// The document's number, in the order of insertion.
    pub document: usize,
    /// Higher is better; comparable within one answer only.
    pub score: f64,
    /// Its rank by words, from 1; `None` where it holds none of them.
    pub keyword: Option<usize>,
    /// Its rank by meaning, from 1; `None` where it has no vector or is too far.
    pub semantic: Option<usize>,
}

impl Ranker {
    /// Adds a document, and its vector if there is one.
    pub fn add(&mut self, text: &str, vector: Option<Box<Vector>>) {
        self.corpus.add(text);
        self.vectors.push(vector);
    }

    /// The documents that fit the query, best first. Without the query's vector there is no ranking
    /// by meaning, and every fusion is the keyword ranking; likewise where the query is in a script
    /// that the model has not learnt.
    pub fn rank(&self, query: &str, vector: Option<&Vector>, fusion: Fusion) -> Vec<Ranked> {
        let vector = vector.filter(|_| is_readable(query));
        let by_words = match fusion {
            Fusion::Semantic if vector.is_some() => Vec::new(),
            _ => self.corpus.search(query),
        };
        let by_meaning = match (vector, fusion) {
            (None, _) | (_, Fusion::Keyword) => Vec::new(),
            (Some(vector), _) => self.by_meaning(vector, &by_words),
        };
        let words = self.ranks(&by_words);
        let meaning = self.ranks(&by_meaning);
        let fused = match fusion {
            Fusion::Coverage => {
                let mut fused = coverage(&by_words, self.corpus.ceiling(query), &by_meaning);
                fused.retain(|hit| hit.score >= LEAST || meaning[hit.document].is_none());
                fused
            }
            Fusion::Rrf(parameters) => rrf(&by_words, &by_meaning, parameters),
            Fusion::Semantic if vector.is_some() => by_meaning,
            Fusion::Keyword | Fusion::Semantic => by_words,
        };
        let ranked = |hit: Hit| Ranked {
            document: hit.document,
            score: hit.score,
            keyword: words[hit.document],
            semantic: meaning[hit.document],
        };
        fused.into_iter().map(ranked).collect()
    }

    /// The documents by their cosines: those that are near enough, and those that hold a word, so
    /// that their meaning can count for or against them.
    fn by_meaning(&self, vector: &Vector, by_words: &[Hit]) -> Vec<Hit> {
        let mut wanted = vec![false; self.vectors.len()];
        for hit in by_words {
            wanted[hit.document] = true;
        }
        let cosines = self.vectors.iter().enumerate().filter_map(|(i, other)| {
            let cosine = cosine(vector, other.as_deref()?);
            (wanted[i] || cosine >= FLOOR).then_some((i, f64::from(cosine)))
        });
        best_first(cosines)
    }

    /// For each document its rank from 1.
    fn ranks(&self, hits: &[Hit]) -> Vec<Option<usize>> {
        let mut ranks = vec![None; self.vectors.len()];
        for (i, hit) in hits.iter().enumerate() {
            ranks[hit.document] = Some(i + 1);
        }
        ranks
    }
}

/// Whether most letters are Latin. Of other scripts the model knows single characters, and finds
/// texts alike that merely share some of them.
fn is_readable(query: &str) -> bool {
    let (latin, letters) = query
        .chars()
        .filter(|c| c.is_alphabetic())
        .fold((0, 0), |(l, n), c| {
            (l + usize::from(u32::from(c) < 0x0250), n + 1)
        });
    latin * 2 > letters
}

#[cfg(test)]
mod tests {
    use super::super::embed::DIMENSIONS;
    use super::*;

    /// A vector in the plane of the first two axes.
    fn at(degrees: f32) -> Vector {
        let mut vector = [0.0; DIMENSIONS];
        (vector[1], vector[0]) = degrees.to_radians().sin_cos();
        vector
    }

    fn ranker() -> Ranker {
        let mut ranker = Ranker::default();
        ranker.add("verify regulatory requirements", Some(Box::new(at(10.0))));
        ranker.add("check compliance", Some(Box::new(at(20.0))));
        ranker.add("bake bread", Some(Box::new(at(85.0))));
        ranker.add("compliance without a vector", None);
        ranker
    }

    fn order(fusion: Fusion, vector: Option<&Vector>) -> Vec<usize> {
        let ranked = ranker().rank("compliance check", vector, fusion);
        ranked.iter().map(|hit| hit.document).collect()
    }

    #[test]
    fn each_fusion_ranks_its_own_way_and_leaves_out_what_is_far() {
        let query = at(0.0);
        assert_eq!(order(Fusion::Coverage, Some(&query)), [1, 0, 3]);
        assert_eq!(order(Fusion::Keyword, Some(&query)), [1, 3]);
        assert_eq!(order(Fusion::Semantic, Some(&query)), [0, 1]);
        assert_eq!(
            order(Fusion::Rrf(super::super::Rrf::default()), Some(&query)),
            [1, 0, 3]
        );
        let foreign = ranker().rank("проверка соответствия", Some(&query), Fusion::Coverage);
        assert!(foreign.is_empty(), "{foreign:?}");
        for fusion in [Fusion::Coverage, Fusion::Semantic, Fusion::Keyword] {
            assert_eq!(order(fusion, None), [1, 3]);
        }
    }

    #[test]
    fn a_passing_word_is_no_answer_where_the_meaning_is_another() {
        let query = "compliance of the yearly audit with foreign regulations of trade";
        let ranked = ranker().rank(query, Some(&at(100.0)), Fusion::Coverage);
        let found: Vec<usize> = ranked.iter().map(|hit| hit.document).collect();
        // What has no vector may still be right; bread is near by its vector alone.
        assert_eq!(found, [2, 3]);
    }

    #[test]
    fn ranks_say_which_half_found_it() {
        let ranked = ranker().rank("compliance check", Some(&at(0.0)), Fusion::Coverage);
        let ranks: Vec<_> = ranked.iter().map(|r| (r.keyword, r.semantic)).collect();
        assert_eq!(
            ranks,
            [(Some(1), Some(2)), (None, Some(1)), (Some(2), None)]
        );
        assert_eq!(
            Ranker::default().rank("x", Some(&at(0.0)), Fusion::Coverage),
            []
        );
    }
}
