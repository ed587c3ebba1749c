//! BM25 (Robertson and Zaragoza, *The Probabilistic Relevance Framework*, 2009) over the words of
//! `text`.
#![expect(
    clippy::cast_precision_loss,
    reason = "counts of documents and words are small"
)]

use std::collections::HashMap;

use super::text::words;

/// How fast repetitions of a word stop counting.
const K1: f64 = 1.2;
/// How much long documents are held back: 0 not at all, 1 in full.
const B: f64 = 0.75;

/// Documents, ready to be asked.
#[derive(Debug, Default)]
pub struct Corpus {
    /// For each word, the documents that hold it and how often.
    postings: HashMap<String, Vec<(usize, u32)>>,
    lengths: Vec<usize>,
}

/// A document that holds at least one word of the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The document's number, in the order of insertion.
    pub document: usize,
    /// Its BM25 score; higher is better, comparable within one answer only.
    pub score: f64,
}

impl Corpus {
    /// Adds a document.
    pub fn add(&mut self, text: &str) {
        let document = self.lengths.len();
        let words = words(text);
        self.lengths.push(words.len());
        let mut counts: HashMap<String, u32> = HashMap::new();
        for word in words {
            *counts.entry(word).or_default() += 1;
        }
        for (word, count) in counts {
            self.postings
                .entry(word)
                .or_default()
                .push((document, count));
        }
    }

    /// The documents that hold a word of the query, best first; equal ones in their order.
    pub fn search(&self, query: &str) -> Vec<Hit> {
        let total = self.lengths.len() as f64;
        let average = self.lengths.iter().sum::<usize>() as f64 / total.max(1.0);
        let mut scores: HashMap<usize, f64> = HashMap::new();
        for word in &asked(query) {
            let Some(postings) = self.postings.get(word) else {
                continue;
            };
            let weight = self.weight(postings.len());
            for &(document, count) in postings {
                let length = self.lengths[document] as f64 / average.max(1.0);
                let count = f64::from(count);
                let part = count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length));
                *scores.entry(document).or_default() += weight * part;
            }
        }
        let mut hits: Vec<Hit> = scores
            .into_iter()
            .map(|(document, score)| Hit { document, score })
            .collect();
        hits.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then(a.document.cmp(&b.document))
        });
        hits
    }

    /// What no document's score for this query exceeds: that of one which is full of every word of
    /// it. Words that no document holds count as the rarest, so a query that is about something else
    /// keeps all its documents far from this.
    pub fn ceiling(&self, query: &str) -> f64 {
        let weights = asked(query)
            .into_iter()
            .map(|word| self.weight(self.postings.get(&word).map_or(0, Vec::len)));
        weights.sum::<f64>() * (K1 + 1.0)
    }

    /// How much a word says that so many documents hold.
    fn weight(&self, holding: usize) -> f64 {
        let (total, holding) = (self.lengths.len() as f64, holding as f64);
        (1.0 + (total - holding + 0.5) / (holding + 0.5)).ln()
    }
}

/// The words of a query, each once.
fn asked(query: &str) -> Vec<String> {
    let mut asked = words(query);
    asked.sort();
    asked.dedup();
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_score_exceeds_the_ceiling_of_its_query() {
        let mut corpus = Corpus::default();
        for text in ["disk disk disk", "disk full", "memory full", "nothing else"] {
            corpus.add(text);
        }
        for query in ["disk", "disk full", "disk quota", "unheard of", ""] {
            let ceiling = corpus.ceiling(query);
            let best = corpus.search(query).first().map_or(0.0, |hit| hit.score);
            assert!(best <= ceiling, "{query}: {best} of {ceiling}");
        }
        assert!(corpus.ceiling("disk quota") > corpus.ceiling("disk full"));
    }

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
