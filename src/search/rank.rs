//! Documents, ready to be ranked by words, by meaning, or by both.
//!
//! The one ranking of this program: `memory search`, hints and `eval retrieval` all come here, so
//! what is measured is what is used. Exact: every admitted document is looked at, up to millions of
//! them. Makes no vectors: who asks brings them, for as many documents as there are.

use std::num::NonZero;
use std::thread;

use crate::model::Kind;

use super::best::{Best, Hit, ranks};
use super::fuse::{Fusion, coverage, rrf};
use super::keyword::{self, Scores};
use super::segment::{Damaged, Segment};
use super::slots::{QueryVector, Slots};

/// How near in meaning a document must be that holds no word of the query. Unrelated texts have
/// cosines of 0 to 0.2.
const FLOOR: f32 = 0.3;

/// The least fused score of a document whose meaning is known: what shares a passing word with the
/// query and means something else lies below it.
const LEAST: f64 = 0.1;

/// So many of each ranking take part where they are fused by rank.
const POOL: usize = 1_000;

/// So many vectors are worth a thread of their own.
const SHARE: usize = 20_000;

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

    /// The documents that fit the query, best first.
    ///
    /// # Errors
    ///
    /// Where a segment is damaged.
    pub fn rank(&self, question: &Question<'_>) -> Result<Vec<Ranked>, Damaged> {
        let vector = question.vector.filter(|_| is_readable(question.text));
        let words = match question.fusion {
            Fusion::Semantic if vector.is_some() => Scores::default(),
            _ => keyword::score(&self.parts, question.text)?,
        };
        let cosines = match (vector, question.fusion) {
            (None, _) | (_, Fusion::Keyword) => Vec::new(),
            (Some(vector), _) => self.cosines(&QueryVector::new(vector)),
        };
        let view = View {
            words,
            cosines,
            total: self.total,
        };
        let fused = self.fused(&view, question);
        let hit = |hit: &Hit, half: fn(&View, usize) -> Option<f64>| {
            half(&view, hit.document).map(|score| Hit { score, ..*hit })
        };
        let by_words: Vec<_> = fused.iter().map(|h| hit(h, View::words)).collect();
        let by_meaning: Vec<_> = fused.iter().map(|h| hit(h, View::meaning)).collect();
        let by_words = ranks(&by_words, view.hits(View::words));
        let by_meaning = ranks(&by_meaning, view.hits(View::meaning));
        let ranked = |((hit, keyword), semantic): ((Hit, _), _)| Ranked {
            document: hit.document,
            score: hit.score,
            keyword,
            semantic,
            words: view.words(hit.document).unwrap_or(0.0),
            cosine: view.cosine(hit.document),
        };
        let fused = fused.into_iter().zip(by_words).zip(by_meaning);
        Ok(fused.map(ranked).collect())
    }

    fn fused(&self, view: &View, question: &Question<'_>) -> Vec<Hit> {
        let mut best = Best::new(question.limit);
        let mut push = |document: usize, score: f64| {
            best.push(document, score * self.weight(document, question.weight));
        };
        match question.fusion {
            Fusion::Coverage => {
                let ceiling = view.words.ceiling.max(f64::MIN_POSITIVE);
                for document in view.candidates() {
                    let words = view.words(document).unwrap_or(0.0) / ceiling;
                    let meaning = view.meaning(document);
                    let score = coverage(words, meaning);
                    if score >= LEAST || meaning.is_none() {
                        push(document, score);
                    }
                }
            }
            Fusion::Rrf(parameters) => {
                let half = |half| {
                    let mut best = Best::new(POOL.max(question.limit));
                    view.hits(half).for_each(|h| best.push(h.document, h.score));
                    best.sorted()
                };
                for hit in rrf(&half(View::words), &half(View::meaning), parameters) {
                    push(hit.document, hit.score);
                }
            }
            Fusion::Semantic if !view.cosines.is_empty() => {
                view.hits(View::meaning)
                    .for_each(|h| push(h.document, h.score));
            }
            Fusion::Keyword | Fusion::Semantic => {
                view.hits(View::words)
                    .for_each(|h| push(h.document, h.score));
            }
        }
        best.sorted()
    }

    fn weight(&self, document: usize, weight: fn(Kind) -> f64) -> f64 {
        let kind = self.place(document).and_then(|(part, place)| {
            let kind = self.parts[part].segment.kind(place);
            Kind::ALL.get(usize::from(kind))
        });
        kind.map_or(1.0, |kind| weight(*kind))
    }

    /// The cosine of every admitted document's vector and the query's; [`f32::NAN`] where there is
    /// none.
    fn cosines(&self, query: &QueryVector) -> Vec<f32> {
        let mut cosines = vec![f32::NAN; self.total];
        let workers = thread::available_parallelism().map_or(1, NonZero::get);
        let share = self.total.div_ceil(workers).max(SHARE);
        thread::scope(|scope| {
            let mut rest = cosines.as_mut_slice();
            for part in &self.parts {
                let (of_part, others) = rest.split_at_mut(part.segment.len());
                rest = others;
                let Some(slots) = part.vectors else {
                    continue;
                };
                let work = move |(first, some): (usize, &mut [f32])| {
                    for (place, cosine) in (first..).zip(some) {
                        if part.admits(place) {
                            *cosine = slots.cosine(place, query).unwrap_or(f32::NAN);
                        }
                    }
                };
                let shares = of_part.chunks_mut(share).enumerate();
                let mut shares = shares.map(|(i, some)| (i * share, some));
                // What is not worth a thread is done by this one.
                let own = if self.total > SHARE {
                    None
                } else {
                    shares.next()
                };
                own.into_iter().for_each(work);
                for some in shares {
                    scope.spawn(move || work(some));
                }
            }
        });
        cosines
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
        let mut best = Best::new(limit);
        for document in &scores.found {
            let document = *document as usize;
            if is_empty(document) {
                best.push(document, scores.of[document]);
            }
        }
        let mut wanted: Vec<usize> = best.sorted().iter().map(|hit| hit.document).collect();
        let others = (0..self.total).rev().filter(|document| {
            let known = scores.of.get(*document).is_some_and(|score| *score > 0.0);
            !known && is_empty(*document)
        });
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
            let holding = keyword::holding(&self.parts, &word)?.len();
            Ok((word, holding))
        };
        keyword::asked(query).into_iter().map(count).collect()
    }
}

