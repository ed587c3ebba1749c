//! Quantized vectors of a segment's documents, one byte per dimension, searched in place; and the windows of long
//! texts, each with a vector of its own.
//!
//! ```text
//! header   64 bytes: magic, dimensions, slots, hash of the embedder's name, checksum
//! slots    per vector: factor (f32), 4 bytes without a meaning, one signed byte per dimension
//! ```
//!
//! A document has one slot, or several if it is long, for its windows. They are filled together. A slot
//! of zeros is empty: its document has no vector yet. The factor restores length 1.
//! Quantization changes a cosine by less than 0.01, less than the model's own 8-bit weights do.
//!
//! One vector of a long text says a little about everything in it, and the model reads only its
//! beginning. So a long document has the vector of its beginning and those of windows of some 60
//! tokens, which cover all of it. Its cosine is that of the nearest window, less what chance adds; where
//! that of the beginning is higher, it is the mean of both.
//!
//! The number of vectors follows from the number of words in the index: the places of all vectors are
//! known before any of them is computed.

use std::ops::Range;

use rten_simd::{Isa, SimdOp};
use xxhash_rust::xxh3::xxh3_64;

use super::embedder::Embedding;

const MAGIC: &[u8; 8] = b"mctlvec1";
/// Bytes before the first slot.
pub const SLOTS_HEADER: usize = 64;
/// Bytes of a slot before its numbers: the factor, and as many without a meaning.
const SLOT_HEADER: usize = 8;
/// Fixed-point scale of query numbers. Summed products with bytes stay far below 32 bits.
const ONE: f32 = 8192.0;

/// Vectors of one segment's documents; slots can be empty.
#[derive(Debug, Clone, Copy)]
pub struct Slots<'a> {
    bytes: &'a [u8],
    width: usize,
    layout: &'a SlotLayout,
}

/// Query vector in fixed-point form, for fast comparison.
#[derive(Debug, Clone)]
pub(crate) struct QueryVector(Vec<i16>);

impl QueryVector {
    /// Converts a vector of length 1.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float cast to an integer saturates, and none is greater than 8192 here"
    )]
    pub(crate) fn new(vector: &[f32]) -> Self {
        Self(vector.iter().map(|x| (x * ONE).round() as i16).collect())
    }
}

/// Cosines of two documents, from -1 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nearness {
    /// Cosine of their beginnings; of short documents it is that of the whole texts.
    pub whole: f32,
    /// Highest cosine of two of their passages.
    pub passages: f32,
}

/// Bytes of a slot for this number of dimensions, a multiple of eight.
pub fn slot_width(dimensions: usize) -> usize {
    SLOT_HEADER + dimensions.next_multiple_of(8)
}

/// Header for vectors of this embedding and number of slots.
pub fn slots_header(embedding: &Embedding, slots: usize) -> [u8; SLOTS_HEADER] {
    let mut out = [0; SLOTS_HEADER];
    out[..8].copy_from_slice(MAGIC);
    out[8..16].copy_from_slice(&(embedding.dimensions as u64).to_le_bytes());
    out[16..24].copy_from_slice(&(slots as u64).to_le_bytes());
    out[24..32].copy_from_slice(&xxh3_64(embedding.name.as_bytes()).to_le_bytes());
    let sum = xxh3_64(&out[..32]);
    out[32..40].copy_from_slice(&sum.to_le_bytes());
    out
}

/// Quantizes a vector to a slot. A vector without length or with non-finite numbers gives an empty
/// slot.
#[expect(clippy::cast_possible_truncation, reason = "a quotient of at most 127 fits a byte")]
pub fn slot(vector: &[f32]) -> Vec<u8> {
    let mut out = vec![0; slot_width(vector.len())];
    let largest = vector.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    if largest <= 0.0 || !largest.is_finite() {
        return out;
    }
    let mut squares = 0.0;
    for (byte, x) in out[SLOT_HEADER..].iter_mut().zip(vector) {
        let number = (x / largest * 127.0).round() as i8;
        squares += f32::from(number).powi(2);
        *byte = number.cast_unsigned();
    }
    out[..4].copy_from_slice(&squares.sqrt().recip().to_le_bytes());
    out
}

