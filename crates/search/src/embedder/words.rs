//! Embeddings of the word pieces: the built-in model's first layer, which only looks them up.
//!
//! The table stays packed in the program's image, four bits a number, and the rows of a text's pieces are
//! unpacked. `convert.py` writes it. A row holds 12 scales in 16 bits (the upper half of a 32-bit float), then
//! 192 bytes with two numbers each, the lower half first. A number is a step from -8 to 7, stored from 0 to 15;
//! 32 of them share a scale.

use super::DIMENSIONS;

static TABLE: &[u8] = include_bytes!("../../assets/words.data");

/// Bytes of the scales of a row.
const SCALES: usize = 2 * 12;

/// Bytes of the steps of a row, and of those that share a scale.
const STEPS: usize = DIMENSIONS / 2;
const GROUP: usize = 32 / 2;

/// Embeddings of the pieces, one behind the other; `None` if the table lacks one.
pub(crate) fn embeddings(pieces: &[u16]) -> Option<Vec<f32>> {
    let (rows, _) = TABLE.as_chunks::<{ SCALES + STEPS }>();
    let mut numbers = Vec::with_capacity(pieces.len() * DIMENSIONS);
    for piece in pieces {
        unpack(rows.get(usize::from(*piece))?, &mut numbers);
    }
    Some(numbers)
}

fn unpack(row: &[u8; SCALES + STEPS], numbers: &mut Vec<f32>) {
    let (scales, steps) = row.split_at(SCALES);
    let (scales, (groups, _)) = (scales.as_chunks().0, steps.as_chunks::<GROUP>());
    for (scale, group) in scales.iter().zip(groups) {
        let scale = f32::from_bits(u32::from(u16::from_le_bytes(*scale)) << 16);
        let steps = group.iter().flat_map(|two| [two & 15, two >> 4]);
        numbers.extend(steps.map(|step| (f32::from(step) - 8.0) * scale));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_its_steps_times_the_scales_of_their_groups() {
        let mut row = [0x88; SCALES + STEPS];
        // 1.0 for the first group, -0.5 for the last one.
        row[..2].copy_from_slice(&0x3f80_u16.to_le_bytes());
        row[SCALES - 2..SCALES].copy_from_slice(&0xbf00_u16.to_le_bytes());
        row[SCALES] = 0xf0;
        row[SCALES + STEPS - 1] = 0x9a;
        let mut numbers = Vec::new();
        unpack(&row, &mut numbers);
        assert_eq!(numbers.len(), DIMENSIONS);
        assert_eq!(numbers[..3], [-8.0, 7.0, 0.0]);
        assert_eq!(numbers[DIMENSIONS - 3..], [0.0, -1.0, -0.5]);
    }

    #[test]
    fn every_piece_of_the_vocabulary_has_a_row() {
        let pieces = include_str!("../../assets/vocab.txt").lines().count();
        let last = u16::try_from(pieces - 1).unwrap();
        assert_eq!(embeddings(&[0, last]).unwrap().len(), 2 * DIMENSIONS);
        assert_eq!(TABLE.len(), pieces * (SCALES + STEPS));
        assert!(embeddings(&[last + 1]).is_none());
    }
}
