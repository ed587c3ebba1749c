//! Documents, ready to be ranked by words, by meaning, or by both.
//!
//! The one ranking of this program: `memory search`, hints and `eval retrieval` all come here, so
//! what is measured is what is used. Exact: every admitted document is looked at, up to millions of
//! them. Makes no vectors: who asks brings them, for as many documents as there are.

use crate::model::Kind;

use super::best::{Best, Hit, Ladder};
use super::fuse::{Fusion, coverage, rrf};
use super::keyword::{self, Scores};
use super::parallel::each;
use super::segment::{Damaged, Segment};
use super::slots::{QueryVector, Slots};
use super::view::{Half, View};

/// The least fused score of a document whose meaning is known: what shares a passing word with the
/// query and means something else lies below it.
const LEAST: f64 = 0.1;

/// So many of each ranking take part where they are fused by rank.
const POOL: usize = 1_000;

/// So many vectors are worth a second thread, and so many scores.
const MANY_VECTORS: usize = 10_000;
const MANY_SCORES: usize = 100_000;

/// Some of the documents.
#[derive(Debug)]
pub struct Part<'a> {
    /// Their words.
    pub segment: Segment<'a>,
    /// Their vectors, as far as there are any.
    pub vectors: Option<Slots<'a>>,
    /// Which of them may be found at all, one value a document; `None` is all of them.
    pub admitted: Option<Vec<bool>>,
    /// The place of the first of them among all documents; set by [`Ranker::new`].
    pub(super) start: u32,
}

impl<'a> Part<'a> {
    /// All documents of a segment.
    pub fn new(
        segment: Segment<'a>,
        vectors: Option<Slots<'a>>,
        admitted: Option<Vec<bool>>,
    ) -> Self {
        Self {
            segment,
            vectors,
            admitted,
            start: 0,
        }
    }

    pub(super) fn admits(&self, document: usize) -> bool {
        let value = |admitted: &Vec<bool>| admitted.get(document).copied().unwrap_or(false);
        self.admitted.as_ref().is_none_or(value) && document < self.segment.len()
    }
}

/// Documents, ready to be ranked.
#[derive(Debug)]
pub struct Ranker<'a> {
    pub(super) parts: Vec<Part<'a>>,
    total: usize,
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The words.
    pub text: &'a str,
    /// The vector of the words. Without it there is no ranking by meaning, and every fusion is the
    /// keyword ranking; likewise where the words are in a script that the model has not learnt.
    pub vector: Option<&'a [f32]>,
    /// How two rankings become one.
    pub fusion: Fusion,
    /// How many answers at most.
    pub limit: usize,
    /// What a score counts by the kind of its document.
    pub weight: fn(Kind) -> f64,
}

/// A document that fits the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// The document's number, in the order of insertion, over all parts.
    pub document: usize,
    /// Higher is better; comparable within one answer only.
    pub score: f64,
    /// Its rank by words, from 1; `None` where it holds none of them.
    pub keyword: Option<usize>,
    /// Its rank by meaning, from 1; `None` where it has no vector or is too far.
    pub semantic: Option<usize>,
    /// Its BM25 score; 0 where it holds none of the words.
    pub words: f64,
    /// The cosine of its vector and the query's; `None` where there is none to compare.
    pub cosine: Option<f32>,
}

/// How well documents fit the words of a query: the half of an answer that needs no vector.
#[derive(Debug, Default)]
pub struct ByWords(Scores);

impl<'a> Ranker<'a> {
    /// The documents of these parts.
    pub fn new(mut parts: Vec<Part<'a>>) -> Self {
        let mut total = 0;
        for part in &mut parts {
            part.start = u32::try_from(total).unwrap_or(u32::MAX);
            total += part.segment.len();
        }
        Self { parts, total }
    }

    /// The part that a document is in, and its place there.
    pub fn place(&self, document: usize) -> Option<(usize, usize)> {
        let part = self
            .parts
            .partition_point(|part| part.start as usize <= document)
            .checked_sub(1)?;
        let place = document - self.parts[part].start as usize;
        (place < self.parts[part].segment.len()).then_some((part, place))
    }

