//! Ranking of documents by keywords, by meaning, or by both.
//!
//! The only ranking of the program: `memctl search`, hints and `eval retrieval` use it, so
//! evaluations measure what users get. Every admitted document is scored, up to millions; where a part
//! has binary vectors, they choose the documents that are compared exactly. It computes no vectors;
//! callers supply them for as many documents as they have.

use super::fusion::fuse::{Fusion, coverage, rrf};
use super::fusion::top_k::{Best, Hit, RankCounter};
use super::fusion::view::{FLOOR, Half, View};
use super::lexical::keyword::{self, Scores};
use super::part::Part;
use super::segment::Damaged;
use super::vector::quantized_vectors::{Nearness, QueryVector};
use memctl_files::parallel::each;

mod cosines;
mod keywords;

use cosines::Cosines;
use keywords::KindWeights;

/// Minimum scores.
#[derive(Debug, Clone, Copy)]
struct MinimumScores {
    /// Fused score of a document with a known cosine.
    fused: f64,
    /// Score with the weight of the kind.
    weighted: f64,
}

impl MinimumScores {
    const NOTHING: Self = Self {
        fused: f64::NEG_INFINITY,
        weighted: f64::NEG_INFINITY,
    };
    /// Minimum of a result. It excludes documents that share an incidental word with the query but
    /// differ in meaning.
    const RESULT: Self = Self {
        fused: 0.1,
        ..Self::NOTHING
    };
}

/// Number of hits per ranking in rank fusion.
const POOL: usize = 1_000;

/// Minimum number of vectors, and of scores, for a second thread.
const MANY_VECTORS: usize = 10_000;
const MANY_SCORES: usize = 100_000;

/// Ranker over one or more parts.
#[derive(Debug)]
pub struct Ranker<'a> {
    pub(super) parts: Vec<Part<'a>>,
    total: usize,
}

/// Query with its parameters.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Query text.
    pub text: &'a str,
    /// Query vector. Without it, or if the model does not know the script of the text, the ranking
    /// uses keywords only, regardless of `fusion`.
    pub vector: Option<&'a [f32]>,
    /// Method of combining the two rankings.
    pub fusion: Fusion,
    /// Minimum cosine of a document without a query word; `None` for 0.3.
    pub floor: Option<f32>,
    /// Fills the results with weak matches up to `limit`, after all others. They are the nearest
    /// documents below the usual floor; a caller's own `floor` excludes them.
    pub weak: bool,
    /// Maximum number of results.
    pub limit: usize,
    /// Factor for the score, by the number of the document's kind.
    pub weight: fn(u8) -> f64,
}

/// Document that matches the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// Document number in insertion order, over all parts.
    pub document: usize,
    /// Higher is better; comparable only within one result.
    pub score: f64,
    /// Keyword rank, from 1; `None` without a query word.
    pub keyword: Option<usize>,
    /// Semantic rank, from 1; `None` without a vector or if too distant.
    pub semantic: Option<usize>,
    /// BM25 score; 0 without a query word.
    pub words: f64,
    /// Cosine with the query vector; `None` if either vector is missing.
    pub cosine: Option<f32>,
    /// Nearest window of a long document, from 0, and the number of its windows.
    pub window: Option<(usize, usize)>,
    /// `true` if the document has no query word and a cosine below the usual floor.
    pub weak: bool,
}

/// Keyword scores of a query: the half that needs no vector.
#[derive(Debug, Default)]
pub struct ByWords(Scores);

impl<'a> Ranker<'a> {
    /// Ranker over the documents of these parts.
    pub fn new(mut parts: Vec<Part<'a>>) -> Self {
        let mut total = 0;
        for part in &mut parts {
            part.start = u32::try_from(total).unwrap_or(u32::MAX);
            total += part.segment.len();
        }
        Self { parts, total }
    }

    /// Part of a document and its index there; `None` if the number is out of range.
    pub fn place(&self, document: usize) -> Option<(usize, usize)> {
        let part = self
            .parts
            .partition_point(|part| part.start as usize <= document)
            .checked_sub(1)?;
        let place = document - self.parts[part].start as usize;
        (place < self.parts[part].segment.len()).then_some((part, place))
    }