impl<'a> Slots<'a> {
    /// Opens a vector file; `None` if it belongs to another embedder or another number of slots, or is
    /// incomplete.
    pub fn open(bytes: &'a [u8], embedding: &Embedding, layout: &'a SlotLayout) -> Option<Self> {
        let (header, slots) = bytes.split_first_chunk::<SLOTS_HEADER>()?;
        let width = slot_width(embedding.dimensions);
        let fits = *header == slots_header(embedding, layout.slots())
            && slots.len() == width.checked_mul(layout.slots())?;
        fits.then_some(Self {
            bytes: slots,
            width,
            layout,
        })
    }

    /// Slots of a document, one after the other; all zeros if empty.
    pub fn get(&self, document: usize) -> &'a [u8] {
        let places = self.layout.of_document(document);
        self.bytes
            .get(places.start * self.width..places.end * self.width)
            .unwrap_or_default()
    }

    fn each(&self, document: usize) -> std::slice::ChunksExact<'a, u8> {
        self.get(document).chunks_exact(self.width)
    }

    /// Returns true if a document has a vector.
    pub fn is_filled(&self, document: usize) -> bool {
        self.each(document).next().is_some_and(|s| factor(s) > 0.0)
    }

    /// Vector of the beginning of a document; `None` if it has none.
    pub fn vector(&self, document: usize) -> Option<Vec<f32>> {
        let beginning = self.each(document).next();
        beginning.filter(|slot| factor(slot) > 0.0).map(unquantized)
    }

    /// Window of a document that is nearest to the query, from 0, and the number of its windows; `None`
    /// for a document without windows.
    pub(crate) fn nearest_window(
        &self,
        document: usize,
        query: &QueryVector,
    ) -> Option<(usize, usize)> {
        let windows = self.each(document).skip(1);
        let of = windows.len();
        let cosines = windows.map(|slot| slot_cosine(slot, query)).enumerate();
        let nearest = cosines
            .filter(|(_, cosine)| !cosine.is_nan())
            .max_by(|a, b| a.1.total_cmp(&b.1));
        nearest.map(|(window, _)| (window, of))
    }

    /// Nearness of a document to one of these or of other slots; `None` if one has no vector.
    pub(crate) fn nearness(&self, document: usize, other: (&Self, usize)) -> Option<Nearness> {
        let others = other.0.each(other.1).map(unquantized);
        let queries: Vec<QueryVector> = others.map(|other| QueryVector::new(&other)).collect();
        let all = |query: &QueryVector| {
            let cosines = self.each(document).map(|slot| slot_cosine(slot, query));
            cosines
                .filter(|cosine| !cosine.is_nan())
                .collect::<Vec<_>>()
        };
        Some(Nearness {
            whole: *all(queries.first()?).first()?,
            passages: queries.iter().flat_map(all).fold(-1.0, f32::max),
        })
    }

    /// Cosines of all admitted documents; [`f32::NAN`] for the others and for empty slots.
    pub(crate) fn cosines(&self, query: &QueryVector, admitted: Option<&[bool]>) -> Vec<f32> {
        let scan = Scan {
            slots: *self,
            query,
            admitted,
        };
        scan.dispatch()
    }
}

/// Vector in a slot; zeros for an empty one.
fn unquantized(slot: &[u8]) -> Vec<f32> {
    let factor = factor(slot);
    let numbers = slot.get(SLOT_HEADER..).unwrap_or_default().iter();
    let numbers = numbers.map(|number| f32::from(number.cast_signed()) * factor);
    numbers.collect()
}

/// One pass over all slots.
struct Scan<'a> {
    slots: Slots<'a>,
    query: &'a QueryVector,
    admitted: Option<&'a [bool]>,
}