    /// The half of an answer that needs no vector, for [`Self::rank_with`]: whoever waits for the
    /// query's vector has time for it.
    ///
    /// # Errors
    ///
    /// Where a segment is damaged.
    pub fn by_words(&self, query: &str) -> Result<ByWords, Damaged> {
        keyword::score(&self.parts, query).map(ByWords)
    }

    /// The documents that fit the query, best first.
    ///
    /// # Errors
    ///
    /// Where a segment is damaged.
    pub fn rank(&self, question: &Question<'_>) -> Result<Vec<Ranked>, Damaged> {
        let wants_words = question.fusion != Fusion::Semantic || question.asked().is_none();
        let words = if wants_words {
            self.by_words(question.text)?
        } else {
            ByWords::default()
        };
        Ok(self.rank_with(question, &words))
    }

    /// The same, where the half by words is there already: of the same documents, admitted by the
    /// same filter, for the same words.
    pub fn rank_with(&self, question: &Question<'_>, words: &ByWords) -> Vec<Ranked> {
        let ByWords(words) = words;
        let cosines = match (question.asked(), question.fusion) {
            (None, _) | (_, Fusion::Keyword) => Vec::new(),
            (Some(vector), _) => self.cosines(&QueryVector::new(vector)),
        };
        let view = |(part, of): (&Part<'_>, usize)| View {
            start: part.start as usize,
            documents: part.segment.len(),
            words: words.of.get(of).map_or(&[], Vec::as_slice),
            cosines: cosines.get(of).map_or(&[], Vec::as_slice),
        };
        let views: Vec<View<'_>> = self.parts.iter().zip(0..).map(view).collect();
        let fused = self.fused(&views, words.ceiling, question);
        self.with_ranks(&views, &fused)
    }