    /// Nearness of two documents; `None` if one of them has no vector.
    pub fn nearness(&self, one: usize, other: usize) -> Option<Nearness> {
        let slots = |document| {
            let (part, place) = self.place(document)?;
            Some((self.parts[part].vectors.as_ref()?, place))
        };
        let (slots_of_one, place) = slots(one)?;
        slots_of_one.nearness(place, slots(other)?)
    }

    /// Creation time of a document in seconds since 1970; [`i64::MIN`] if unknown.
    pub fn created(&self, document: usize) -> i64 {
        let place = self.place(document);
        place.map_or(i64::MIN, |(part, place)| {
            self.parts[part].segment.attributes(place).created
        })
    }

    /// Computes the keyword scores for [`Self::rank_with`], for example while the query vector is
    /// computed.
    ///
    /// # Errors
    ///
    /// Returns [`Damaged`] if a segment is damaged.
    pub fn by_words(&self, query: &str) -> Result<ByWords, Damaged> {
        keyword::score(&self.parts, query).map(ByWords)
    }

    /// Documents that match the query, best first.
    ///
    /// # Errors
    ///
    /// Returns [`Damaged`] if a segment is damaged.
    pub fn rank(&self, question: &Question<'_>) -> Result<Vec<Ranked>, Damaged> {
        if question.fusion == Fusion::Keyword {
            return self.rank_keywords(question);
        }
        let wants_words = question.fusion != Fusion::Semantic || question.asked().is_none();
        let words = if wants_words {
            self.by_words(question.text)?
        } else {
            ByWords::default()
        };
        Ok(self.rank_with(question, &words))
    }

    /// Ranks with precomputed keyword scores. They must be for the same documents, filter and query
    /// text.
    pub fn rank_with(&self, question: &Question<'_>, words: &ByWords) -> Vec<Ranked> {
        let asked = question.asked();
        let asked = asked.filter(|_| question.fusion != Fusion::Keyword);
        let query = asked.map(QueryVector::new);
        let open = question.with_weak().filter(|_| query.is_some());
        let cosines = asked.zip(query.as_ref()).map(|(vector, query)| {
            self.cosines(vector, query, words, open.as_ref().unwrap_or(question))
        });
        let cosines = cosines.unwrap_or_default();
        let views = self.views(&cosines, words, question);
        let fused = self.fused(&views, words, question, MinimumScores::RESULT);
        let mut ranked = self.with_ranks(&views, &fused, query.as_ref());
        if let Some(open) = open.filter(|_| ranked.len() < question.limit) {
            let views = self.views(&cosines, words, &open);
            let mut weak = self.fused(&views, words, &open, MinimumScores::NOTHING);
            weak.retain(|hit| ranked.iter().all(|found| found.document != hit.document));
            weak.truncate(question.limit - ranked.len());
            let weak = self.with_ranks(&views, &weak, query.as_ref());
            // Ranks of weak matches would be those of another list.
            ranked.extend(weak.into_iter().map(|found| Ranked {
                keyword: None,
                semantic: None,
                weak: true,
                ..found
            }));
        }
        ranked
    }

