//! Inputs of the executions and corrections of one index segment, as bytes that are searched in place.
//!
//! ```text
//! header   56 bytes: magic, number of rows, number of terms, bytes of the features and of the
//!          postings, checksums of the columns, of the terms and of the header
//! columns  one array per attribute, one value per row: id, other id (8 bytes each), document, end of
//!          its features, checksum of its features (4 each), flags (1)
//! terms    one array per attribute, in the order of the hashes: hash (8 bytes), end of its postings,
//!          number of accepted executions, checksum (4 each)
//! features of each row, as ordinals of terms with their counts
//! postings of each term: numbers of rows with the counts
//! ```
//!
//! Features and postings are coded like the postings of a segment. A feature with a count of 0 is a
//! fact about the row and no part of its input. All numbers are little-endian. Tables are immutable,
//! and damage is detected when a part is used.

use xxhash_rust::xxh3::xxh3_64;

use super::features::Term;
use crate::search::segment::{Damaged, Postings, u32_at, u64_at};

/// Changes with the layout above and with the features of an input.
pub(super) const MAGIC: &[u8; 8] = b"mctlinp2";
pub(super) const HEADER: usize = 56;
/// Bytes of columns per row.
pub(super) const ROW: usize = 2 * 8 + 3 * 4 + 1;
/// Bytes per term.
pub(super) const TERM: usize = 8 + 3 * 4;

/// Flags of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub(super) u8);

impl Flags {
    /// Execution that a person accepted.
    pub const ACCEPTED: Self = Self(1);
    /// Correction that counts.
    pub const COUNTS: Self = Self(2);
    /// Correction with an expected output.
    pub const EXPECTED: Self = Self(4);

    /// Returns these flags, or none.
    #[must_use]
    pub fn when(self, holds: bool) -> Self {
        if holds { self } else { Self(0) }
    }

    /// Returns the flags of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if all the flags of the other are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Opened table.
#[derive(Debug, Clone, Copy)]
pub struct InputTable<'a> {
    rows: usize,
    columns: &'a [u8],
    sums: [u64; 2],
    /// All attributes of the terms.
    of_terms: &'a [u8],
    hashes: &'a [[u8; 8]],
    /// Attributes but the hashes.
    terms: &'a [u8],
    features: &'a [u8],
    postings: &'a [u8],
}

impl<'a> InputTable<'a> {
    /// Opens a table; `None` if the bytes are incomplete or of another version.
    pub fn open(bytes: &'a [u8]) -> Option<Self> {
        let header = bytes.get(..HEADER)?;
        if &header[..8] != MAGIC || u64_at(header, HEADER - 8) != xxh3_64(&header[..HEADER - 8]) {
            return None;
        }
        let rows = u32_at(header, 8) as usize;
        let terms = u32_at(header, 12) as usize;
        let sizes = [
            rows.checked_mul(ROW)?,
            terms.checked_mul(TERM)?,
            usize::try_from(u64_at(header, 16)).ok()?,
            usize::try_from(u64_at(header, 24)).ok()?,
        ];
        let mut rest = &bytes[HEADER..];
        let mut parts = [&[][..]; 4];
        for (part, size) in parts.iter_mut().zip(sizes) {
            (*part, rest) = rest.split_at_checked(size)?;
        }
        let [columns, terms_part, features, postings] = parts;
        rest.is_empty().then(|| Self {
            rows,
            columns,
            sums: [32, 40].map(|at| u64_at(header, at)),
            of_terms: terms_part,
            hashes: terms_part[..terms * 8].as_chunks().0,
            terms: &terms_part[terms * 8..],
            features,
            postings,
        })
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Number of terms.
    pub(super) fn terms(&self) -> usize {
        self.hashes.len()
    }

    /// Verifies the columns of all rows.
    ///
    /// # Errors
    ///
    /// Returns [`Damaged`] on a mismatch.
    pub fn verify(&self) -> Result<(), Damaged> {
        let intact = xxh3_64(self.columns) == self.sums[0];
        intact.then_some(()).ok_or(Damaged)
    }

    /// Verifies the terms. [`Self::find`] needs that.
    pub(super) fn verify_terms(&self) -> Result<(), Damaged> {
        let intact = xxh3_64(self.of_terms) == self.sums[1];
        intact.then_some(()).ok_or(Damaged)
    }

    /// Flags of a row.
    pub fn flags(&self, row: u32) -> Flags {
        let at = self.rows * 28 + row as usize;
        Flags(self.columns.get(at).copied().unwrap_or_default())
    }

    /// Hash of the id of a row's record.
    pub fn id(&self, row: u32) -> u64 {
        u64_at(self.columns, row as usize * 8)
    }

    /// Hash of the case that answered an execution, or of the execution that a correction is about.
    /// 0 if there is none.
    pub fn other_id(&self, row: u32) -> u64 {
        u64_at(self.columns, (self.rows + row as usize) * 8)
    }

    /// Number of the row's document in its segment.
    pub fn document(&self, row: u32) -> u32 {
        self.narrow(0, row)
    }

    fn narrow(&self, column: usize, row: u32) -> u32 {
        let at = self.rows * 16 + (column * self.rows + row as usize) * 4;
        u32_at(self.columns, at)
    }

    /// Features of a row: ordinals of terms with their counts.
    pub(super) fn features(&self, row: u32) -> Result<Postings<'a>, Damaged> {
        let start = row.checked_sub(1).map_or(0, |row| self.narrow(1, row));
        let range = start as usize..self.narrow(1, row) as usize;
        let bytes = self.features.get(range).ok_or(Damaged)?;
        (short_hash(bytes) == self.narrow(2, row))
            .then(|| Postings::unlimited(bytes))
            .ok_or(Damaged)
    }