/// Both halves of an answer, over all documents.
struct View {
    words: Scores,
    cosines: Vec<f32>,
    total: usize,
}

impl View {
    /// The keyword score, where the document holds a word of the query.
    fn words(&self, document: usize) -> Option<f64> {
        let score = self.words.of.get(document).copied();
        score.filter(|score| *score > 0.0)
    }

    fn cosine(&self, document: usize) -> Option<f32> {
        let cosine = self.cosines.get(document).copied();
        cosine.filter(|cosine| !cosine.is_nan())
    }

    /// The cosine of those that are near enough, and of those that hold a word, so that their
    /// meaning can count for or against them.
    fn meaning(&self, document: usize) -> Option<f64> {
        let cosine = self.cosine(document)?;
        let counts = cosine >= FLOOR || self.words(document).is_some();
        counts.then(|| f64::from(cosine))
    }

    /// The documents that fit in one way or the other.
    fn candidates(&self) -> Box<dyn Iterator<Item = usize> + '_> {
        if self.cosines.is_empty() {
            Box::new(self.words.found.iter().map(|document| *document as usize))
        } else {
            let fits = |d: &usize| self.cosines[*d] >= FLOOR || self.words(*d).is_some();
            Box::new((0..self.total).filter(fits))
        }
    }

    fn hits(&self, half: fn(&Self, usize) -> Option<f64>) -> impl Iterator<Item = Hit> {
        self.candidates().filter_map(move |document| {
            let score = half(self, document)?;
            Some(Hit { document, score })
        })
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
    use super::super::Rrf;
    use super::super::attributes::Attributes;
    use super::super::build::Builder;
    use super::super::slots::{slot, slots_header};
    use super::*;

    /// A vector in the plane of the first two axes.
    fn at(degrees: f32) -> Vec<f32> {
        let (y, x) = degrees.to_radians().sin_cos();
        vec![x, y]
    }

    /// Texts with their directions, in two parts.
    fn with_ranker<T>(texts: &[(&str, Option<f32>)], then: impl Fn(&Ranker<'_>) -> T) -> T {
        let parts: Vec<(Vec<u8>, Vec<u8>)> = texts
            .chunks(texts.len().div_ceil(2).max(1))
            .map(|texts| {
                let mut builder = Builder::default();
                let mut slots = slots_header("model", 2, texts.len()).to_vec();
                for (text, degrees) in texts {
                    builder.add(&Attributes::default(), text);
                    slots.extend(slot(&degrees.map_or(vec![0.0; 2], at)));
                }
                (builder.segment(), slots)
            })
            .collect();
        let part = |(segment, slots): &'_ (Vec<u8>, Vec<u8>)| {
            // Leaked by tests only, which spares them a lifetime.
            let segment = Segment::open(segment.clone().leak()).unwrap();
            let slots = Slots::open(slots.clone().leak(), "model", 2, segment.len());
            Part::new(segment, slots, None)
        };
        then(&Ranker::new(parts.iter().map(part).collect()))
    }

    const TEXTS: &[(&str, Option<f32>)] = &[
        ("verify regulatory requirements", Some(10.0)),
        ("check compliance", Some(20.0)),
        ("bake bread", Some(85.0)),
        ("compliance without a vector", None),
    ];

    fn rank(query: &str, vector: Option<&[f32]>, fusion: Fusion) -> Vec<Ranked> {
        let question = Question {
            text: query,
            vector,
            fusion,
            limit: 10,
            weight: |_| 1.0,
        };
        with_ranker(TEXTS, |ranker| ranker.rank(&question).unwrap())
    }

    fn order(fusion: Fusion, vector: Option<&[f32]>) -> Vec<usize> {
        let ranked = rank("compliance check", vector, fusion);
        ranked.iter().map(|hit| hit.document).collect()
    }

    #[test]
    fn each_fusion_ranks_its_own_way_and_leaves_out_what_is_far() {
        let query = at(0.0);
        assert_eq!(order(Fusion::Coverage, Some(&query)), [1, 0, 3]);
        assert_eq!(order(Fusion::Keyword, Some(&query)), [1, 3]);
        assert_eq!(order(Fusion::Semantic, Some(&query)), [0, 1]);
        assert_eq!(order(Fusion::Rrf(Rrf::default()), Some(&query)), [1, 0, 3]);
        let foreign = rank("проверка соответствия", Some(&query), Fusion::Coverage);
        assert!(foreign.is_empty(), "{foreign:?}");
        for fusion in [Fusion::Coverage, Fusion::Semantic, Fusion::Keyword] {
            assert_eq!(order(fusion, None), [1, 3]);
        }
    }

    #[test]
    fn a_passing_word_is_no_answer_where_the_meaning_is_another() {
        let query = "compliance of the yearly audit with foreign regulations of trade";
        let ranked = rank(query, Some(&at(100.0)), Fusion::Coverage);
        let found: Vec<usize> = ranked.iter().map(|hit| hit.document).collect();
        // What has no vector may still be right; bread is near by its vector alone.
        assert_eq!(found, [2, 3]);
    }

    #[test]
    fn ranks_say_which_half_found_it() {
        let ranked = rank("compliance check", Some(&at(0.0)), Fusion::Coverage);
        let ranks: Vec<_> = ranked.iter().map(|r| (r.keyword, r.semantic)).collect();
        assert_eq!(
            ranks,
            [(Some(1), Some(2)), (None, Some(1)), (Some(2), None)]
        );
    }

    #[test]
    fn what_is_not_admitted_has_no_part_in_anything() {
        let whole = with_ranker(&TEXTS[1..], |ranker| ranker.terms("compliance").unwrap());
        assert_eq!(whole, [("complianc".to_owned(), 2)]);
        let mut builder = Builder::default();
        for (text, _) in TEXTS {
            builder.add(&Attributes::default(), text);
        }
        let bytes = builder.segment();
        let segment = Segment::open(&bytes).unwrap();
        let some = Some(vec![true, true, true, false]);
        let question = Question {
            text: "compliance",
            vector: None,
            fusion: Fusion::Keyword,
            limit: 10,
            weight: |_| 1.0,
        };
        let part = Ranker::new(vec![Part::new(segment, None, some)]);
        let ranked = part.rank(&question).unwrap();
        let alone = with_ranker(&TEXTS[..3], |ranker| ranker.rank(&question).unwrap());
        assert_eq!(ranked, alone);
        assert_eq!(ranked.len(), 1);
    }

    #[test]
    fn who_has_no_vector_gets_one_in_the_order_of_need() {
        let texts = [
            ("compliance", Some(1.0)),
            ("check compliance", None),
            ("old bread", None),
            ("new bread", None),
        ];
        let wanted = |limit| {
            with_ranker(&texts, |ranker| {
                ranker.without_vector("compliance", limit).unwrap()
            })
        };
        assert_eq!(wanted(2), [1, 3]);
        assert_eq!(wanted(9), [1, 3, 2]);
        assert_eq!(wanted(0), [0; 0]);
    }
}
