//! Index segment: some thousands of analysed documents, as bytes that are searched in place; and the part of
//! its documents that a ranking compares.
//!
//! ```text
//! header   88 bytes: magic, analysis, counts, offsets, checksums of the columns that every ranking reads
//!          and of the rows, earliest expiry time, checksum of the header
//! columns  length (4 bytes) of each document, then kind (1) of each
//! rows     38 bytes per document: key, created, expires (8 each), skill, domain, user (4 each), trust,
//!          note (1 each)
//! terms    16 bytes per term, in name order: end of its name, end of its postings, number of
//!          documents that contain it, checksum of name, postings and number
//! names    texts of the terms, concatenated
//! postings documents of each term, with frequencies: `varint(gap * 2 + more)`; if `more` is set,
//!          `varint(count * 2 + long)`; if `long` is set, the windows of a long document that hold the
//!          term: `varint(window)` for a count of 1, else `varint(bits)`
//! ```
//!
//! The windows are those of `vectors`.
//!
//! A search reads little of that: the columns, and rows only for a filter. All numbers are little-endian. Segments
//! are immutable. [`Segment::open`] rejects incomplete bytes; damage after the rows is detected when a term is
//! used. Segments hold no document texts.
//!
//! The rows are attributes of the documents, enough to filter by and to identify a document. The filter applies before
//! counting and ranking: excluded documents do not affect term rarity, so scores reveal nothing about them. What the
//! numbers stand for is deliberately absent.

use chrono::DateTime;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::vectors::{SlotLayout, Slots};

/// Changes with the layout above.
pub(super) const MAGIC: &[u8; 8] = b"mctlseg6";
/// Changes with the word analysis in `text`, which invalidates all older segments.
pub const ANALYSIS: u32 = 1;
/// Numbers between magic and checksum.
pub(super) const NUMBERS: usize = 9;
pub(super) const HEADER: usize = 8 + NUMBERS * 8 + 8;
/// Bytes of the columns, and of a row, per document.
pub(super) const COLUMNS: usize = 4 + 1;
pub(super) const ROW: usize = 3 * 8 + 3 * 4 + 2;
pub(super) const TERM: usize = 16;

/// Error for bytes that fail a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the search index is damaged")]
pub struct Damaged;

/// Opened segment.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    words: u64,
    columns: &'a [u8],
    lengths: &'a [[u8; 4]],
    kinds: &'a [u8],
    rows: &'a [[u8; ROW]],
    /// Checksums of the columns and of the rows.
    sums: [u64; 2],
    soonest: i64,
    terms: &'a [u8],
    names: &'a [u8],
    postings: &'a [u8],
}

/// Frequency of a term in one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Posting {
    pub(super) document: u32,
    pub(super) count: u32,
    /// Windows of a long document with the term, as bits; 0 for a short document.
    pub(super) windows: u64,
}

impl<'a> Segment<'a> {
    /// Opens a segment; `None` if the bytes are incomplete or of another version.
    pub fn open(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
        let number = |i: usize| u64_at(header, 8 + i * 8);
        let count = |i: usize| usize::try_from(number(i)).ok();
        let intact = number(NUMBERS) == xxh3_64(&header[..HEADER - 8]);
        if !header.starts_with(MAGIC) || number(0) != u64::from(ANALYSIS) || !intact {
            return None;
        }
        let documents = count(1)?;
        let (columns, rest) = rest.split_at_checked(documents.checked_mul(COLUMNS)?)?;
        let (rows, rest) = rest.split_at_checked(documents.checked_mul(ROW)?)?;
        let (terms, rest) = rest.split_at_checked(count(2)?.checked_mul(TERM)?)?;
        let (names, postings) = rest.split_at_checked(count(4)?)?;
        let (lengths, kinds) = columns.split_at(documents * 4);
        (postings.len() == count(5)?).then_some(Self {
            words: number(3),
            columns,
            lengths: lengths.as_chunks().0,
            kinds,
            rows: rows.as_chunks().0,
            sums: [number(6), number(7)],
            soonest: number(8).cast_signed(),
            terms,
            names,
            postings,
        })
    }

