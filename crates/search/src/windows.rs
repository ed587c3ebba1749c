//! Windows of long texts, each with a vector of its own.
//!
//! One vector of a long text says a little about everything in it, and the model reads only its
//! beginning. So a long document has the vector of its beginning and those of windows of some 60
//! tokens, which cover all of it. Its cosine is that of the nearest window, less what chance adds; where
//! that of the beginning is higher, it is the mean of both.
//!
//! The number of vectors follows from the number of words in the index: the places of all vectors are
//! known before any of them is computed.

use std::ops::Range;

use super::segment::Segment;

/// Words up to which one vector stands for the document: about 190 tokens. Stop words are no words of
/// the index.
const SHORT: u32 = 96;
/// Words of a window: about 60 tokens.
const WINDOW: u32 = 32;
/// Maximum number of windows; those of longer texts are longer.
const MOST: u32 = 64;
/// Loss of the cosine of the nearest window per doubling of their number, because one of many is near
/// any query by chance. With this, a long document passes the floor for unrelated texts as rarely as
/// a short one.
const CHANCE: f32 = 0.04;

/// Returns the number of vectors of a document with this number of words.
fn vectors_of(words: u32) -> usize {
    1 + windows_of(words).unwrap_or(0) as usize
}

/// Number of windows of a document with this number of words; `None` for a short one.
pub(crate) fn windows_of(words: u32) -> Option<u32> {
    (words > SHORT).then(|| words.div_ceil(WINDOW).min(MOST))
}

/// Window of a word, by its place among the words of a document; `None` in a short one.
pub(crate) fn window_of(place: u32, words: u32) -> Option<u32> {
    let windows = windows_of(words)?;
    let window = u64::from(place) * u64::from(windows) / u64::from(words);
    u32::try_from(window).ok()
}

/// Returns the texts of a document's vectors: the document, and its windows in order.
pub fn texts_of(text: &str, vectors: usize) -> Vec<&str> {
    let windows = vectors.saturating_sub(1);
    let mut starts: Vec<usize> = words(text).collect();
    if starts.len() < windows {
        // Text without spaces.
        starts = text.char_indices().map(|(at, _)| at).collect();
    }
    let bound = |window: usize| {
        let word = starts.len() * window / windows.max(1);
        starts.get(word).copied().unwrap_or(text.len())
    };
    let parts = (0..windows).map(|window| &text[bound(window)..bound(window + 1)]);
    std::iter::once(text).chain(parts).collect()
}

/// Offsets of the words in a text.
fn words(text: &str) -> impl Iterator<Item = usize> {
    let mut before = true;
    text.char_indices().filter_map(move |(at, c)| {
        let starts = before && !c.is_whitespace();
        before = c.is_whitespace();
        starts.then_some(at)
    })
}

/// Places of the vectors of a segment's documents: the first one of each document, and the number of all.
#[derive(Debug)]
pub struct SlotLayout(Vec<u32>);

impl SlotLayout {
    /// Layout of one vector for each of so many documents.
    pub fn single(documents: usize) -> Self {
        Self::of_counts((0..documents).map(|_| 1))
    }

    /// Layout for an embedder that reads windows.
    pub fn of(segment: &Segment<'_>) -> Self {
        let lengths = segment.lengths().iter();
        Self::of_counts(lengths.map(|words| vectors_of(u32::from_le_bytes(*words))))
    }

    pub(super) fn of_counts(counts: impl Iterator<Item = usize>) -> Self {
        let mut next = 0;
        let starts = counts.map(|count| {
            next += u32::try_from(count).unwrap_or(1);
            next
        });
        Self(std::iter::once(0).chain(starts).collect())
    }

    /// Number of documents.
    pub(super) fn documents(&self) -> usize {
        self.0.len() - 1
    }

    /// Number of all vectors.
    pub fn slots(&self) -> usize {
        self.0.last().map_or(0, |end| *end as usize)
    }

