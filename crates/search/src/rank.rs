//! Ranking of documents by keywords, by meaning, or by both; and a temporary one over a few texts in memory.
//!
//! The only ranking of the program: `memctl search` and hints use it. Every admitted document is scored, up to
//! millions. It computes no vectors; callers supply them for as many documents as they have.
//!
//! Also names that many of the searched documents contain: the speakers of a chat, the product of a manual. A sentence
//! transformer gives a name a large share of the vector of a short text. Where a third of the documents contain the
//! name, those that say little else come nearest: "Hey Greta!" to a question about Greta. BM25 does not have this
//! problem, since a frequent word weighs little. So these names are left out of the text that is embedded; the keyword
//! half still sees them. Other frequent words stay: without them the vectors of most queries get worse
//! (`docs/adr/search.md`).

use std::borrow::Cow;
use std::ops::Range;

use memctl_files::parallel::each;

use super::fusion::{Best, FLOOR, Fusion, Half, Hit, View, above, coverage, rrf};
use super::keyword::{self, ByWords, query_words};
use super::segment::{Attributes, Damaged, KINDS, Part, Segment};
use super::segment_builder::Builder;
use super::text;
use super::vectors::{Nearness, QueryVector};

/// Minimum fused score of a result with a known cosine. It excludes documents that share an incidental word
/// with the query but differ in meaning.
const LEAST: f64 = 0.1;

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
        keyword::score(&self.parts, query)
    }

    /// Documents that match the query, best first.
    ///
    /// # Errors
    ///
    /// Returns [`Damaged`] if a segment is damaged.
    pub fn rank(&self, question: &Question<'_>) -> Result<Vec<Ranked>, Damaged> {
        let wants_words = question.fusion != Fusion::Semantic || question.query_vector().is_none();
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
        let query = question.query_vector().map(QueryVector::new);
        let cosines = each(&self.parts, self.total >= MANY_VECTORS, |part| {
            let cosines = part.vectors.zip(query.as_ref());
            let cosines =
                cosines.map(|(slots, query)| slots.cosines(query, part.admitted.as_deref()));
            cosines.unwrap_or_default()
        });
        let mut views = self.views(&cosines, words, question.floor.unwrap_or(FLOOR));
        let fused = self.fused(&views, words, question, LEAST);
        let mut ranked = self.with_ranks(&views, &fused, query.as_ref());
        let is_open = question.weak && question.floor.is_none() && query.is_some();
        if is_open && ranked.len() < question.limit {
            for view in &mut views {
                view.floor = f32::MIN_POSITIVE;
            }
            let mut weak = self.fused(&views, words, question, f64::NEG_INFINITY);
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

    fn views<'v>(&self, cosines: &'v [Vec<f32>], words: &'v ByWords, floor: f32) -> Vec<View<'v>> {
        let parts = self.parts.iter().zip(cosines).zip(0..);
        let view = |((part, cosines), of): ((&Part<'_>, &'v Vec<f32>), usize)| View {
            start: part.start as usize,
            words: words.of.get(of).map_or(&[], Vec::as_slice),
            cosines,
            floor,
        };
        parts.map(view).collect()
    }

    /// Adds ranks and scores of both halves to each hit.
    fn with_ranks(
        &self,
        views: &[View<'_>],
        fused: &[Hit],
        query: Option<&QueryVector>,
    ) -> Vec<Ranked> {
        let [keyword, semantic] = [Half::Keyword, Half::Semantic].map(|half| {
            let of_half = |hit: &Hit| {
                let (part, place) = self.place(hit.document)?;
                let score = views[part].score(half, place)?;
                Some(Hit { score, ..*hit })
            };
            let wanted: Vec<Option<Hit>> = fused.iter().map(of_half).collect();
            let of_parts = each(views, self.total >= MANY_SCORES, |view| {
                above(&wanted, view.hits(half))
            });
            let rank = |place| of_parts.iter().map(|part| part[place]).sum::<usize>() + 1;
            let ranked = wanted.into_iter().enumerate();
            let ranked = ranked.map(|(place, hit)| (hit, hit.map(|_| rank(place))));
            ranked.collect::<Vec<_>>()
        });
        let halves = fused.iter().zip(keyword).zip(semantic);
        let ranked = halves.map(|((hit, (by_words, keyword)), (_, semantic))| {
            let place = self.place(hit.document);
            let slots = place.and_then(|(part, place)| Some((self.parts[part].vectors?, place)));
            Ranked {
                document: hit.document,
                score: hit.score,
                keyword,
                semantic,
                words: by_words.map_or(0.0, |hit| hit.score),
                cosine: place.and_then(|(part, place)| views[part].cosine(place)),
                window: slots.and_then(|(slots, place)| slots.nearest_window(place, query?)),
                weak: false,
            }
        });
        ranked.collect()
    }

    /// Best documents by their fused score, which must reach `least` where the cosine is known.
    fn fused(
        &self,
        views: &[View<'_>],
        words: &ByWords,
        question: &Question<'_>,
        least: f64,
    ) -> Vec<Hit> {
        let weights: [f64; KINDS] =
            std::array::from_fn(|kind| u8::try_from(kind).map_or(1.0, question.weight));
        let weight = |part: usize, place: usize| {
            let kind = self.parts[part].segment.kind(place);
            weights.get(usize::from(kind)).copied().unwrap_or(1.0)
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
                let mut fused = rrf(&half(Half::Keyword), &half(Half::Semantic), parameters);
                for hit in &mut fused {
                    let place = self.place(hit.document);
                    hit.score *= place.map_or(1.0, |(part, place)| weight(part, place));
                }
                vec![fused]
            }
            fusion => {
                let ceiling = words.ceiling.max(f64::MIN_POSITIVE);
                let any_meaning = views.iter().any(|view| !view.cosines.is_empty());
                let score = |view: &View<'_>, place| match fusion {
                    Fusion::Coverage => {
                        let words = view.words(place).unwrap_or(0.0) / ceiling;
                        let meaning = view.meaning(place);
                        let score = coverage(words, meaning);
                        (score >= least || meaning.is_none()).then_some(score)
                    }
                    Fusion::Semantic if any_meaning => view.meaning(place),
                    _ => view.words(place),
                };
                let many = self.total >= MANY_SCORES;
                each(views.iter().enumerate(), many, |(part, view)| {
                    let mut best = Best::new(question.limit);
                    for place in view.candidates() {
                        if let Some(score) = score(view, place) {
                            best.push(view.start + place, score * weight(part, place));
                        }
                    }
                    best.sorted()
                })
            }
        };
        let mut all = Best::new(question.limit);
        for hit in best.iter().flatten() {
            all.push(hit.document, hit.score);
        }
        all.sorted()
    }

    /// Up to `limit` documents without a vector, each as the number of its part and its index there: first the
    /// best keyword matches, then the newest.
    ///
    /// # Errors
    ///
    /// Returns [`Damaged`] if a segment is damaged.
    pub fn without_vector(
        &self,
        query: &str,
        limit: usize,
    ) -> Result<Vec<(usize, usize)>, Damaged> {
        let is_empty = |part: &Part<'_>, place: usize| {
            let filled = part.vectors.is_some_and(|slots| slots.is_filled(place));
            part.admits(place) && !filled
        };
        let scores = keyword::score(&self.parts, query)?.of;
        let score = |part: usize, place: usize| {
            let score = scores[part].get(place).copied();
            score.filter(|score| *score > 0.0)
        };
        let mut best = Best::new(limit);
        for (number, part) in self.parts.iter().enumerate() {
            for place in 0..scores[number].len() {
                if let Some(score) = score(number, place).filter(|_| is_empty(part, place)) {
                    best.push(part.start as usize + place, score);
                }
            }
        }
        let best = best.sorted().into_iter();
        let best = best.filter_map(|hit| self.place(hit.document));
        // A search waits for this: the newest documents without a vector are found by looking at few.
        let others = self
            .parts
            .iter()
            .enumerate()
            .rev()
            .flat_map(|(number, part)| {
                let places = (0..part.segment.len()).rev();
                places.map(move |place| (number, part, place))
            });
        let others = others.filter(|(number, part, place)| {
            score(*number, *place).is_none() && is_empty(part, *place)
        });
        let others = others.map(|(number, _, place)| (number, place));
        Ok(best.chain(others).take(limit).collect())
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
        query_words(query).into_iter().map(count).collect()
    }
}

