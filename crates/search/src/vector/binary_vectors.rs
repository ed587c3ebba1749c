//! Binary vectors of a segment: one bit per dimension, to choose which documents are compared exactly.
//!
//! ```text
//! header   64 bytes: magic, dimensions, slots, hash of the embedder's name, checksums of what
//!          follows and of the header
//! scales   per slot: estimate of a cosine for a dot product of 1 (f32); 0 for an empty slot
//! ones     per slot: number of its set bits (2 bytes)
//! codes    per slot: the sign of each dimension as a bit, in words of 8 bytes
//! ```
//!
//! They are an eighth of the quantized vectors and derived from them, for segments in which every
//! document has one. The estimate is that of `RaBitQ` (Gao and Long, SIGMOD 2024) without the rotation:
//! unbiased, with a standard deviation of about 0.04 at 384 dimensions. Immutable.

use rten_simd::{Isa, SimdOp};
use xxhash_rust::xxh3::xxh3_64;

use super::quantized_vectors::Slots;
use super::windows::SlotLayout;

const MAGIC: &[u8; 8] = b"mctlbin1";
const HEADER: usize = 64;
/// Bits of a query number.
const PLANES: usize = 4;
const LARGEST: f32 = 15.0;

/// Binary vectors of one segment's documents.
#[derive(Debug, Clone, Copy)]
pub struct BinaryVectors<'a> {
    bytes: &'a [u8],
    sum: u64,
    scales: &'a [[u8; 4]],
    ones: &'a [[u8; 2]],
    codes: &'a [[u8; 8]],
    layout: &'a SlotLayout,
}

/// Query vector in bit planes: the lowest bit of each number, then the next.
#[derive(Debug, Clone)]
pub(crate) struct BinaryQuery {
    /// For each word of a code.
    planes: Vec<[u64; PLANES]>,
    /// Half of the distance between two numbers.
    half_step: f32,
    /// Constant part of twice the dot product, in steps.
    offset: i32,
}

impl BinaryQuery {
    /// Converts a vector of length 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number from 0 to 15"
    )]
    pub(crate) fn new(vector: &[f32]) -> Self {
        let largest = vector.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        let step = (2.0 * largest / LARGEST).max(f32::MIN_POSITIVE);
        let number = |x: &f32| ((x + largest) / step).round().clamp(0.0, LARGEST) as u8;
        let mut planes = vec![[0; PLANES]; words(vector.len())];
        let mut offset = 0;
        for (i, number) in vector.iter().map(number).enumerate() {
            for (bit, plane) in planes[i / 64].iter_mut().enumerate() {
                *plane |= u64::from(number >> bit & 1) << (i % 64);
            }
            offset += 15 - 2 * i32::from(number);
        }
        Self {
            planes,
            half_step: step / 2.0,
            offset,
        }
    }
}

/// Words of a code.
const fn words(dimensions: usize) -> usize {
    dimensions.div_ceil(64)
}

/// Binary vectors of quantized ones.
#[expect(clippy::cast_precision_loss, reason = "a sum of bytes")]
pub fn binary_vectors(slots: &Slots<'_>, embedder: &str, dimensions: usize) -> Vec<u8> {
    let (mut scales, mut ones, mut codes) = (Vec::new(), Vec::new(), Vec::new());
    for (factor, numbers) in slots.quantized() {
        let numbers = numbers.get(..dimensions).unwrap_or(numbers);
        let sum: u32 = numbers
            .iter()
            .map(|x| u32::from(x.cast_signed().unsigned_abs()))
            .sum();
        let length = sum as f32 * factor;
        let scale = if length > 0.0 { length.recip() } else { 0.0 };
        scales.extend_from_slice(&scale.to_le_bytes());
        let mut set = 0u16;
        for numbers in numbers.chunks(64) {
            let bit = |(i, x): (usize, &u8)| u64::from(x.cast_signed() >= 0) << i;
            let word: u64 = numbers.iter().enumerate().map(bit).sum();
            set = set.saturating_add(u16::try_from(word.count_ones()).unwrap_or(0));
            codes.extend_from_slice(&word.to_le_bytes());
        }
        ones.extend_from_slice(&set.to_le_bytes());
    }
    let body = [scales, ones, codes].concat();
    let slots = body.len() / slot_bytes(dimensions);
    let mut out = header(embedder, dimensions, slots, xxh3_64(&body)).to_vec();
    out.extend(body);
    out
}