    /// Places of a document's vectors; empty for a document that is not there.
    pub fn of_document(&self, document: usize) -> Range<usize> {
        match (self.0.get(document), self.0.get(document + 1)) {
            (Some(start), Some(end)) => *start as usize..*end as usize,
            _ => 0..0,
        }
    }
}

/// Returns the cosine of a document from those of its vectors: that of the beginning, then those of
/// the windows. [`f32::NAN`] stands for a missing vector.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it is compiled for the processor that its caller is compiled for"
)]
pub(super) fn cosine(mut vectors: impl Iterator<Item = f32>) -> f32 {
    let beginning = vectors.next().unwrap_or(f32::NAN);
    let (mut nearest, mut count) = (f32::NAN, 0.0f32);
    for window in vectors {
        nearest = nearest.max(window);
        count += 1.0;
    }
    if beginning.is_nan() || nearest.is_nan() {
        return beginning;
    }
    let nearest = nearest - CHANCE * count.log2();
    nearest.max(f32::midpoint(beginning, nearest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::attributes::Attributes;
    use crate::segment_builder::Builder;

    #[test]
    fn long_documents_have_a_vector_for_each_window() {
        let check = |words: u32, expected: usize| assert_eq!(vectors_of(words), expected);
        check(0, 1);
        check(96, 1);
        check(97, 5);
        check(128, 5);
        check(129, 6);
        check(1_000_000, 65);
        assert_eq!(
            texts_of("one two  three\nfour", 3),
            ["one two  three\nfour", "one two  ", "three\nfour"]
        );
        assert_eq!(texts_of("short", 1), ["short"]);
        assert_eq!(texts_of("日本語", 3), ["日本語", "日", "本語"]);
        assert_eq!(texts_of("", 2), ["", ""]);
    }

    #[test]
    fn places_of_vectors_follow_each_other() {
        let mut builder = Builder::default();
        for words in [3, 100, 0] {
            let text: Vec<String> = (0..words).map(|n| format!("word{n}")).collect();
            builder.add(&Attributes::default(), &text.join(" "));
        }
        let bytes = builder.segment();
        let layout = SlotLayout::of(&Segment::open(&bytes).unwrap());
        let windows = layout.of_document(1);
        assert_eq!(layout.of_document(0), 0..1);
        assert!(windows.len() > 4 && windows.start == 1, "{windows:?}");
        assert_eq!(layout.of_document(2), windows.end..windows.end + 1);
        assert_eq!(layout.slots(), windows.end + 1);
        assert!(layout.of_document(3).is_empty());
        assert!(SlotLayout::single(2).of_document(2).is_empty());
    }

    #[test]
    fn the_nearest_window_counts_less_what_chance_adds() {
        let check = |vectors: &[f32], expected: f32| {
            let found = cosine(vectors.iter().copied());
            assert!((found - expected).abs() < 1e-6, "{vectors:?}: {found}");
        };
        check(&[0.4], 0.4);
        check(&[0.2, 0.8], 0.8);
        check(&[0.2, 0.1, 0.8], 0.8 - CHANCE);
        check(&[0.2, 0.1, 0.8, 0.0, -0.4], 0.8 - 2.0 * CHANCE);
        check(&[0.6, 0.4], 0.5);
        check(&[0.6, 0.4, 0.1], 0.5 - CHANCE / 2.0);
        check(&[0.24, f32::NAN, 0.0], 0.1);
        check(&[0.2, f32::NAN], 0.2);
        assert!(cosine([].into_iter()).is_nan());
        assert!(cosine([f32::NAN, 0.3].into_iter()).is_nan());
    }

    proptest! {
        #[test]
        fn windows_cover_the_text_in_order(text in "[ab é日\n]{0,60}", vectors in 1usize..9) {
            let texts = texts_of(&text, vectors);
            prop_assert_eq!(texts.len(), vectors);
            prop_assert_eq!(texts[0], text.as_str());
            if vectors > 1 {
                let joined = texts[1..].concat();
                prop_assert!(text.ends_with(&joined));
                prop_assert_eq!(text.trim_start(), joined.trim_start());
            }
        }
    }
}