    /// Verifies the checksums of columns and rows. Terms are verified when they are used.
    ///
    /// # Errors
    ///
    /// Returns [`Damaged`] on a mismatch.
    pub fn verify(&self) -> Result<(), Damaged> {
        self.verify_for_ranking()?;
        let intact = xxh3_64(self.rows.as_flattened()) == self.sums[1];
        intact.then_some(()).ok_or(Damaged)
    }

    /// Verifies only the columns, which a ranking without a filter reads: about a tenth of all.
    ///
    /// # Errors
    ///
    /// Returns [`Damaged`] on a mismatch.
    pub fn verify_for_ranking(&self) -> Result<(), Damaged> {
        let intact = xxh3_64(self.columns) == self.sums[0];
        intact.then_some(()).ok_or(Damaged)
    }

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Returns true if the segment has no documents.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Total number of words in all documents.
    pub(super) fn words(&self) -> u64 {
        self.words
    }

    /// Attributes of a document.
    pub fn attributes(&self, document: usize) -> Attributes {
        let row = self.rows.get(document).unwrap_or(&[0; ROW]);
        Attributes {
            key: u64_at(row, 0),
            created: u64_at(row, 8).cast_signed(),
            expires: u64_at(row, 16).cast_signed(),
            skill: u32_at(row, 24),
            domain: u32_at(row, 28),
            user: u32_at(row, 32),
            kind: self.kind(document),
            trust: row[36],
            note: row[37],
        }
    }

    /// Key of a document: identifies the version of its record.
    pub fn key(&self, document: usize) -> u64 {
        self.rows.get(document).map_or(0, |row| u64_at(row, 0))
    }

    /// Number of a document's kind.
    pub fn kind(&self, document: usize) -> u8 {
        self.kinds.get(document).copied().unwrap_or_default()
    }

    /// Number of words in each document, as four bytes each.
    pub(super) fn lengths(&self) -> &'a [[u8; 4]] {
        self.lengths
    }

    /// Places of the vectors of an embedder that reads windows.
    pub fn slot_layout(&self) -> SlotLayout {
        let lengths = self.lengths.iter();
        SlotLayout::of(lengths.map(|words| u32::from_le_bytes(*words)))
    }

    /// Number of words in a document.
    pub(super) fn length(&self, document: usize) -> u32 {
        let length = self.lengths.get(document);
        length.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// Returns true if the filter certainly admits every document, without checking each.
    pub fn admits_all(&self, filter: &Admission) -> bool {
        filter.asks_for_nothing() && self.soonest > filter.now
    }

    /// Clears `admitted` for documents that the filter excludes.
    pub fn admit(&self, filter: &Admission, admitted: &mut [bool]) {
        for (document, admitted) in admitted.iter_mut().enumerate() {
            *admitted = *admitted && filter.admits(&self.attributes(document));
        }
    }

    /// Number of terms.
    pub(super) fn terms(&self) -> usize {
        self.terms.len() / TERM
    }

    /// Name of a term.
    pub(super) fn name(&self, term: usize) -> &'a [u8] {
        self.names.get(self.span(term, 0)).unwrap_or_default()
    }

    /// Postings of a term, by its number.
    pub(super) fn postings(&self, term: usize) -> Result<Postings<'a>, Damaged> {
        let bytes = self.postings.get(self.span(term, 4)).ok_or(Damaged)?;
        let row = term * TERM;
        let documents = u32_at(self.terms, row + 8);
        if check(self.name(term), bytes, documents) != u32_at(self.terms, row + 12) {
            return Err(Damaged);
        }
        Ok(Postings {
            bytes,
            left: documents,
            next: 0,
        })
    }

    /// Postings of a word; `None` if no document contains it.
    pub(super) fn find(&self, word: &str) -> Result<Option<Postings<'a>>, Damaged> {
        let (mut low, mut high) = (0, self.terms());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.name(middle).cmp(word.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.postings(middle).map(Some),
            }
        }
        // A damaged name misleads the search. It then lies next to the word's position, where its
        // checksum reveals it.
        for neighbour in low.saturating_sub(1)..self.terms().min(low + 1) {
            self.postings(neighbour)?;
        }
        Ok(None)
    }

    /// Byte range of a term in the names (field 0) or the postings (field 4).
    fn span(&self, term: usize, field: usize) -> std::ops::Range<usize> {
        let end = |term: usize| u32_at(self.terms, term * TERM + field) as usize;
        let start = term.checked_sub(1).map_or(0, end);
        start..end(term).max(start)
    }
}

