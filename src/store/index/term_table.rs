//! Term table of one data file.
//!
//! On disk, little-endian: a header of 104 bytes with a checksum, `{ at: 8, length: 4, hash of the text: 8,
//! facts }` per entry, then `{ term: 8, entry: 4 }` per posting, sorted by term. A damaged row leads to text
//! that is not valid JSON, and the entry counts as not found. Before an update, the whole table is checked.

use std::fs::File;

use memctl_files::{FileState, PositionedFile as _};
use xxhash_rust::xxh3::xxh3_64;

use crate::store::files::data::offsets::{sealed, u32_at, u64_at, unsealed};
use crate::store::files::directory;
use crate::store::index::terms::Scheme;
use crate::store::{DERIVED, DataFile, Error, Map, Row, Scoped, Snapshot};

/// Changes with the layout; older tables are rebuilt.
const MAGIC: [u8; 8] = *b"mctltrm3";
pub(super) const HEADER: usize = 104;
/// Length of the row of an entry, without its facts, and of a posting.
const ROW: usize = 20;
const POSTING: usize = 12;
/// Number of entries in a row that may be gone from a file without the later ones being read again.
const AHEAD: usize = 64;
/// Maximum length of an entry in bytes; a row with more is damaged.
const LONGEST: u32 = 64 << 20;

/// Index from terms to the entries of a file.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) entries: u64,
    pub(super) postings: u64,
    /// Number of bytes of the facts of an entry.
    width: usize,
    /// Mapped, or in memory once it was built.
    bytes: Map,
    data: Option<File>,
}

