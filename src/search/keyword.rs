//! BM25 (Robertson and Zaragoza, *The Probabilistic Relevance Framework*, 2009) over the words of
//! `text`.
#![expect(
    clippy::cast_precision_loss,
    reason = "counts of documents and words are small"
)]

use super::rank::Part;
use super::segment::{Damaged, Posting};
use super::text::words;

/// How fast repetitions of a word stop counting.
const K1: f64 = 1.2;
/// How much long documents are held back: 0 not at all, 1 in full.
const B: f64 = 0.75;

/// How well documents fit the words of a query.
#[derive(Debug, Default)]
pub(super) struct Scores {
    /// A score a document, 0 where it holds no word of the query. Empty where no document does.
    pub(super) of: Vec<f64>,
    /// The documents that hold one, each once.
    pub(super) found: Vec<u32>,
    /// What no document's score for this query exceeds: that of one which is full of every word of
    /// it. Words that no document holds count as the rarest, so a query that is about something
    /// else keeps all its documents far from this.
    pub(super) ceiling: f64,
}

/// The words of a query, each once.
pub(super) fn asked(query: &str) -> Vec<String> {
    let mut asked = words(query);
    asked.sort();
    asked.dedup();
    asked
}

/// How many documents there are to be found, and how many words they have on average.
fn measure(parts: &[Part<'_>]) -> (f64, f64) {
    let (mut documents, mut total) = (0u64, 0u64);
    for part in parts {
        match &part.admitted {
            None => {
                documents += part.segment.len() as u64;
                total += part.segment.words();
            }
            Some(admitted) => {
                for (document, _) in admitted.iter().enumerate().filter(|(_, a)| **a) {
                    documents += 1;
                    total += u64::from(part.segment.length(document));
                }
            }
        }
    }
    let average = total as f64 / documents.max(1) as f64;
    (documents as f64, average.max(1.0))
}

/// The admitted documents that hold a word, with their place among all documents.
pub(super) fn holding(parts: &[Part<'_>], word: &str) -> Result<Vec<(u32, Posting)>, Damaged> {
    let mut out = Vec::new();
    for part in parts {
        let Some(postings) = part.segment.find(word)? else {
            continue;
        };
        out.extend(
            postings
                .filter(|posting| part.admits(posting.document as usize))
                .map(|posting| (part.start + posting.document, posting)),
        );
    }
    Ok(out)
}

/// Scores every document that holds a word of the query.
pub(super) fn score(parts: &[Part<'_>], query: &str) -> Result<Scores, Damaged> {
    let total: usize = parts.iter().map(|part| part.segment.len()).sum();
    let (documents, average) = measure(parts);
    let mut scores = Scores::default();
    for word in asked(query) {
        let postings = holding(parts, &word)?;
        let weight = weight(documents, postings.len());
        scores.ceiling += weight * (K1 + 1.0);
        if !postings.is_empty() && scores.of.is_empty() {
            scores.of = vec![0.0; total];
        }
        let mut postings = postings.into_iter().peekable();
        for part in parts {
            let end = part.start + u32::try_from(part.segment.len()).unwrap_or(u32::MAX);
            while let Some((document, posting)) = postings.next_if(|(d, _)| *d < end) {
                let length = f64::from(part.segment.length(posting.document as usize)) / average;
                let count = f64::from(posting.count);
                let share = count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length));
                let score = &mut scores.of[document as usize];
                if *score == 0.0 {
                    scores.found.push(document);
                }
                *score += weight * share;
            }
        }
    }
    Ok(scores)
}

/// How much a word says that so many of the documents hold.
fn weight(documents: f64, holding: usize) -> f64 {
    let holding = holding as f64;
    (1.0 + (documents - holding + 0.5) / (holding + 0.5)).ln()
}