impl SimdOp for Scan<'_> {
    type Output = Vec<f32>;

    /// Compiled for each instruction set; the processor selects one at run time. 32-byte vectors
    /// take half as long as the 16-byte baseline.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a function that is called is compiled for the least of processors"
    )]
    fn eval<I: Isa>(self, _: I) -> Vec<f32> {
        let Self {
            slots,
            query,
            admitted,
        } = self;
        let of_document = |document| {
            if admitted.is_some_and(|admitted| admitted.get(document) != Some(&true)) {
                return f32::NAN;
            }
            cosine(slots.each(document).map(|slot| slot_cosine(slot, query)))
        };
        (0..slots.layout.documents()).map(of_document).collect()
    }
}

/// Cosine of the vector in a slot and the query; [`f32::NAN`] for an empty slot.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it is compiled for the processor that its caller is compiled for"
)]
#[expect(clippy::cast_precision_loss, reason = "a sum of 24 bits is as exact as it has to be")]
fn slot_cosine(slot: &[u8], query: &QueryVector) -> f32 {
    let factor = factor(slot);
    if factor > 0.0 {
        dot(&slot[SLOT_HEADER..], &query.0) as f32 * factor / ONE
    } else {
        f32::NAN
    }
}

/// Factor that restores length 1; 0 for an empty slot.
#[inline]
fn factor(slot: &[u8]) -> f32 {
    let factor = slot
        .first_chunk()
        .map_or(0.0, |bytes| f32::from_le_bytes(*bytes));
    // The largest number is ±127, so the length is at least 127 and the factor at most 1/127.
    if (0.0..=1.0 / 127.0).contains(&factor) {
        factor
    } else {
        0.0
    }
}