/// Returns the numbers of entries and postings of a file, and their rows. Reads only the entries that are not
/// in the `saved` table.
fn rows_of(
    snapshot: &Snapshot,
    saved: Option<&Table>,
    scheme: &Scheme<'_>,
) -> Result<(u64, u64, Vec<u8>), Error> {
    let rows: Vec<Row> = snapshot.rows().collect();
    let mut body = Vec::with_capacity(rows.len() * (ROW + scheme.width));
    let mut new = Vec::new();
    // The number that each known entry has now.
    let mut now: Vec<Option<u32>> = Vec::new();
    for (number, row) in (0_u32..).zip(&rows) {
        body.extend_from_slice(&row.at.to_le_bytes());
        body.extend_from_slice(&row.length.to_le_bytes());
        body.extend_from_slice(&row.key.to_le_bytes());
        let ahead_by = saved.and_then(|saved| {
            let ahead = (now.len() as u64..saved.entries).take(AHEAD);
            let mut ahead = ahead.filter_map(|place| saved.entry_row(place));
            ahead.position(|there| u64_at(there, 12) == row.key)
        });
        if let (Some(skipped), Some(saved)) = (ahead_by, saved) {
            now.resize(now.len() + skipped, None);
            body.extend_from_slice(saved.facts(now.len() as u64));
            now.push(Some(number));
        } else {
            let (terms, mut facts) = (scheme.of)(&snapshot.read(row)?);
            facts.resize(scheme.width, 0);
            body.extend_from_slice(&facts);
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
    Ok((rows.len() as u64, postings.len() as u64, body))
}

impl Table {
    /// Opens the table of a file, and brings it up to date.
    pub(super) fn of(store: &Scoped, file: DataFile, scheme: Scheme<'_>) -> Result<Self, Error> {
        let path = store.directory().join(file.name());
        let Some(data) = directory::open_data(store.directory(), file.name())? else {
            return Ok(Self {
                entries: 0,
                postings: 0,
                width: scheme.width,
                bytes: Map::Memory(vec![0; HEADER]),
                data: None,
            });
        };
        let now = FileState::of(&data).map_err(Error::io("read", &path))?;
        let saved = Map::open(&store.directory().below(DERIVED), terms_name(file));
        let saved = saved.and_then(|bytes| Self::open(bytes, scheme));
        let saved = match saved {
            Some((table, of)) if of == now => {
                let data = Some(data);
                return Ok(Self { data, ..table });
            }
            Some((table, _)) => Some(table).filter(Self::is_intact),
            None => None,
        };
        let snapshot = store.file(file).snapshot()?;
        let (entries, postings, body) = rows_of(&snapshot, saved.as_ref(), &scheme)?;
        // A table is saved only for the state of the file that was read. Ignores failure, because
        // it can be rebuilt.
        let read = snapshot.file.as_ref().and_then(|f| FileState::of(f).ok());
        if let Some(read) = read.filter(|read| *read == snapshot.table.header.stamp) {
            let numbers = [scheme.version, entries, postings, xxh3_64(&body)];
            let header: [u8; HEADER] = sealed(MAGIC, &read, &numbers);
            directory::keep_derived(store.directory(), terms_name(file), &[&header, &body]);
        }
        Ok(Self {
            entries,
            postings,
            width: scheme.width,
            bytes: Map::Memory([&[0; HEADER][..], &body].concat()),
            data: snapshot.file,
        })
    }

    pub(super) fn holding(&self, term: u64, limit: usize) -> (Vec<u32>, u64) {
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
        let entries = (from..end).filter_map(|i| self.posting(i));
        (entries.map(|(_, entry)| entry).collect(), end - first)
    }

    /// Returns a saved table of this scheme, and the state of the file that it is of.
    fn open(bytes: Map, scheme: Scheme<'_>) -> Option<(Self, FileState)> {
        let header: [u8; HEADER] = *bytes.first_chunk()?;
        let (of, number) = unsealed(MAGIC, &header)?;
        let (version, entries, postings) = (number(0), number(1), number(2));
        let rows = entries.checked_mul((ROW + scheme.width) as u64)?;
        let body = postings.checked_mul(POSTING as u64)?.checked_add(rows)?;
        let is_whole = bytes.len() as u64 == body.checked_add(HEADER as u64)?;
        let table = Self {
            entries,
            postings,
            width: scheme.width,
            bytes,
            data: None,
        };
        (version == scheme.version && is_whole).then_some((table, of))
    }

    /// Returns `true` if every row of a saved table is as it was written.
    fn is_intact(&self) -> bool {
        let header = self.bytes.first_chunk().and_then(|header| {
            let (_, number) = unsealed::<HEADER>(MAGIC, header)?;
            Some(number(3))
        });
        header == Some(xxh3_64(&self.bytes[HEADER..]))
    }

    /// Returns the text of an entry and its offset in the file.
    pub(super) fn entry(&self, number: u64) -> Option<(Vec<u8>, u64)> {
        let row = self.entry_row(number)?;
        let (at, length) = (u64_at(row, 0), u32_at(row, 8));
        if length > LONGEST {
            return None;
        }
        let mut text = vec![0; length as usize];
        self.data.as_ref()?.read_exact_at(&mut text, at).ok()?;
        Some((text, at))
    }

    pub(super) fn postings(&self) -> impl Iterator<Item = (u64, u32)> {
        (0..self.postings).filter_map(|number| self.posting(number))
    }

    fn posting(&self, number: u64) -> Option<(u64, u32)> {
        let first = HEADER + usize::try_from(self.entries).ok()? * (ROW + self.width);
        let at = usize::try_from(number).ok()?.checked_mul(POSTING)?;
        let posting = self.bytes.get(first + at..)?.get(..POSTING)?;
        Some((u64_at(posting, 0), u32_at(posting, 8)))
    }

    /// Returns the facts of an entry; none if the table is damaged.
    pub(super) fn facts(&self, number: u64) -> &[u8] {
        self.entry_row(number).map_or(&[], |row| &row[ROW..])
    }

    /// Returns the row of an entry, with its facts.
    fn entry_row(&self, number: u64) -> Option<&[u8]> {
        let length = ROW + self.width;
        let at = HEADER + usize::try_from(number).ok()?.checked_mul(length)?;
        self.bytes.get(at..)?.get(..length)
    }
}

/// Returns the name of a file's table, in the directory of derived files.
fn terms_name(file: DataFile) -> String {
    format!("{}.terms", file.derived_name())
}
