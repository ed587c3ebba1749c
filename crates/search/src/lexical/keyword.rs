//! BM25 (Robertson and Zaragoza, *The Probabilistic Relevance Framework*, 2009) over the words of
//! `text`.
#![expect(clippy::cast_precision_loss, reason = "counts of documents and words are small")]

use super::super::part::Part;
use super::super::segment::{Damaged, Posting, Postings};
use super::passages::Passages;
use super::text::words;
use memctl_files::parallel::each;

/// Term frequency saturation.
const K1: f64 = 1.2;
/// Length normalization: 0 for none, 1 for full.
const B: f64 = 0.75;

/// Minimum number of postings for a second thread.
const MUCH: usize = 20_000;
/// Minimum number of segments for a second thread, because each is searched for every word.
const MANY: usize = 8;

/// Keyword scores of a query.
#[derive(Debug, Default)]
pub(crate) struct Scores {
    /// One score per document for each part; 0 without a query word. Empty for a part without any
    /// match.
    pub of: Vec<Vec<f64>>,
    /// Upper bound of all scores: a document saturated with every query word. Words that occur in
    /// no document count as the rarest, so documents stay far below it if they miss the subject.
    pub ceiling: f64,
}

/// Distinct words of a query.
pub(crate) fn asked(query: &str) -> Vec<String> {
    let mut asked = words(query);
    asked.sort();
    asked.dedup();
    asked
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
pub(crate) fn score(parts: &[Part<'_>], query: &str) -> Result<Scores, Damaged> {
    let query = KeywordQuery::new(parts, query)?;
    let of = query.each_part(parts, |_, scores| scores);
    let ceiling = query
        .weights
        .iter()
        .fold(0.0, |sum, weight| sum + weight * (K1 + 1.0));
    Ok(Scores { of, ceiling })
}

/// Words of a query: where they occur, and what they weigh.
pub(crate) struct KeywordQuery<'a> {
    /// Inverse document frequency of each word.
    weights: Vec<f64>,
    /// For each part, the postings of each word.
    found: Vec<Vec<Option<Postings<'a>>>>,
    /// Number of admitted postings.
    postings: usize,
    norms: LengthNorms,
}

impl<'a> KeywordQuery<'a> {
    pub(crate) fn new(parts: &[Part<'a>], query: &str) -> Result<Self, Damaged> {
        let (documents, average) = measure(parts);
        let words = asked(query);
        let found = each(parts, parts.len() >= MANY, |part| find(part, &words));
        let found = found.into_iter().collect::<Result<Vec<_>, Damaged>>()?;
        let mut counts = vec![0; words.len()];
        for part in &found {
            for (count, found) in counts.iter_mut().zip(part) {
                *count += found.as_ref().map_or(0, |(count, _)| *count);
            }
        }
        let postings = |found: Option<(usize, Postings<'a>)>| found.map(|(_, postings)| postings);
        Ok(Self {
            weights: counts.iter().map(|n| weight(documents, *n)).collect(),
            found: found
                .into_iter()
                .map(|part| part.into_iter().map(postings).collect())
                .collect(),
            postings: counts.iter().sum(),
            norms: LengthNorms::new(average),
        })
    }

    /// Scores the documents of each part and returns what `then` makes of them, in order. The scores
    /// are empty for a part without any match.
    pub(crate) fn each_part<R: Send>(
        &self,
        parts: &[Part<'_>],
        then: impl Fn(&Part<'_>, Vec<f64>) -> R + Sync,
    ) -> Vec<R> {
        let is_much = self.postings >= MUCH;
        each(parts.iter().zip(&self.found), is_much, |(part, found)| {
            then(part, self.scores(part, found))
        })
    }

    fn scores(&self, part: &Part<'_>, found: &[Option<Postings<'_>>]) -> Vec<f64> {
        let mut scores = Vec::new();
        let mut passages = Passages::default();
        for (weight, postings) in self.weights.iter().zip(found) {
            let Some(postings) = postings else {
                continue;
            };
            scores.resize(part.segment.len(), 0.0);
            let postings = postings.clone();
            add(
                &mut scores, &mut passages, part, postings, *weight, &self.norms,
            );
        }
        passages.apply(&mut scores);
        scores
    }
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