/// Dot product in integers. Their sum does not depend on order, so the compiler can vectorize it.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it is compiled for the processor that its caller is compiled for"
)]
fn dot(numbers: &[u8], query: &[i16]) -> i32 {
    let product = |(x, y): (&u8, &i16)| i32::from(x.cast_signed()) * i32::from(*y);
    numbers.iter().zip(query).map(product).sum()
}

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

    /// Layout for an embedder that reads windows, of documents with these numbers of words.
    pub(super) fn of(words: impl Iterator<Item = u32>) -> Self {
        Self::of_counts(words.map(vectors_of))
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
    use super::*;
    use proptest::prelude::*;

    fn model(dimensions: usize) -> Embedding {
        Embedding {
            name: "model".to_owned(),
            dimensions,
        }
    }

    fn unit(numbers: &[f32]) -> Vec<f32> {
        let length = numbers.iter().map(|x| x * x).sum::<f32>().sqrt();
        numbers.iter().map(|x| x / length).collect()
    }

    fn file(vectors: &[Vec<f32>]) -> Vec<u8> {
        let dimensions = vectors[0].len();
        let mut bytes = slots_header(&model(dimensions), vectors.len()).to_vec();
        bytes.extend(vectors.iter().flat_map(|vector| slot(vector)));
        bytes
    }

    #[test]
    fn slots_open_for_their_own_embedder_and_documents_alone() {
        let bytes = file(&[vec![0.6, 0.8], vec![0.0, 0.0]]);
        let two = SlotLayout::single(2);
        let slots = Slots::open(&bytes, &model(2), &two).unwrap();
        assert_eq!([0, 1].map(|i| slots.is_filled(i)), [true, false]);
        assert!(slots.cosines(&QueryVector::new(&[1.0, 0.0]), None)[1].is_nan());
        let other = Embedding {
            name: "other".to_owned(),
            ..model(2)
        };
        assert!(Slots::open(&bytes, &other, &SlotLayout::single(2)).is_none());
        assert!(Slots::open(&bytes, &model(3), &SlotLayout::single(2)).is_none());
        assert!(Slots::open(&bytes, &model(2), &SlotLayout::single(3)).is_none());
        for at in 0..bytes.len() {
            assert!(Slots::open(&bytes[..at], &model(2), &SlotLayout::single(2)).is_none());
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let slots = Slots::open(&damaged, &model(2), &two);
            assert_eq!(slots.is_none(), at < SLOTS_HEADER, "{at}");
        }
    }

    /// Clustered vectors, as in real data, where coarse comparison confuses near neighbours.
    #[test]
    fn the_nearest_are_those_of_the_exact_vectors() {
        let mut state = 9u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            f32::from(u16::try_from(state >> 48).unwrap()) / 32_768.0 - 1.0
        };
        let centres: Vec<Vec<f32>> = (0..20)
            .map(|_| (0..384).map(|_| random()).collect())
            .collect();
        let mut near = |centre: &[f32]| {
            unit(
                &centre
                    .iter()
                    .map(|x| x + 0.7 * random())
                    .collect::<Vec<_>>(),
            )
        };
        let vectors: Vec<Vec<f32>> = (0..2_000).map(|i| near(&centres[i % 20])).collect();
        let bytes = file(&vectors);
        let layout = SlotLayout::single(vectors.len());
        let slots = Slots::open(&bytes, &model(384), &layout).unwrap();
        let top = |score: &dyn Fn(usize) -> f32| {
            let mut order: Vec<(f32, usize)> = (0..vectors.len()).map(|i| (score(i), i)).collect();
            order.sort_by(|a, b| b.0.total_cmp(&a.0));
            order
                .into_iter()
                .take(10)
                .map(|(_, i)| i)
                .collect::<Vec<_>>()
        };
        let mut found = 0;
        for centre in &centres {
            let query = near(centre);
            let exact = top(&|i| vectors[i].iter().zip(&query).map(|(a, b)| a * b).sum());
            let query = QueryVector::new(&query);
            let cosines = slots.cosines(&query, None);
            let ours = top(&|i| cosines[i]);
            found += exact.iter().filter(|i| ours.contains(i)).count();
        }
        assert!(found >= 198, "{found} of 200 are found");
    }

    #[test]
    fn a_long_document_has_several_slots() {
        let vectors = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-1.0, 0.0]].map(Vec::from);
        let bytes = file(&vectors);
        let layout = SlotLayout::of_counts([3, 1].into_iter());
        let slots = Slots::open(&bytes, &model(2), &layout).unwrap();
        let query = QueryVector::new(&[0.0, 1.0]);
        let all = slots.cosines(&query, None);
        // The beginning says 0, the nearest of two windows 1.
        assert!((all[0] - 0.96).abs() < 0.01, "{all:?}");
        assert_eq!(all.len(), 2);
        let some = slots.cosines(&query, Some(&[false, true]));
        assert!(some[0].is_nan() && some[1].abs() < 0.01, "{some:?}");
        assert_eq!(slots.get(0).len(), 3 * slot_width(2));
        assert_eq!(slots.nearest_window(0, &query), Some((0, 2)));
        let other = QueryVector::new(&[1.0, 0.0]);
        assert_eq!(slots.nearest_window(0, &other), Some((1, 2)));
        assert_eq!(slots.nearest_window(1, &query), None);
        assert!(Slots::open(&bytes, &model(2), &SlotLayout::of_counts([3].into_iter())).is_none());
    }

    proptest! {
        #[test]
        fn cosines_are_those_of_the_exact_vectors(a in prop::collection::vec(-1.0f32..1.0, 384), b in prop::collection::vec(-1.0f32..1.0, 384)) {
            let (a, b) = (unit(&a), unit(&b));
            let exact: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            let bytes = file(std::slice::from_ref(&a));
            let layout = SlotLayout::single(1);
            let slots = Slots::open(&bytes, &model(384), &layout).unwrap();
            let cosine = slots.cosines(&QueryVector::new(&b), None)[0];
            prop_assert!(slots.cosines(&QueryVector::new(&b), Some(&[false]))[0].is_nan());
            prop_assert!((cosine - exact).abs() < 0.005, "{cosine} {exact}");
            let itself = slots.cosines(&QueryVector::new(&a), None)[0];
            prop_assert!((itself - 1.0).abs() < 0.001, "{itself}");
        }
    }
}

#[cfg(test)]
mod tests_of_windows {
    use proptest::prelude::*;

    use super::*;
    use crate::segment::{Attributes, Segment};
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
        let layout = Segment::open(&bytes).unwrap().slot_layout();
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