impl Question<'_> {
    /// Query vector to compare; `None` for a ranking by keywords, and if the model does not know the script
    /// of the text. An empty text always passes.
    fn query_vector(&self) -> Option<&[f32]> {
        let is_read = self.text.is_empty() || is_readable(self.text);
        self.vector
            .filter(|_| is_read && self.fusion != Fusion::Keyword)
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

/// Texts that contain a query word, best first; ties in their order.
pub fn search(query: &str, texts: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<Hit> {
    let mut all = Builder::default();
    for text in texts {
        all.add(&Attributes::default(), text.as_ref());
    }
    let bytes = all.segment();
    let parts = Segment::open(&bytes).map(|segment| Part::new(segment, None, None));
    let question = Question {
        text: query,
        vector: None,
        fusion: Fusion::Keyword,
        floor: None,
        weak: false,
        limit: all.len(),
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

/// A name is frequent if one of this many documents contains it.
const ONE_OF: usize = 3;
/// Marks around text that is quoted, such as code.
const QUOTES: [char; 7] = ['`', '"', '\'', '“', '”', '‘', '’'];
/// Marks after which a sentence begins.
const SENTENCE_ENDS: [char; 5] = ['.', '!', '?', ':', '\n'];
/// Minimum number of documents. Among fewer, a share says little.
const FEWEST: usize = 20;

impl Ranker<'_> {
    /// Returns the query without the names that a third of the admitted documents contain; unchanged if
    /// nothing but names and stop words would remain.
    ///
    /// # Errors
    ///
    /// Returns [`Damaged`] if a segment is damaged.
    pub fn without_frequent_names<'q>(&self, query: &'q str) -> Result<Cow<'q, str>, Damaged> {
        let names = names(query);
        let documents: usize = self.parts.iter().map(Part::documents).sum();
        if names.is_empty() || documents < FEWEST {
            return Ok(Cow::Borrowed(query));
        }
        let mut rest = String::with_capacity(query.len());
        let mut end = 0;
        for Name { range, word } in names {
            if keyword::holding(&self.parts, &word)? * ONE_OF >= documents {
                rest.push_str(query.get(end..range.start).unwrap_or_default());
                end = range.end;
            }
        }
        if end == 0 {
            return Ok(Cow::Borrowed(query));
        }
        rest.push_str(query.get(end..).unwrap_or_default());
        let rest = rest.split_whitespace().collect::<Vec<_>>().join(" ");
        if text::words(&rest).is_empty() {
            return Ok(Cow::Borrowed(query));
        }
        Ok(Cow::Owned(rest))
    }
}

/// Returns true if the text of a query may be changed by [`Ranker::without_frequent_names`].
pub fn has_names(query: &str) -> bool {
    !names(query).is_empty()
}

/// Word of a query that is written like a name.
struct Name {
    /// Bytes of the query, with a possessive `'s`.
    range: Range<usize>,
    /// Indexed form.
    word: String,
}

/// Words with a capital and small letters, such as `Greta`, except at the beginning of a sentence and in
/// quotes. Acronyms and identifiers (`NATO`, `FnOnce`) say what a text is about, and stay.
fn names(query: &str) -> Vec<Name> {
    let mut names = Vec::new();
    let mut starts_sentence = true;
    let mut at = 0;
    for token in query.split_inclusive(char::is_whitespace) {
        let start = at;
        at += token.len();
        let is_outer = |c: char| !c.is_alphanumeric();
        let core = token.trim_matches(is_outer);
        let Some((before, after)) = token.split_once(core).filter(|_| !core.is_empty()) else {
            starts_sentence |= token.contains(SENTENCE_ENDS);
            continue;
        };
        let is_quoted = before.ends_with(QUOTES) || after.starts_with(QUOTES);
        let name = core
            .strip_suffix("'s")
            .or_else(|| core.strip_suffix("’s"))
            .unwrap_or(core);
        if !starts_sentence
            && !is_quoted
            && is_capitalized(name)
            && let [word] = text::words(name).as_mut_slice()
        {
            let start = start + before.len();
            names.push(Name {
                range: start..start + core.len(),
                word: std::mem::take(word),
            });
        }
        starts_sentence = after.contains(SENTENCE_ENDS);
    }
    names
}

fn is_capitalized(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase)
        && !letters.as_str().is_empty()
        && letters.all(char::is_lowercase)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod tests_of_texts {
    use super::*;

    #[test]
    fn rarer_words_and_shorter_documents_come_first() {
        let texts = [
            "check the total",
            "check compliance with the regulation",
            "check check check of everything that there is to check in a very long document",
            "nothing",
        ];
        let order = |query| -> Vec<usize> {
            let hits = search(query, texts);
            hits.iter().map(|hit| hit.document).collect()
        };
        assert_eq!(order("compliance check"), [1, 2, 0]);
        assert_eq!(order("CHECKING"), [2, 0, 1]);
        assert_eq!(order("unknown"), [0; 0]);
        assert_eq!(order(""), [0; 0]);
    }
}

#[cfg(test)]
mod tests_of_names {
    use super::*;

    fn check(texts: &[&str], admitted: Option<Vec<bool>>, query: &str, expected: &str) {
        let mut builder = Builder::default();
        for text in texts {
            builder.add(&Attributes::default(), text);
        }
        let bytes = builder.segment();
        let segment = Segment::open(&bytes).unwrap();
        let ranker = Ranker::new(vec![Part::new(segment, None, admitted)]);
        let rest = ranker.without_frequent_names(query).unwrap();
        assert_eq!(rest, expected, "{query}");
    }

    fn chat() -> Vec<&'static str> {
        [["Greta: I went there.", "Anton: So did Bob from NATO."]; 12].concat()
    }

    #[test]
    fn frequent_names_are_left_out_and_others_stay() {
        let chat = chat();
        let check = |query, expected| check(&chat, None, query, expected);
        check("When did Greta go to Paris?", "When did go to Paris?");
        check("What is Anton's plan for Greta?", "What is plan for ?");
        check("why does (Anton) like tea", "why does () like tea");
        check("who is Zoe", "who is Zoe");
    }

    #[test]
    fn other_words_stay_however_frequent() {
        let chat = chat();
        let unchanged = |query| check(&chat, None, query, query);
        unchanged("Greta was where?");
        unchanged("It ended. Anton paid: Bob ate \n\nGreta slept");
        unchanged("where did caroline and NATO go");
        unchanged("what does Greta/Anton do");
        unchanged("the trait `Anton`, the type \"Greta\"");
        // Nothing else would remain.
        unchanged("who is Greta?");
        unchanged("");
    }

    #[test]
    fn frequency_is_that_among_the_admitted_documents() {
        let mut texts = chat();
        texts.extend(["a greyhound"; 24]);
        let query = "the plan of Anton";
        check(&texts, None, query, query);
        let admitted = (0..texts.len()).map(|document| document < 24).collect();
        check(&texts, Some(admitted), query, "the plan of");
        let few = chat().into_iter().take(FEWEST - 1).collect::<Vec<_>>();
        check(&few, None, query, query);
    }
}
