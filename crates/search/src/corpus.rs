//! Temporary keyword ranking over a few texts in memory.

use super::attributes::Attributes;
use super::fusion::Fusion;
use super::keyword::asked;
use super::part::Part;
use super::rank::{Question, Ranked, Ranker};
use super::segment::Segment;
use super::segment_builder::Builder;
use super::top_k::Hit;

/// Texts to search with one query, which is known before the texts: only its words are kept.
#[derive(Debug)]
pub struct Corpus<'q> {
    query: &'q str,
    asked: Vec<String>,
    texts: Builder,
}

impl<'q> Corpus<'q> {
    /// Empty corpus for a query.
    pub fn new(query: &'q str) -> Self {
        Self {
            query,
            asked: asked(query),
            texts: Builder::default(),
        }
    }

    /// Adds a text.
    pub fn add(&mut self, text: &str) {
        let asked = &self.asked;
        let is_asked = |word: &str| {
            asked
                .binary_search_by(|asked| asked.as_str().cmp(word))
                .is_ok()
        };
        self.texts.add_words(&Attributes::default(), text, is_asked);
    }

    /// Texts that contain a query word, best first; ties in insertion order.
    pub fn search(&self) -> Vec<Hit> {
        search(&self.texts, self.query)
    }
}

fn search(texts: &Builder, query: &str) -> Vec<Hit> {
    let bytes = texts.segment();
    let parts = Segment::open(&bytes).map(|segment| Part::new(segment, None, None));
    let question = Question {
        text: query,
        vector: None,
        fusion: Fusion::Keyword,
        floor: None,
        weak: false,
        limit: texts.len(),
        weight: |_| 1.0,
    };
    // A segment built in memory cannot be damaged.
    let ranked = Ranker::new(parts.into_iter().collect()).rank(&question);
    let hit = |ranked: &Ranked| Hit {
        document: ranked.document,
        score: ranked.score,
    };
    ranked.unwrap_or_default().iter().map(hit).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rarer_words_and_shorter_documents_come_first() {
        let order = |query| -> Vec<usize> {
            let mut corpus = Corpus::new(query);
            for text in [
                "check the total",
                "check compliance with the regulation",
                "check check check of everything that there is to check in a very long document",
                "nothing",
            ] {
                corpus.add(text);
            }
            let hits = corpus.search();
            hits.iter().map(|hit| hit.document).collect()
        };
        assert_eq!(order("compliance check"), [1, 2, 0]);
        assert_eq!(order("CHECKING"), [2, 0, 1]);
        assert_eq!(order("unknown"), [0; 0]);
        assert_eq!(order(""), [0; 0]);
    }

    proptest! {
        #[test]
        fn scores_are_those_of_an_index_of_all_words(
            texts in prop::collection::vec("([a-e]{1,2} ){0,90}", 0..12),
            query in "([a-f]{1,2} ){0,6}",
        ) {
            let mut corpus = Corpus::new(&query);
            let mut index = Builder::default();
            for text in &texts {
                corpus.add(text);
                index.add(&Attributes::default(), text);
            }
            prop_assert_eq!(corpus.search(), search(&index, &query));
        }
    }
}
