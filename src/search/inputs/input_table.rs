//! Inputs of the executions and corrections of one index segment, as bytes that are searched in place.
//!
//! ```text
//! header   48 bytes: magic, number of rows, number of terms, bytes of the features and of the
//!          postings, checksums of the checksums and of the header
//! columns  one array per attribute, one value per row: id, other id (8 bytes each), document, end of
//!          its features, checksum of its features (4 each), flags (1)
//! terms    one array per attribute, in the order of the hashes: hash (8 bytes), end of its postings,
//!          number of accepted executions, checksum (4 each)
//! checksums of the blocks of the columns, and of those of the terms (4 bytes each)
//! features of each row, as ordinals of terms with their counts
//! postings of each term: numbers of rows with the counts
//! ```
//!
//! Features and postings are coded like the postings of a segment. A feature with a count of 0 is a
//! fact about the row and no part of its input. All numbers are little-endian. Tables are immutable,
//! and damage is detected when a part is used. Reading a value verifies only the block around it.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::blocks::{Blocks, size_of_sums};
use super::features::Term;
use crate::search::segment::{Damaged, Postings, u32_at, u64_at};

/// Changes with the layout above and with the features of an input.
pub(super) const MAGIC: &[u8; 8] = b"mctlinp3";
pub(super) const HEADER: usize = 48;
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

/// Opened table. Its methods return [`Damaged`] for bytes that do not match their checksum.
#[derive(Debug, Clone)]
pub struct InputTable<'a> {
    rows: usize,
    terms: usize,
    columns: Blocks<'a>,
    of_terms: Blocks<'a>,
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
        let (columns, of_terms) = (rows.checked_mul(ROW)?, terms.checked_mul(TERM)?);
        let sizes = [
            columns,
            of_terms,
            size_of_sums(columns),
            size_of_sums(of_terms),
            usize::try_from(u64_at(header, 16)).ok()?,
            usize::try_from(u64_at(header, 24)).ok()?,
        ];
        let mut rest = &bytes[HEADER..];
        let mut parts = [&[][..]; 6];
        for (part, size) in parts.iter_mut().zip(sizes) {
            (*part, rest) = rest.split_at_checked(size)?;
        }
        let [
            columns,
            of_terms,
            column_sums,
            term_sums,
            features,
            postings,
        ] = parts;
        let is_intact = sum_of_sums(column_sums, term_sums) == u64_at(header, 32);
        (rest.is_empty() && is_intact).then(|| Self {
            rows,
            terms,
            columns: Blocks::new(columns, column_sums),
            of_terms: Blocks::new(of_terms, term_sums),
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
        self.terms
    }

    /// Flags of a row.
    pub fn flags(&self, row: u32) -> Result<Flags, Damaged> {
        let [flags] = self.columns.value(self.rows * 28 + row as usize)?;
        Ok(Flags(flags))
    }

    /// Hash of the id of a row's record.
    pub fn id(&self, row: u32) -> Result<u64, Damaged> {
        let id = self.columns.value(row as usize * 8)?;
        Ok(u64::from_le_bytes(id))
    }

    /// Hash of the case that answered an execution, or of the execution that a correction is about.
    /// 0 if there is none.
    pub fn other_id(&self, row: u32) -> Result<u64, Damaged> {
        let id = self.columns.value((self.rows + row as usize) * 8)?;
        Ok(u64::from_le_bytes(id))
    }

    /// Number of the row's document in its segment.
    pub fn document(&self, row: u32) -> Result<u32, Damaged> {
        self.narrow(0, row)
    }

    fn narrow(&self, column: usize, row: u32) -> Result<u32, Damaged> {
        let at = self.rows * 16 + (column * self.rows + row as usize) * 4;
        Ok(u32::from_le_bytes(self.columns.value(at)?))
    }

    /// Features of a row: ordinals of terms with their counts.
    pub(super) fn features(&self, row: u32) -> Result<Postings<'a>, Damaged> {
        let start = row.checked_sub(1).map(|row| self.narrow(1, row));
        let range = start.transpose()?.unwrap_or(0) as usize..self.narrow(1, row)? as usize;
        let bytes = self.features.get(range).ok_or(Damaged)?;
        (short_hash(bytes) == self.narrow(2, row)?)
            .then(|| Postings::unlimited(bytes))
            .ok_or(Damaged)
    }

    /// Hash of a term, by its ordinal.
    pub(super) fn hash(&self, ordinal: u32) -> Result<Term, Damaged> {
        self.hash_at(ordinal as usize)
    }

    fn hash_at(&self, ordinal: usize) -> Result<Term, Damaged> {
        if ordinal >= self.terms {
            return Err(Damaged);
        }
        Ok(u64::from_le_bytes(self.of_terms.value(ordinal * 8)?))
    }

    /// Number of accepted executions with a term, by its ordinal.
    pub(super) fn accepted_with(&self, ordinal: u32) -> Result<u32, Damaged> {
        self.of_term(1, ordinal as usize)
    }

    /// Ordinal of a term; `None` if no row has it.
    pub(super) fn find(&self, term: Term) -> Result<Option<u32>, Damaged> {
        let at = self.place(term)?;
        let is_found = at < self.terms && self.hash_at(at)? == term;
        Ok(is_found.then_some(at).and_then(|at| u32::try_from(at).ok()))
    }

    /// Number of smaller hashes. Hashes are evenly spread, so the place of one is nearly known.
    fn place(&self, term: Term) -> Result<usize, Damaged> {
        let guess = usize::try_from((u128::from(term) * self.terms as u128) >> 64).unwrap_or(0);
        let reach = 2 * self.terms.isqrt() + 8;
        let near = (guess.saturating_sub(reach), (guess + reach).min(self.terms));
        let is_below = near.0 == 0 || self.hash_at(near.0 - 1)? < term;
        let is_above = near.1 == self.terms || self.hash_at(near.1)? >= term;
        let (mut low, mut high) = if is_below && is_above {
            near
        } else {
            (0, self.terms)
        };
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.hash_at(middle)? < term {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Rows with a term, by its ordinal.
    pub(super) fn postings(&self, ordinal: u32) -> Result<Postings<'a>, Damaged> {
        let ordinal = ordinal as usize;
        let start = ordinal.checked_sub(1).map(|before| self.of_term(0, before));
        let range = start.transpose()?.unwrap_or(0) as usize..self.of_term(0, ordinal)? as usize;
        let bytes = self.postings.get(range).ok_or(Damaged)?;
        (short_hash(bytes) == self.of_term(2, ordinal)?)
            .then(|| Postings::unlimited(bytes))
            .ok_or(Damaged)
    }

    fn of_term(&self, column: usize, ordinal: usize) -> Result<u32, Damaged> {
        let at = self.terms * 8 + (column * self.terms + ordinal) * 4;
        Ok(u32::from_le_bytes(self.of_terms.value(at)?))
    }
}

/// Checksum of the checksums of the columns and of the terms.
pub(super) fn sum_of_sums(columns: &[u8], terms: &[u8]) -> u64 {
    xxh3_64_with_seed(terms, xxh3_64(columns))
}

/// Checksum of features or postings.
#[expect(
    clippy::cast_possible_truncation,
    reason = "half of the bits is enough to notice damage"
)]
pub(super) fn short_hash(bytes: &[u8]) -> u32 {
    xxh3_64(bytes) as u32
}