/// Bytes of a slot in all columns.
const fn slot_bytes(dimensions: usize) -> usize {
    4 + 2 + words(dimensions) * 8
}

fn header(embedder: &str, dimensions: usize, slots: usize, sum: u64) -> [u8; HEADER] {
    let mut out = [0; HEADER];
    let numbers = [
        dimensions as u64,
        slots as u64,
        xxh3_64(embedder.as_bytes()),
        sum,
    ];
    out[..8].copy_from_slice(MAGIC);
    for (bytes, number) in out[8..].chunks_exact_mut(8).zip(numbers) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
    let sum = xxh3_64(&out[..40]);
    out[40..48].copy_from_slice(&sum.to_le_bytes());
    out
}

impl<'a> BinaryVectors<'a> {
    /// Opens a file; `None` if it belongs to another embedder or another number of slots, or is
    /// incomplete.
    pub fn open(
        bytes: &'a [u8],
        embedder: &str,
        dimensions: usize,
        layout: &'a SlotLayout,
    ) -> Option<Self> {
        let (start, body) = bytes.split_first_chunk::<HEADER>()?;
        let slots = layout.slots();
        let sum = u64::from_le_bytes(*start[32..].first_chunk()?);
        let fits = *start == header(embedder, dimensions, slots, sum)
            && body.len() == slots.checked_mul(slot_bytes(dimensions))?;
        if !fits {
            return None;
        }
        let (scales, rest) = body.split_at(slots * 4);
        let (ones, codes) = rest.split_at(slots * 2);
        Some(Self {
            bytes: body,
            sum,
            scales: scales.as_chunks().0,
            ones: ones.as_chunks().0,
            codes: codes.as_chunks().0,
            layout,
        })
    }

    /// Returns true if the checksum matches.
    pub fn is_intact(&self) -> bool {
        xxh3_64(self.bytes) == self.sum
    }

    /// Estimated cosines of all admitted documents; [`f32::NAN`] for the others and for empty slots.
    pub(crate) fn cosines(&self, query: &BinaryQuery, admitted: Option<&[bool]>) -> Vec<f32> {
        let scan = Scan {
            vectors: *self,
            query,
            admitted,
        };
        scan.dispatch()
    }
}

/// One pass over all codes.
struct Scan<'a> {
    vectors: BinaryVectors<'a>,
    query: &'a BinaryQuery,
    admitted: Option<&'a [bool]>,
}

impl SimdOp for Scan<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a function that is called is compiled for the least of processors"
    )]
    fn eval<I: Isa>(self, _: I) -> Vec<f32> {
        let Self {
            vectors,
            query,
            admitted,
        } = self;
        let codes = vectors.codes.chunks_exact(query.planes.len());
        let slots = codes.zip(vectors.scales).zip(vectors.ones);
        vectors
            .layout
            .cosines(slots, admitted, |((code, scale), ones)| {
                estimate(
                    code,
                    f32::from_le_bytes(*scale),
                    u16::from_le_bytes(*ones),
                    query,
                )
            })
    }
}

