//! Term table of one data file.
//!
//! On disk, little-endian: a header of 104 bytes with a checksum, the hash of the text of each entry (8 bytes), then
//! `{ term: 8, entry: 4 }` per posting, sorted by term. Damage to these leads to other entries, which the caller
//! compares. Before an update, the whole table is checked.

use memctl_files::FileState;
use xxhash_rust::xxh3::xxh3_64;

use crate::store::files::data::offsets::{sealed, u32_at, u64_at, unsealed};
use crate::store::files::directory;
use crate::store::{DERIVED, DataFile, Error, Map, Row, Scoped, Snapshot};

/// Changes with the layout; older tables are rebuilt.
const MAGIC: [u8; 8] = *b"mctltrm4";
pub(super) const HEADER: usize = 104;
/// Length of the hash of an entry, and of a posting.
const KEY: usize = 8;
const POSTING: usize = 12;
/// Number of entries in a row that may be gone from a file without the later ones being read again.
const AHEAD: usize = 64;

/// Index from terms to the entries of a file.
#[derive(Debug)]
pub(super) struct Table {
    entries: u64,
    pub(super) postings: u64,
    /// Mapped, or in memory once it was built.
    bytes: Map,
}

/// Returns the hashes and the postings of a file, and the number of the postings. Reads only the entries that are not
/// in the `saved` table.
fn body_of(
    snapshot: &Snapshot,
    saved: Option<&Table>,
    terms_of: &dyn Fn(&[u8]) -> Vec<u64>,
) -> Result<(Vec<u8>, u64), Error> {
    let rows: Vec<Row> = snapshot.rows().collect();
    let mut body = Vec::with_capacity(rows.len() * KEY);
    let mut new = Vec::new();
    // The number that each known entry has now.
    let mut now: Vec<Option<u32>> = Vec::new();
    for (number, row) in (0_u32..).zip(&rows) {
        body.extend_from_slice(&row.key.to_le_bytes());
        let ahead_by = saved.and_then(|saved| {
            let ahead = (now.len() as u64..saved.entries).take(AHEAD);
            let mut ahead = ahead.map(|place| saved.key(place));
            ahead.position(|key| key == Some(row.key))
        });
        if let Some(skipped) = ahead_by {
            now.resize(now.len() + skipped, None);
            now.push(Some(number));
        } else {
            let terms = terms_of(&snapshot.read(row)?);
            new.extend(terms.into_iter().map(|term| (term, number)));
        }
    }
    let mut postings: Vec<(u64, u32)> = Vec::new();
    for (term, place) in saved.into_iter().flat_map(Table::postings) {
        let number = now.get(place as usize).copied().flatten();
        postings.extend(number.map(|number| (term, number)));
    }
    postings.append(&mut new);
    // Stable, which is fast on the sorted ones before the new ones.
    postings.sort_unstable();
    postings.dedup();
    for (term, number) in &postings {
        body.extend_from_slice(&term.to_le_bytes());
        body.extend_from_slice(&number.to_le_bytes());
    }
    Ok((body, postings.len() as u64))
}

impl Table {
    /// Opens the table of a file, and brings it up to date.
    pub(super) fn of(
        store: &Scoped,
        snapshot: &Snapshot,
        version: u64,
        terms_of: &dyn Fn(&[u8]) -> Vec<u64>,
    ) -> Result<Self, Error> {
        let name = terms_name(snapshot.of);
        let stamp = snapshot.table.header.stamp;
        let is_there = snapshot.file.is_some();
        let saved = is_there.then(|| Map::open(&store.directory().below(DERIVED), &name));
        let saved = saved.flatten();
        let saved = match saved.and_then(|bytes| Self::open(bytes, version)) {
            Some((table, of)) if of == stamp => return Ok(table),
            Some((table, _)) => Some(table).filter(Self::is_intact),
            None => None,
        };
        let (body, postings) = body_of(snapshot, saved.as_ref(), terms_of)?;
        let entries = snapshot.table.len() as u64;
        // A table is saved only for the state of the file that was read. Ignores failure, because
        // it can be rebuilt.
        let read = snapshot.file.as_ref().and_then(|f| FileState::of(f).ok());
        if read == Some(stamp) {
            let numbers = [version, entries, postings, xxh3_64(&body)];
            let header: [u8; HEADER] = sealed(MAGIC, &stamp, &numbers);
            directory::keep_derived(store.directory(), &name, &[&header, &body]);
        }
        Ok(Self {
            entries,
            postings,
            bytes: Map::Memory([&[0; HEADER][..], &body].concat()),
        })
    }

    /// Returns the newest `limit` entries that contain a term, oldest first.
    pub(super) fn holding(&self, term: u64, limit: usize) -> impl Iterator<Item = u32> {
        let below = |bound: u64, or_equal: bool| {
            let (mut low, mut high) = (0, self.postings);
            while low < high {
                let middle = low.midpoint(high);
                let found = self.posting(middle).map_or(u64::MAX, |(term, _)| term);
                if found < bound || (or_equal && found == bound) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            low
        };
        let (first, end) = (below(term, false), below(term, true));
        let from = end.saturating_sub(limit as u64).max(first);
        let found = (from..end).filter_map(|i| self.posting(i));
        found.map(|(_, entry)| entry)
    }

    /// Returns a saved table of this version, and the state of the file that it is of.
    fn open(bytes: Map, version: u64) -> Option<(Self, FileState)> {
        let header: [u8; HEADER] = *bytes.first_chunk()?;
        let (of, number) = unsealed(MAGIC, &header)?;
        let (entries, postings) = (number(1), number(2));
        let keys = entries.checked_mul(KEY as u64)?;
        let body = postings.checked_mul(POSTING as u64)?.checked_add(keys)?;
        let is_whole = bytes.len() as u64 == body.checked_add(HEADER as u64)?;
        let is_ours = number(0) == version && is_whole;
        let table = Self {
            entries,
            postings,
            bytes,
        };
        is_ours.then_some((table, of))
    }

    /// Returns `true` if every byte of a saved table is as it was written.
    fn is_intact(&self) -> bool {
        let header = self.bytes.first_chunk().and_then(|header| {
            let (_, number) = unsealed::<HEADER>(MAGIC, header)?;
            Some(number(3))
        });
        header == Some(xxh3_64(&self.bytes[HEADER..]))
    }

    pub(super) fn postings(&self) -> impl Iterator<Item = (u64, u32)> {
        (0..self.postings).filter_map(|number| self.posting(number))
    }

    fn posting(&self, number: u64) -> Option<(u64, u32)> {
        let first = HEADER + usize::try_from(self.entries).ok()? * KEY;
        let at = usize::try_from(number).ok()?.checked_mul(POSTING)?;
        let posting = self.bytes.get(first + at..)?.get(..POSTING)?;
        Some((u64_at(posting, 0), u32_at(posting, 8)))
    }

    /// Returns the hash of the text of an entry.
    fn key(&self, number: u64) -> Option<u64> {
        let at = HEADER + usize::try_from(number).ok()?.checked_mul(KEY)?;
        Some(u64_at(self.bytes.get(at..)?.get(..KEY)?, 0))
    }
}

/// Returns the name of a file's table, in the directory of derived files.
fn terms_name(file: DataFile) -> String {
    format!("{}.terms", file.derived_name())
}