    /// Says of each hit what either half says of it.
    fn with_ranks(&self, views: &[View<'_>], fused: &[Hit]) -> Vec<Ranked> {
        let half = |hit: &Hit, half: Half| {
            let (part, place) = self.place(hit.document)?;
            views[part]
                .score(half, place)
                .map(|score| Hit { score, ..*hit })
        };
        let by_words = |hit: &Hit| half(hit, Half::Words);
        let by_meaning = |hit: &Hit| half(hit, Half::Meaning);
        let words = Ladder::new(fused.iter().map(by_words));
        let meaning = Ladder::new(fused.iter().map(by_meaning));
        let between = each(views, self.total >= MANY_SCORES, |view| {
            [
                words.between(view.hits(Half::Words)),
                meaning.between(view.hits(Half::Meaning)),
            ]
        });
        let sum = |half: usize| {
            let add = |sum: Vec<usize>, part: &[Vec<usize>; 2]| {
                sum.iter().zip(&part[half]).map(|(a, b)| a + b).collect()
            };
            between.iter().fold(vec![0; fused.len()], add)
        };
        let (above_by_words, above_by_meaning): (Vec<usize>, Vec<usize>) = (sum(0), sum(1));
        let ranked = |hit: &Hit| Ranked {
            document: hit.document,
            score: hit.score,
            keyword: by_words(hit).and_then(|hit| words.rank(&hit, &above_by_words)),
            semantic: by_meaning(hit).and_then(|hit| meaning.rank(&hit, &above_by_meaning)),
            words: by_words(hit).map_or(0.0, |hit| hit.score),
            cosine: self
                .place(hit.document)
                .and_then(|(part, place)| views[part].cosine(place)),
        };
        fused.iter().map(ranked).collect()
    }

    fn fused(&self, views: &[View<'_>], ceiling: f64, question: &Question<'_>) -> Vec<Hit> {
        let weights = Kind::ALL.map(question.weight);
        let weight = |part: usize, place: usize| {
            let kind = usize::from(self.parts[part].segment.kind(place));
            weights.get(kind).copied().unwrap_or(1.0)
        };
        let best = match question.fusion {
            Fusion::Rrf(parameters) => {
                let half = |half: Half| {
                    let mut best = Best::new(POOL.max(question.limit));
                    for hit in views.iter().flat_map(|view| view.hits(half)) {
                        best.push(hit.document, hit.score);
                    }
                    best.sorted()
                };
                let mut fused = rrf(&half(Half::Words), &half(Half::Meaning), parameters);
                for hit in &mut fused {
                    let place = self.place(hit.document);
                    hit.score *= place.map_or(1.0, |(part, place)| weight(part, place));
                }
                vec![fused]
            }
            fusion => {
                let ceiling = ceiling.max(f64::MIN_POSITIVE);
                let any_meaning = views.iter().any(|view| !view.cosines.is_empty());
                let score = |view: &View<'_>, place| match fusion {
                    Fusion::Coverage => {
                        let words = view.words(place).unwrap_or(0.0) / ceiling;
                        let meaning = view.meaning(place);
                        let score = coverage(words, meaning);
                        (score >= LEAST || meaning.is_none()).then_some(score)
                    }
                    Fusion::Semantic if any_meaning => view.meaning(place),
                    _ => view.words(place),
                };
                each(
                    views.iter().enumerate(),
                    self.total >= MANY_SCORES,
                    |(part, view)| {
                        let mut best = Best::new(question.limit);
                        for place in view.candidates() {
                            if let Some(score) = score(view, place) {
                                best.push(view.start + place, score * weight(part, place));
                            }
                        }
                        best.sorted()
                    },
                )
            }
        };
        let mut all = Best::new(question.limit);
        for hit in best.iter().flatten() {
            all.push(hit.document, hit.score);
        }
        all.sorted()
    }

    /// For each part the cosine of every admitted document's vector and the query's; [`f32::NAN`]
    /// where there is none, and nothing at all for a part without vectors.
    fn cosines(&self, query: &QueryVector) -> Vec<Vec<f32>> {
        each(&self.parts, self.total >= MANY_VECTORS, |part| {
            let cosines = |slots: Slots<'_>| slots.cosines(query, part.admitted.as_deref());
            part.vectors.map(cosines).unwrap_or_default()
        })
    }

    /// Documents that have no vector yet, at most so many: first those that fit the query best by
    /// words, then the newest.
    ///
    /// # Errors
    ///
    /// Where a segment is damaged.
    pub fn without_vector(&self, query: &str, limit: usize) -> Result<Vec<usize>, Damaged> {
        let is_empty = |document: usize| {
            self.place(document).is_some_and(|(part, place)| {
                let part = &self.parts[part];
                let filled = part.vectors.is_some_and(|slots| slots.is_filled(place));
                part.admits(place) && !filled
            })
        };
        let scores = keyword::score(&self.parts, query)?;
        let score = |document: usize| {
            let (part, place) = self.place(document)?;
            let score = scores.of.get(part)?.get(place).copied();
            score.filter(|score| *score > 0.0)
        };
        let mut best = Best::new(limit);
        for (part, scores) in self.parts.iter().zip(&scores.of) {
            let start = part.start as usize;
            for (document, score) in (start..).zip(scores).filter(|(_, score)| **score > 0.0) {
                if is_empty(document) {
                    best.push(document, *score);
                }
            }
        }
        let mut wanted: Vec<usize> = best.sorted().iter().map(|hit| hit.document).collect();
        let others = (0..self.total)
            .rev()
            .filter(|document| is_empty(*document) && score(*document).is_none());
        let room = limit - wanted.len();
        wanted.extend(others.take(room));
        Ok(wanted)
    }

    /// The words of a query, and in how many of the admitted documents each stands.
    ///
    /// # Errors
    ///
    /// Where a segment is damaged.
    pub fn terms(&self, query: &str) -> Result<Vec<(String, usize)>, Damaged> {
        let count = |word: String| {
            let holding = keyword::holding(&self.parts, &word)?;
            Ok((word, holding))
        };
        keyword::asked(query).into_iter().map(count).collect()
    }
}

impl Question<'_> {
    /// The vector that is compared. Without words there is nothing that it could not have been made of.
    fn asked(&self) -> Option<&[f32]> {
        self.vector
            .filter(|_| self.text.is_empty() || is_readable(self.text))
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
mod tests;