/// Estimated cosine of a code and the query; [`f32::NAN`] for an empty slot.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it is compiled for the processor that its caller is compiled for"
)]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a sum of 15 for each of some thousand dimensions"
)]
fn estimate(code: &[[u8; 8]], scale: f32, ones: u16, query: &BinaryQuery) -> f32 {
    if scale <= 0.0 {
        return f32::NAN;
    }
    let mut counts = [0u64; PLANES];
    for (word, planes) in code.iter().zip(&query.planes) {
        let word = u64::from_le_bytes(*word);
        for (count, plane) in counts.iter_mut().zip(planes) {
            *count += u64::from((word & plane).count_ones());
        }
    }
    let sum = counts.iter().rev().fold(0, |sum, count| 2 * sum + count);
    let twice = 4 * sum as i32 - 30 * i32::from(ones) + query.offset;
    (twice as f32 * query.half_step * scale).clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::quantized_vectors::{slot, slots_header};
    use super::*;

    fn unit(numbers: &[f32]) -> Vec<f32> {
        let length = numbers.iter().map(|x| x * x).sum::<f32>().sqrt();
        numbers.iter().map(|x| x / length).collect()
    }

    fn binary(vectors: &[Vec<f32>], layout: &SlotLayout) -> Vec<u8> {
        let dimensions = vectors[0].len();
        let mut bytes = slots_header("model", dimensions, vectors.len()).to_vec();
        bytes.extend(vectors.iter().flat_map(|vector| slot(vector)));
        let slots = Slots::open(&bytes, "model", dimensions, layout).unwrap();
        binary_vectors(&slots, "model", dimensions)
    }

    #[test]
    fn they_open_for_their_own_embedder_and_documents_alone_and_damage_is_noticed() {
        let layout = SlotLayout::Single(2);
        let bytes = binary(&[vec![0.6, 0.8], vec![0.0, 0.0]], &layout);
        let vectors = BinaryVectors::open(&bytes, "model", 2, &layout).unwrap();
        assert!(vectors.is_intact());
        let cosines = vectors.cosines(&BinaryQuery::new(&[0.6, 0.8]), None);
        assert!(cosines[0] > 0.9 && cosines[1].is_nan(), "{cosines:?}");
        assert!(BinaryVectors::open(&bytes, "other", 2, &layout).is_none());
        assert!(BinaryVectors::open(&bytes, "model", 3, &layout).is_none());
        assert!(BinaryVectors::open(&bytes, "model", 2, &SlotLayout::Single(1)).is_none());
        for at in 0..bytes.len() {
            assert!(BinaryVectors::open(&bytes[..at], "model", 2, &layout).is_none());
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let opened = BinaryVectors::open(&damaged, "model", 2, &layout);
            assert!(!opened.is_some_and(|vectors| vectors.is_intact()), "{at}");
        }
    }

    #[test]
    fn a_long_document_counts_its_windows() {
        let layout = SlotLayout::Windows(vec![0, 3, 4]);
        let vector = |n: u16| {
            let number = |i: u16| f32::from(i * (n + 3) * 7 % 61) - 30.0;
            unit(&(0..128).map(number).collect::<Vec<_>>())
        };
        let vectors: Vec<Vec<f32>> = (0..4).map(vector).collect();
        let bytes = binary(&vectors, &layout);
        let opened = BinaryVectors::open(&bytes, "model", 128, &layout).unwrap();
        let cosines = opened.cosines(&BinaryQuery::new(&vectors[2]), Some(&[true, false]));
        assert_eq!(cosines.len(), 2);
        assert!(cosines[0] > 0.8 && cosines[1].is_nan(), "{cosines:?}");
    }

    proptest! {
        #[test]
        fn estimates_are_near_the_cosines(
            a in prop::collection::vec(-1.0f32..1.0, 384),
            b in prop::collection::vec(-1.0f32..1.0, 384),
            share in 0.0f32..1.0,
        ) {
            let a = unit(&a);
            let mixed: Vec<f32> = a.iter().zip(unit(&b)).map(|(a, b)| share * a + (1.0 - share) * b).collect();
            let b = unit(&mixed);
            let exact: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            let layout = SlotLayout::Single(1);
            let bytes = binary(std::slice::from_ref(&a), &layout);
            let vectors = BinaryVectors::open(&bytes, "model", 384, &layout).unwrap();
            let estimate = vectors.cosines(&BinaryQuery::new(&b), None)[0];
            prop_assert!((estimate - exact).abs() < 0.2, "{estimate} {exact}");
        }
    }
}