/// Postings of a term, in document order.
#[derive(Debug, Clone)]
pub(super) struct Postings<'a> {
    bytes: &'a [u8],
    left: u32,
    next: u32,
}

impl Postings<'_> {
    /// Number of documents that contain the term.
    pub(super) fn documents(&self) -> usize {
        self.left as usize
    }
}

impl Iterator for Postings<'_> {
    type Item = Posting;

    fn next(&mut self) -> Option<Posting> {
        self.left = self.left.checked_sub(1)?;
        decode(&mut self.bytes, &mut self.next)
    }

    // The state is in registers, which makes scoring a frequent word several times as fast.
    #[inline]
    fn fold<B, F: FnMut(B, Posting) -> B>(self, init: B, mut add: F) -> B {
        let (mut bytes, mut next) = (self.bytes, self.next);
        let mut all = init;
        for _ in 0..self.left {
            let Some(posting) = decode(&mut bytes, &mut next) else {
                break;
            };
            all = add(all, posting);
        }
        all
    }
}

/// Takes a posting off the bytes. `next` is the document after the last one.
#[expect(
    clippy::inline_always,
    reason = "a call with its result in memory takes longer than the work"
)]
#[inline(always)]
fn decode(bytes: &mut &[u8], next: &mut u32) -> Option<Posting> {
    let head = varint(bytes)?;
    let document = next.wrapping_add(head >> 1);
    *next = document.wrapping_add(1);
    let (count, windows) = if head & 1 == 0 {
        (1, 0)
    } else {
        let number = varint(bytes)?;
        let windows = match number & 1 {
            0 => 0,
            _ => windows(bytes, number >> 1)?,
        };
        (number >> 1, windows)
    };
    Some(Posting {
        document,
        count,
        windows,
    })
}

/// Takes the windows of a posting with this count off the bytes.
#[cold]
fn windows(bytes: &mut &[u8], count: u32) -> Option<u64> {
    match count {
        1 => 1u64.checked_shl(varint(bytes)?),
        _ => long_varint(bytes),
    }
}

#[inline]
fn varint(bytes: &mut &[u8]) -> Option<u32> {
    // Most gaps and counts are small.
    if let Some((byte, rest)) = bytes.split_first().filter(|(byte, _)| **byte < 0x80) {
        *bytes = rest;
        return Some(u32::from(*byte));
    }
    u32::try_from(long_varint(bytes)?).ok()
}

#[cold]
fn long_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Checksum of a term.
#[expect(
    clippy::cast_possible_truncation,
    reason = "half of the bits is enough to notice damage"
)]
pub(super) fn check(name: &[u8], postings: &[u8], documents: u32) -> u32 {
    xxh3_64_with_seed(postings, xxh3_64(name) ^ u64::from(documents)) as u32
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let chunk = bytes.get(at..).and_then(<[u8]>::first_chunk);
    chunk.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let chunk = bytes.get(at..).and_then(<[u8]>::first_chunk);
    chunk.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Segment with its vectors and admitted documents.
#[derive(Debug)]
pub struct Part<'a> {
    /// Words and attributes of the documents.
    pub segment: Segment<'a>,
    /// Vectors, if there are any.
    pub vectors: Option<Slots<'a>>,
    /// One value per document; `None` admits all.
    pub admitted: Option<Vec<bool>>,
    /// Number of the first document among all; set by `Ranker::new`.
    pub(super) start: u32,
}

impl<'a> Part<'a> {
    /// Part with all documents of a segment.
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

    /// Number of admitted documents.
    pub(super) fn documents(&self) -> usize {
        match &self.admitted {
            None => self.segment.len(),
            Some(admitted) => admitted.iter().filter(|admitted| **admitted).count(),
        }
    }

    pub(super) fn admits(&self, document: usize) -> bool {
        let value = |admitted: &Vec<bool>| admitted.get(document).copied().unwrap_or(false);
        self.admitted.as_ref().is_none_or(value) && document < self.segment.len()
    }
}

