//! Vectors in a quarter of the room: a byte a number and one scale, for files.
//!
//! A cosine moves by less than a hundredth, which is less than what the model's own 8-bit weights
//! move it.

use super::embed::{DIMENSIONS, Vector};

/// How many bytes a compact vector has: the scale as `f32`, little-endian, and a signed byte a number.
pub const COMPACT: usize = 4 + DIMENSIONS;

/// The vector in few bytes.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a quotient of at most 127 fits a byte"
)]
pub fn compact(vector: &Vector) -> [u8; COMPACT] {
    let largest = vector.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    let scale = largest.max(f32::MIN_POSITIVE) / 127.0;
    let mut out = [0; COMPACT];
    out[..4].copy_from_slice(&scale.to_le_bytes());
    for (byte, x) in out[4..].iter_mut().zip(vector) {
        *byte = ((x / scale).round() as i8).to_le_bytes()[0];
    }
    out
}

/// The vector that was compacted, of length 1 again; `None` where these bytes are none.
pub fn restore(bytes: &[u8; COMPACT]) -> Option<Vector> {
    let (scale, numbers) = bytes.split_first_chunk()?;
    let scale = f32::from_le_bytes(*scale);
    let mut vector = [0.0; DIMENSIONS];
    for (x, byte) in vector.iter_mut().zip(numbers) {
        *x = scale * f32::from(i8::from_le_bytes([*byte]));
    }
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    (0.9..1.1)
        .contains(&length)
        .then(|| vector.map(|x| x / length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::cosine;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_comes_back_points_the_same_way(numbers in prop::collection::vec(-1.0f32..1.0, DIMENSIONS)) {
            let length = numbers.iter().map(|x| x * x).sum::<f32>().sqrt();
            prop_assume!(length > 0.1);
            let vector: Vector = std::array::from_fn(|i| numbers[i] / length);
            let back = restore(&compact(&vector)).unwrap();
            prop_assert!(cosine(&vector, &back) > 0.999);
        }

        #[test]
        fn bytes_that_are_no_vector_are_none_or_harmless(bytes in prop::collection::vec(any::<u8>(), COMPACT)) {
            let bytes: [u8; COMPACT] = bytes.try_into().unwrap();
            if let Some(vector) = restore(&bytes) {
                prop_assert!(vector.iter().all(|x| x.is_finite()));
            }
        }
    }
}
