//! Bytes that are verified as they are read, a block at a time.
//!
//! A search for one input reads some hundred values out of megabytes, so a checksum over all of them
//! would take longer than the search. Each block has its own.

use std::cell::Cell;

use super::input_table::short_hash;
use crate::search::segment::Damaged;

/// Bytes of a block: a multiple of the size of every value, so that no value crosses a border.
const BLOCK: usize = 1024;
/// Bytes of the checksum of a block.
const SUM: usize = 4;

/// Bytes with the checksums of their blocks.
#[derive(Debug, Clone)]
pub(super) struct Blocks<'a> {
    bytes: &'a [u8],
    sums: &'a [[u8; SUM]],
    /// Blocks that were found intact.
    intact: Vec<Cell<bool>>,
}

impl<'a> Blocks<'a> {
    /// Takes the checksums as they are.
    pub(super) fn new(bytes: &'a [u8], sums: &'a [u8]) -> Self {
        Self {
            bytes,
            sums: sums.as_chunks().0,
            intact: vec![Cell::new(false); bytes.len().div_ceil(BLOCK)],
        }
    }

    /// Returns the value at a multiple of its size.
    ///
    /// # Errors
    ///
    /// Returns [`Damaged`] if the block does not match its checksum, or there is no such value.
    #[inline]
    pub(super) fn value<const SIZE: usize>(&self, at: usize) -> Result<[u8; SIZE], Damaged> {
        let intact = self.intact.get(at / BLOCK).ok_or(Damaged)?;
        if !intact.get() {
            self.verify(at / BLOCK)?;
            intact.set(true);
        }
        let value = self.bytes.get(at..).and_then(<[u8]>::first_chunk);
        value.copied().ok_or(Damaged)
    }

    fn verify(&self, block: usize) -> Result<(), Damaged> {
        let bytes = self.bytes.chunks(BLOCK).nth(block).ok_or(Damaged)?;
        let sum = self.sums.get(block).ok_or(Damaged)?;
        (short_hash(bytes) == u32::from_le_bytes(*sum))
            .then_some(())
            .ok_or(Damaged)
    }
}

/// Number of bytes that the checksums of so many bytes take.
pub(super) const fn size_of_sums(bytes: usize) -> usize {
    bytes.div_ceil(BLOCK) * SUM
}

/// Checksums of the blocks.
pub(super) fn sums(bytes: &[u8]) -> impl Iterator<Item = u8> {
    bytes
        .chunks(BLOCK)
        .flat_map(|block| short_hash(block).to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_read_is_verified() {
        let bytes: Vec<u8> = (0u8..=250).cycle().take(3 * BLOCK + 8).collect();
        let sums: Vec<u8> = sums(&bytes).collect();
        assert_eq!(sums.len(), size_of_sums(bytes.len()));
        let mut damaged = bytes.clone();
        damaged[BLOCK + 1] ^= 1;
        let blocks = Blocks::new(&damaged, &sums);
        for at in [0, BLOCK - 8, 2 * BLOCK, 3 * BLOCK] {
            assert_eq!(blocks.value::<8>(at).unwrap(), bytes[at..at + 8]);
        }
        assert_eq!(blocks.value::<8>(BLOCK), Err(Damaged));
        assert_eq!(blocks.value::<1>(2 * BLOCK - 1), Err(Damaged));
        assert_eq!(blocks.value::<8>(3 * BLOCK + 8), Err(Damaged));
        assert_eq!(blocks.value::<8>(usize::MAX - 7), Err(Damaged));
    }
}