/// Number of kinds that documents can have.
pub const KINDS: usize = 16;

/// Attributes of a document, apart from its words. The default is for rankings without a filter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Identifies this version of this record.
    pub key: u64,
    /// Creation time in seconds since 1970; [`i64::MIN`] if unknown.
    pub created: i64,
    /// Expiry time in seconds since 1970; [`i64::MAX`] if the document does not expire.
    pub expires: i64,
    /// [`name_hash`] of `domain/skill`; 0 for none.
    pub skill: u32,
    /// [`name_hash`] of the domain; 0 for none.
    pub domain: u32,
    /// [`name_hash`] of the user; 0 for none.
    pub user: u32,
    /// Number of the kind, below [`KINDS`].
    pub kind: u8,
    /// Trust level, from 0.
    pub trust: u8,
    /// Memory type, from 1; 0 for none.
    pub note: u8,
}

/// Seconds since 1970 of an RFC 3339 time; `None` if it does not parse.
pub fn seconds(time: &str) -> Option<i64> {
    let parsed = DateTime::parse_from_rfc3339(time).ok()?;
    Some(parsed.timestamp())
}

/// Hash for comparing skills and domains, never 0. About one name in 2³² collides, so exact access
/// checks must compare the record itself.
#[expect(clippy::cast_possible_truncation, reason = "half of the bits is enough for a filter")]
pub fn name_hash(name: &str) -> u32 {
    (xxh3_64(name.as_bytes()) as u32).max(1)
}

/// Conditions for a document to be found. The default admits everything that expires after 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Admission {
    /// Current time in seconds since 1970; excludes documents expired by then.
    pub now: i64,
    /// Required kind.
    pub kind: Option<u8>,
    /// Required skill.
    pub skill: Option<u32>,
    /// Allowed domains; `None` for all.
    pub domains: Option<Vec<u32>>,
    /// Restriction to one user.
    pub own: Option<UserFilter>,
    /// Required memory type.
    pub note: Option<u8>,
    /// Minimum trust.
    pub trust: u8,
    /// Earliest creation time, in seconds since 1970.
    pub since: Option<i64>,
    /// End of the creation time range (exclusive), in seconds since 1970.
    pub until: Option<i64>,
}

/// Restriction to one user's documents, for kinds that have a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserFilter {
    /// The kinds that have a user.
    pub kinds: [bool; KINDS],
    /// `None` matches no document of such a kind.
    pub user: Option<u32>,
}

impl UserFilter {
    /// Returns true if a document belongs to the user and has no domain: it is then visible in
    /// every non-empty scope.
    fn is_in_every_domain(&self, document: &Attributes) -> bool {
        let has_user = self.kinds.get(usize::from(document.kind)) == Some(&true);
        has_user && document.domain == 0 && document.skill == 0 && self.user == Some(document.user)
    }

    fn admits(&self, document: &Attributes) -> bool {
        let has_user = self.kinds.get(usize::from(document.kind));
        has_user == Some(&false) || self.user == Some(document.user)
    }
}

impl Admission {
    /// Returns true if every document that has not expired is admitted.
    fn asks_for_nothing(&self) -> bool {
        let nothing = Self {
            now: self.now,
            ..Self::default()
        };
        *self == nothing
    }

    /// Returns true if a document may be found.
    pub fn admits(&self, document: &Attributes) -> bool {
        document.expires > self.now
            && document.trust >= self.trust
            && self.own.as_ref().is_none_or(|own| own.admits(document))
            && self.kind.is_none_or(|kind| document.kind == kind)
            && self.skill.is_none_or(|skill| document.skill == skill)
            && self.note.is_none_or(|note| document.note == note)
            && self.since.is_none_or(|since| document.created >= since)
            // An unknown creation time does not count as before `until`.
            && self.until.is_none_or(|until| document.created < until && document.created > i64::MIN)
            && self
                .domains
                .as_ref()
                .is_none_or(|domains| {
                    let own = self.own.as_ref().filter(|_| !domains.is_empty());
                    domains.contains(&document.domain)
                        || own.is_some_and(|own| own.is_in_every_domain(document))
                })
    }
}
