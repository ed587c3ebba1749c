//! BM25 (Robertson and Zaragoza, *The Probabilistic Relevance Framework*, 2009) over the words of
//! `text`.
//!
//! It adds up words from all over a document. In a long one, such as the log of a session, they can come
//! from unrelated parts, while the answer is one passage with most of them. So the score of a long document
//! is a mean of its own and that of its best window. Windows are those of `vectors`; short documents have
//! none and keep their score.
#![expect(clippy::cast_precision_loss, reason = "counts of documents and words are small")]

use super::segment::{Damaged, Part, Posting, Postings};
use super::text::words;
use super::vectors::windows_of;
use memctl_files::parallel::each;

/// Term frequency saturation.
const K1: f64 = 1.2;
/// Length normalization: 0 for none, 1 for full.
const B: f64 = 0.75;

/// Minimum number of postings for a second thread.
const MUCH: usize = 20_000;
/// Minimum number of segments for a second thread, because each is searched for every word.
const MANY: usize = 8;

/// Keyword scores of a query: the half that needs no vector.
#[derive(Debug, Default)]
pub struct ByWords {
    /// One score per document for each part; 0 without a query word. Empty for a part without any
    /// match.
    pub(crate) of: Vec<Vec<f64>>,
    /// Upper bound of all scores: a document saturated with every query word. Words that occur in
    /// no document count as the rarest, so documents stay far below it if they miss the subject.
    pub(crate) ceiling: f64,
}

/// Distinct words of a query.
pub(crate) fn query_words(query: &str) -> Vec<String> {
    let mut query_words = words(query);
    query_words.sort();
    query_words.dedup();
    query_words
}

/// Number of admitted documents and their average length in words.
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

/// Number of admitted documents that contain a word.
pub(crate) fn holding(parts: &[Part<'_>], word: &str) -> Result<usize, Damaged> {
    let mut count = 0;
    for part in parts {
        if let Some(postings) = part.segment.find(word)? {
            count += admitted(part, &postings);
        }
    }
    Ok(count)
}

/// Number of admitted documents in a postings list.
fn admitted(part: &Part<'_>, postings: &Postings<'_>) -> usize {
    if part.admitted.is_none() {
        return postings.documents();
    }
    let admits = |posting: &Posting| part.admits(posting.document as usize);
    postings.clone().filter(admits).count()
}

/// Scores every document that contains a query word.
pub(crate) fn score(parts: &[Part<'_>], query: &str) -> Result<ByWords, Damaged> {
    let (documents, average) = measure(parts);
    let words = query_words(query);
    let found = each(parts, parts.len() >= MANY, |part| find(part, &words));
    let found = found.into_iter().collect::<Result<Vec<_>, Damaged>>()?;
    let count = |word: usize| -> usize {
        let of_parts = found.iter().filter_map(|part| part[word].as_ref());
        of_parts.map(|(count, _)| count).sum()
    };
    let counts: Vec<usize> = (0..words.len()).map(count).collect();
    let weights: Vec<f64> = counts.iter().map(|n| weight(documents, *n)).collect();
    let norms = LengthNorms::new(average);
    let is_much = counts.iter().sum::<usize>() >= MUCH;
    let of = each(parts.iter().zip(found), is_much, |(part, found)| {
        let mut scores = Vec::new();
        let mut passages = Passages::default();
        for (weight, found) in weights.iter().zip(found) {
            if let Some((_, postings)) = found {
                scores.resize(part.segment.len(), 0.0);
                add(&mut scores, &mut passages, part, postings, *weight, &norms);
            }
        }
        passages.apply(&mut scores);
        scores
    });
    let ceiling = weights.iter().map(|weight| weight * (K1 + 1.0)).sum();
    Ok(ByWords { of, ceiling })
}

/// For each word: the number of admitted documents and the postings in this part.
fn find<'a>(
    part: &Part<'a>,
    words: &[String],
) -> Result<Vec<Option<(usize, Postings<'a>)>>, Damaged> {
    let find = |word: &String| {
        let postings = part.segment.find(word)?;
        Ok(postings.map(|postings| (admitted(part, &postings), postings)))
    };
    words.iter().map(find).collect()
}

/// Adds the contribution of one word to the scores of a part, which are one per document.
fn add(
    scores: &mut [f64],
    passages: &mut Passages,
    part: &Part<'_>,
    postings: Postings<'_>,
    weight: f64,
    norms: &LengthNorms,
) {
    let lengths = part.segment.lengths();
    let documents = lengths.len();
    let is_filtered = part.admitted.is_some();
    postings.for_each(|posting| {
        let place = posting.document as usize;
        let (Some(score), Some(length)) = (scores.get_mut(place), lengths.get(place)) else {
            return;
        };
        if is_filtered && !part.admits(place) {
            return;
        }
        let count = f64::from(posting.count);
        let length = u32::from_le_bytes(*length);
        *score += weight * (count * (K1 + 1.0) / (count + norms.of(length)));
        if posting.windows != 0 {
            passages.add(&posting, weight, length, documents);
        }
    });
}

/// Length normalization by document length.
struct LengthNorms {
    average: f64,
    /// Precomputed for lengths below 512, to avoid a division per posting.
    usual: Vec<f64>,
}

impl LengthNorms {
    fn new(average: f64) -> Self {
        let usual = (0..512).map(|length| Self::at(length, average)).collect();
        Self { average, usual }
    }

    fn of(&self, length: u32) -> f64 {
        let usual = self.usual.get(length as usize).copied();
        usual.unwrap_or_else(|| Self::at(length, self.average))
    }

    fn at(length: u32, average: f64) -> f64 {
        K1 * (1.0 - B + B * (f64::from(length) / average))
    }
}

/// Inverse document frequency of a word.
fn weight(documents: f64, holding: usize) -> f64 {
    let holding = holding as f64;
    (1.0 + (documents - holding + 0.5) / (holding + 0.5)).ln()
}

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
    use crate::search;

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
        let hits = search("greyhound carrot kennel", [&spread, &near]);
        let order: Vec<usize> = hits.iter().map(|hit| hit.document).collect();
        assert_eq!(order, [1, 0]);
        // Both have each word once, and nearly the same length.
        assert!(hits[0].score > 1.2 * hits[1].score, "{hits:?}");
    }
}
