//! Best passage of each long document for the words of a query.
//!
//! BM25 adds up words from all over a document. In a long one, such as the log of a session, they can
//! come from unrelated parts, while the answer is one passage with most of them. So the score of a long
//! document is a mean of its own and that of its best window. Windows are those of `vector::windows`; short
//! documents have none and keep their score.

use super::super::segment::Posting;
use super::super::vector::windows::windows_of;

/// Share of the best window in the score of a long document.
const SHARE: f64 = 0.5;
/// Factor that puts windows on the scale of documents: a word counts once in a window, however often it
/// occurs there, and several times in a document.
const SCALE: f64 = 1.6;

/// Scores of the windows of the long documents of one part.
#[derive(Debug, Default)]
pub(super) struct Passages {
    /// For each document the place of its windows, plus one; 0 without any. Empty before the first.
    places: Vec<u32>,
    /// Documents with windows, and the end of their windows.
    ends: Vec<(u32, u32)>,
    scores: Vec<f64>,
}

impl Passages {
    /// Adds a word of the query. `documents` is their number in the part, `length` that of the words
    /// in this one.
    pub(super) fn add(&mut self, posting: &Posting, weight: f64, length: u32, documents: usize) {
        let Some(windows) = windows_of(length).filter(|_| posting.windows != 0) else {
            return;
        };
        if self.places.is_empty() {
            self.places.resize(documents, 0);
        }
        let Some(place) = self.places.get_mut(posting.document as usize) else {
            return;
        };
        if *place == 0 {
            let start = self.scores.len();
            self.scores.resize(start + windows as usize, 0.0);
            let end = u32::try_from(self.scores.len()).unwrap_or(u32::MAX);
            self.ends.push((posting.document, end));
            *place = end - windows + 1;
        }
        let start = *place as usize - 1;
        let own = self.scores.iter_mut().skip(start).take(windows as usize);
        for (window, score) in own.enumerate() {
            if posting.windows >> window & 1 == 1 {
                *score += weight;
            }
        }
    }

    /// Brings the scores of long documents together with those of their best windows.
    pub(super) fn apply(&self, scores: &mut [f64]) {
        let mut start = 0;
        for (document, end) in &self.ends {
            let own = self.scores.get(start..*end as usize).unwrap_or_default();
            let best = own.iter().copied().fold(0.0, f64::max);
            if let Some(score) = scores.get_mut(*document as usize) {
                *score = (1.0 - SHARE) * *score + SHARE * SCALE * best;
            }
            start = *end as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Corpus;

    fn filling(words: usize, seed: usize) -> String {
        let filling = (0..words).map(|n| format!("word{}", (n * 7 + seed) % 997));
        filling.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_passage_with_all_words_comes_before_words_from_everywhere() {
        let spread = ["greyhound", "carrot", "kennel"]
            .map(|word| format!("{word} {} ", filling(100, word.len())))
            .concat();
        let near = format!(
            "{} the greyhound ate a carrot in its kennel {}",
            filling(150, 1),
            filling(150, 2)
        );
        let mut corpus = Corpus::new("greyhound carrot kennel");
        corpus.add(&spread);
        corpus.add(&near);
        let hits = corpus.search();
        let order: Vec<usize> = hits.iter().map(|hit| hit.document).collect();
        assert_eq!(order, [1, 0]);
        // Both have each word once, and nearly the same length.
        assert!(hits[0].score > 1.2 * hits[1].score, "{hits:?}");
    }
}
