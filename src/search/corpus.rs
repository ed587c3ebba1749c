//! Temporary keyword ranking over a few texts in memory.

use super::attributes::Attributes;
use super::fusion::fuse::Fusion;
use super::fusion::top_k::Hit;
use super::part::Part;
use super::rank::{Question, Ranker};
use super::segment::Segment;
use super::segment_builder::Builder;

/// Texts to search.
#[derive(Debug, Default)]
pub struct Corpus {
    texts: Builder,
}

impl Corpus {
    /// Adds a text.
    pub fn add(&mut self, text: &str) {
        self.texts.add(&Attributes::default(), text);
    }

    /// Texts that contain a query word, best first; ties in insertion order.
    pub fn search(&self, query: &str) -> Vec<Hit> {
        let bytes = self.texts.segment();
        let parts = Segment::open(&bytes).map(|segment| Part::new(segment, None, None));
        let question = Question {
            text: query,
            vector: None,
            fusion: Fusion::Keyword,
            floor: None,
            limit: self.texts.len(),
            weight: |_| 1.0,
        };
        // A segment built in memory cannot be damaged.
        let ranked = Ranker::new(parts.into_iter().collect()).rank(&question);
        let hit = |ranked: &super::rank::Ranked| Hit {
            document: ranked.document,
            score: ranked.score,
        };
        ranked.unwrap_or_default().iter().map(hit).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rarer_words_and_shorter_documents_come_first() {
        let mut corpus = Corpus::default();
        for text in [
            "check the total",
            "check compliance with the regulation",
            "check check check of everything that there is to check in a very long document",
            "nothing",
        ] {
            corpus.add(text);
        }
        let order = |query| -> Vec<usize> {
            corpus
                .search(query)
                .iter()
                .map(|hit| hit.document)
                .collect()
        };
        assert_eq!(order("compliance check"), [1, 2, 0]);
        assert_eq!(order("CHECKING"), [2, 0, 1]);
        assert_eq!(order("unknown"), [0; 0]);
        assert_eq!(order(""), [0; 0]);
    }
}