    /// Hash of a term, by its ordinal.
    pub(super) fn hash(&self, ordinal: u32) -> Term {
        let hash = self.hashes.get(ordinal as usize);
        hash.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// Number of accepted executions with a term, by its ordinal.
    pub(super) fn accepted_with(&self, ordinal: u32) -> u32 {
        self.of_term(1, ordinal as usize)
    }

    /// Ordinal of a term; `None` if no row has it.
    pub(super) fn find(&self, term: Term) -> Option<u32> {
        let at = self.place(term);
        let found = self.hashes.get(at)?;
        (u64::from_le_bytes(*found) == term).then(|| u32::try_from(at).ok())?
    }

    /// Number of smaller hashes. Hashes are evenly spread, so the place of one is nearly known.
    fn place(&self, term: Term) -> usize {
        let less = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes) < term;
        let terms = self.hashes.len();
        let guess = usize::try_from((u128::from(term) * terms as u128) >> 64).unwrap_or(0);
        let reach = 2 * terms.isqrt() + 8;
        let (low, high) = (guess.saturating_sub(reach), (guess + reach).min(terms));
        let is_below = low == 0 || self.hashes.get(low - 1).is_some_and(less);
        let is_above = high == terms || self.hashes.get(high).is_some_and(|bytes| !less(bytes));
        let (low, high) = if is_below && is_above {
            (low, high)
        } else {
            (0, terms)
        };
        low + self.hashes[low..high].partition_point(less)
    }

    /// Rows with a term, by its ordinal.
    pub(super) fn postings(&self, ordinal: u32) -> Result<Postings<'a>, Damaged> {
        let ordinal_at = ordinal as usize;
        let start = ordinal_at
            .checked_sub(1)
            .map_or(0, |at| self.of_term(0, at));
        let range = start as usize..self.of_term(0, ordinal_at) as usize;
        let bytes = self.postings.get(range).ok_or(Damaged)?;
        (short_hash(bytes) == self.of_term(2, ordinal_at))
            .then(|| Postings::unlimited(bytes))
            .ok_or(Damaged)
    }

    fn of_term(&self, column: usize, ordinal: usize) -> u32 {
        u32_at(self.terms, (column * self.hashes.len() + ordinal) * 4)
    }
}

/// Checksum of features or postings.
#[expect(
    clippy::cast_possible_truncation,
    reason = "half of the bits is enough to notice damage"
)]
pub(super) fn short_hash(bytes: &[u8]) -> u32 {
    xxh3_64(bytes) as u32
}