    fn views<'v>(
        &self,
        cosines: &'v Cosines,
        words: &'v ByWords,
        question: &Question<'_>,
    ) -> Vec<View<'v>> {
        let view = |(part, of): (&Part<'_>, usize)| View {
            start: part.start as usize,
            documents: part.segment.len(),
            words: words.0.of.get(of).map_or(&[], Vec::as_slice),
            cosines: cosines.of.get(of).map_or(&[], Vec::as_slice),
            exact: cosines.exact.get(of).and_then(Option::as_deref),
            floor: question.floor.unwrap_or(FLOOR),
        };
        self.parts.iter().zip(0..).map(view).collect()
    }

    /// Adds ranks and scores of both halves to each hit.
    fn with_ranks(
        &self,
        views: &[View<'_>],
        fused: &[Hit],
        query: Option<&QueryVector>,
    ) -> Vec<Ranked> {
        let half = |hit: &Hit, half: Half| {
            let (part, place) = self.place(hit.document)?;
            views[part]
                .score(half, place)
                .map(|score| Hit { score, ..*hit })
        };
        let by_words = |hit: &Hit| half(hit, Half::Keyword);
        let by_meaning = |hit: &Hit| half(hit, Half::Semantic);
        let words = RankCounter::new(fused.iter().map(by_words));
        let meaning = RankCounter::new(fused.iter().map(by_meaning));
        let between = each(views, self.total >= MANY_SCORES, |view| {
            [
                words.between(view.hits(Half::Keyword)),
                meaning.between(view.hits(Half::Semantic)),
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
            window: self.place(hit.document).and_then(|(part, place)| {
                let slots = self.parts[part].vectors?;
                slots.nearest_window(place, query?)
            }),
            weak: false,
        };
        fused.iter().map(ranked).collect()
    }

    /// Best documents by their fused score, which must reach `minimum`.
    fn fused(
        &self,
        views: &[View<'_>],
        words: &ByWords,
        question: &Question<'_>,
        minimum: MinimumScores,
    ) -> Vec<Hit> {
        let weights = KindWeights::new(question);
        let weight = |part: usize, place: usize| weights.of(&self.parts[part], place);
        let best = match question.fusion {
            Fusion::Rrf(parameters) => {
                let half = |half: Half| {
                    let mut best = Best::new(POOL.max(question.limit));
                    for hit in views.iter().flat_map(|view| view.hits(half)) {
                        best.push(hit.document, hit.score);
                    }
                    best.sorted()
                };
                let mut fused = rrf(&half(Half::Keyword), &half(Half::Semantic), parameters);
                for hit in &mut fused {
                    let place = self.place(hit.document);
                    hit.score *= place.map_or(1.0, |(part, place)| weight(part, place));
                }
                vec![fused]
            }
            fusion => {
                let ceiling = words.0.ceiling.max(f64::MIN_POSITIVE);
                let any_meaning = views.iter().any(|view| !view.cosines.is_empty());
                let score = |view: &View<'_>, place| match fusion {
                    Fusion::Coverage => {
                        let words = view.words(place).unwrap_or(0.0) / ceiling;
                        let meaning = view.meaning(place);
                        let score = coverage(words, meaning);
                        (score >= minimum.fused || meaning.is_none()).then_some(score)
                    }
                    Fusion::Semantic if any_meaning => view.meaning(place),
                    _ => view.words(place),
                };
                each(
                    views.iter().enumerate(),
                    self.total >= MANY_SCORES,
                    |(part, view)| {
                        let mut best = Best::at_least(question.limit, minimum.weighted);
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

    /// Up to `limit` documents without a vector: first the best keyword matches, then the newest.
    ///
    /// # Errors
    ///
    /// Returns [`Damaged`] if a segment is damaged.
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

    /// Words of a query, each with the number of admitted documents that contain it.
    ///
    /// # Errors
    ///
    /// Returns [`Damaged`] if a segment is damaged.
    pub fn terms(&self, query: &str) -> Result<Vec<(String, usize)>, Damaged> {
        let count = |word: String| {
            let holding = keyword::holding(&self.parts, &word)?;
            Ok((word, holding))
        };
        keyword::asked(query).into_iter().map(count).collect()
    }
}

impl Question<'_> {
    /// The question without a floor, for the weak matches; `None` if they are not wanted.
    fn with_weak(&self) -> Option<Self> {
        let is_open = self.weak && self.floor.is_none();
        is_open.then_some(Self {
            floor: Some(f32::MIN_POSITIVE),
            ..*self
        })
    }

    /// Query vector to compare; `None` if the model does not know the script of the text. An empty
    /// text always passes.
    fn asked(&self) -> Option<&[f32]> {
        self.vector
            .filter(|_| self.text.is_empty() || is_readable(self.text))
    }
}

/// Returns true if most letters are Latin. For other scripts the model knows only single characters
/// and matches texts that merely share some of them.
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
