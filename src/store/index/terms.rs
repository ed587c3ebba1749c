//! Derived tables from terms to the entries of a kind that contain them, one for each data file.
//!
//! A few reads find one entry among ten thousand, which is fast enough for a hook on every failing
//! call. A term is a number that the caller computes. If that computation changes, the `scheme`
//! must change too, and the table is rebuilt. It is also rebuilt if it does not match its file
//! exactly (inode, size, both times), and may be deleted at any time.
//!
//! On disk, little-endian: a header of 96 bytes with a checksum, `{ at: 8, length: 4 }` per entry,
//! then `{ term: 8, entry: 4 }` per posting, sorted by term. A damaged row leads to text that is
//! not valid JSON, and the entry counts as not found.

use std::cell::OnceCell;
use std::fs::File;

use memctl_files::{FileState, PositionedFile as _, json};

use crate::model::Kind;
use crate::store::files::counters::Counters;
use crate::store::files::data::offsets::{sealed, u32_at, u64_at, unsealed};
use crate::store::files::directory;
use crate::store::{DERIVED, DataFile, Entry, Error, Map, Scoped, TrustSnapshot};

/// Changes with the layout; older tables are rebuilt.
const MAGIC: [u8; 8] = *b"mctltrm2";
const HEADER: usize = 96;
const ROW: usize = 12;
/// Maximum length of an entry in bytes; a row with more is damaged.
const LONGEST: u32 = 64 << 20;

/// Index from terms to the entries of a kind.
#[derive(Debug)]
pub struct Terms {
    /// Tables of the files of the kind, the shared one first. Entries are numbered through all.
    tables: Vec<Table>,
    kind: Kind,
    store: Scoped,
    // Loaded only when an entry is found.
    trust_snapshot: OnceCell<TrustSnapshot>,
    /// Counters of this machine for the records of the shared file.
    counters: OnceCell<Counters>,
}

/// Index from terms to the entries of a file.
#[derive(Debug)]
struct Table {
    entries: u64,
    postings: u64,
    /// Mapped, or in memory once it was built.
    bytes: Map,
    data: Option<File>,
}

impl Scoped {
    /// Opens the term tables of a kind. `of` returns the terms of an entry's text; it is called for
    /// every entry if a table is rebuilt, and never otherwise. An entry without terms is never
    /// found.
    pub fn terms(
        &self,
        kind: Kind,
        scheme: u64,
        of: &dyn Fn(&[u8]) -> Vec<u64>,
    ) -> Result<Terms, Error> {
        // In this order, a record that is approved meanwhile is in one of them.
        let files = DataFile::of(kind).rev();
        let tables: Result<Vec<_>, _> = files.map(|file| self.table(file, scheme, of)).collect();
        let mut tables = tables?;
        tables.reverse();
        Ok(Terms {
            tables,
            kind,
            store: self.clone(),
            trust_snapshot: OnceCell::new(),
            counters: OnceCell::new(),
        })
    }

    fn table(
        &self,
        file: DataFile,
        scheme: u64,
        of: &dyn Fn(&[u8]) -> Vec<u64>,
    ) -> Result<Table, Error> {
        let path = self.directory().join(file.name());
        let table = |entries, postings, bytes, data| Table {
            entries,
            postings,
            bytes,
            data,
        };
        let Some(data) = directory::open_data(self.directory(), file.name())? else {
            return Ok(table(0, 0, Map::Memory(vec![0; HEADER]), None));
        };
        let now = FileState::of(&data).map_err(Error::io("read", &path))?;
        if let Some(saved) = Map::open(&self.directory().below(DERIVED), terms_name(file))
            && let Some((entries, postings)) = believed(&saved, &now, scheme)
        {
            return Ok(table(entries, postings, saved, Some(data)));
        }
        let snapshot = self.file(file).snapshot()?;
        let rows: Vec<_> = snapshot.rows().collect();
        let mut body = Vec::with_capacity(rows.len() * ROW);
        let mut postings: Vec<(u64, u32)> = Vec::new();
        for (number, row) in (0..).zip(&rows) {
            body.extend_from_slice(&row.at.to_le_bytes());
            body.extend_from_slice(&row.length.to_le_bytes());
            let terms = of(&snapshot.read(row)?);
            postings.extend(terms.into_iter().map(|term| (term, number)));
        }
        postings.sort_unstable();
        postings.dedup();
        for (term, number) in &postings {
            body.extend_from_slice(&term.to_le_bytes());
            body.extend_from_slice(&number.to_le_bytes());
        }
        let counts = [rows.len() as u64, postings.len() as u64];
        // A table is saved only for the state of the file that was read. Ignores failure, because
        // it can be rebuilt.
        let read = snapshot.file.as_ref().and_then(|f| FileState::of(f).ok());
        if let Some(read) = read.filter(|read| *read == snapshot.table.header.stamp) {
            let numbers = [scheme, counts[0], counts[1]];
            let header: [u8; HEADER] = sealed(MAGIC, &read, &numbers);
            directory::keep_derived(self.directory(), terms_name(file), &[&header, &body]);
        }
        let bytes = Map::Memory([&[0; HEADER][..], &body].concat());
        Ok(table(counts[0], counts[1], bytes, snapshot.file))
    }
}

/// Returns the name of a file's table, in the directory of derived files.
fn terms_name(file: DataFile) -> String {
    format!("{}.terms", file.derived_name())
}

impl Terms {
    /// Returns `true` if no entry has a term.
    pub fn is_blank(&self) -> bool {
        self.tables.iter().all(|table| table.postings == 0)
    }

    /// Returns the decision about records that count as this user's own word.
    pub fn trust_snapshot(&self) -> &TrustSnapshot {
        self.trust_snapshot
            .get_or_init(|| self.store.trust_snapshot())
    }

    /// Returns the numbers of the newest `limit` entries of each file that contain a term, oldest
    /// first, and the total number of such entries.
    pub fn holding(&self, term: u64, limit: usize) -> (Vec<u32>, u64) {
        let (mut numbers, mut total, mut before) = (Vec::new(), 0, 0);
        for table in &self.tables {
            let (found, count) = table.holding(term, limit);
            numbers.extend(found.into_iter().filter_map(|n| n.checked_add(before)));
            total += count;
            before = before.saturating_add(u32::try_from(table.entries).unwrap_or(u32::MAX));
        }
        (numbers, total)
    }

    /// Returns every term with the number of an entry that has it.
    pub fn postings(&self) -> impl Iterator<Item = (u64, u32)> {
        let mut before = 0_u32;
        self.tables.iter().flat_map(move |table| {
            let first = before;
            before = before.saturating_add(u32::try_from(table.entries).unwrap_or(u32::MAX));
            let postings = (0..table.postings).filter_map(|number| table.posting(number));
            postings.filter_map(move |(term, number)| Some((term, number.checked_add(first)?)))
        })
    }

    /// Returns an entry by its number; `None` if the caller may not see it or a table is damaged.
    pub fn entry(&self, number: u32) -> Option<Entry> {
        let mut number = u64::from(number);
        for (file, table) in DataFile::of(self.kind).zip(&self.tables) {
            if number < table.entries {
                let (text, offset) = table.entry(number)?;
                let id = json::string_field(&text, self.kind.id_field())?.into_owned();
                let mut entry = Entry {
                    kind: self.kind,
                    id,
                    text,
                    offset,
                };
                if !file.is_local {
                    let counters = || self.store.counters(file);
                    self.counters.get_or_init(counters).apply(&mut entry);
                }
                let visible = self.store.access().sees(self.kind, &entry.text);
                return visible.then_some(entry);
            }
            number -= table.entries;
        }
        None
    }
}

impl Table {
    fn holding(&self, term: u64, limit: usize) -> (Vec<u32>, u64) {
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

    /// Returns the text of an entry and its offset in the file.
    fn entry(&self, number: u64) -> Option<(Vec<u8>, u64)> {
        let (at, length) = self.row(number)?;
        if length > LONGEST {
            return None;
        }
        let mut text = vec![0; length as usize];
        self.data.as_ref()?.read_exact_at(&mut text, at).ok()?;
        Some((text, at))
    }

    fn posting(&self, number: u64) -> Option<(u64, u32)> {
        self.row(self.entries + number)
    }

    /// Returns a row: of an entry, or behind all entries of a posting.
    fn row(&self, number: u64) -> Option<(u64, u32)> {
        let at = HEADER + usize::try_from(number).ok()?.checked_mul(ROW)?;
        let row = self.bytes.get(at..)?.first_chunk::<ROW>()?;
        Some((u64_at(row, 0), u32_at(row, 8)))
    }
}

/// Returns the numbers of entries and postings of a saved table that matches this state of the
/// file.
fn believed(saved: &[u8], of: &FileState, scheme: u64) -> Option<(u64, u64)> {
    let (state, number) = unsealed(MAGIC, saved.first_chunk::<HEADER>()?)?;
    let (entries, postings) = (number(1), number(2));
    let body = entries.checked_add(postings)?.checked_mul(ROW as u64)?;
    let is_whole = saved.len() as u64 == body.checked_add(HEADER as u64)?;
    (state == *of && number(0) == scheme && is_whole).then_some((entries, postings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;
    use memctl_files::named;

    /// Each word of the error key is a term: its length and its first byte.
    fn of(text: &[u8]) -> Vec<u64> {
        let key = json::string_field(text, "error_key").unwrap_or_default();
        key.split(' ').map(term).collect()
    }

    fn term(word: &str) -> u64 {
        xxhash_rust::xxh3::xxh3_64(word.as_bytes())
    }

    fn store(keys: &[&str]) -> (tempfile::TempDir, Scoped) {
        let dir = tempfile::tempdir().unwrap();
        let entries: Vec<String> = (1..)
            .zip(keys)
            .map(|(i, key)| format!(r#"{{"procedure_id": "PROC-{i:03}", "error_key": "{key}"}}"#))
            .collect();
        let text = format!("{{\"entries\": [{}]}}", entries.join(",\n"));
        named::replace(&dir.path().join(Kind::Procedure.file()), text.as_bytes()).unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        (dir, store)
    }

    fn ids(store: &Scoped, word: &str) -> Vec<String> {
        let terms = store.terms(Kind::Procedure, 1, &of).unwrap();
        let (numbers, count) = terms.holding(term(word), usize::MAX);
        assert_eq!(count, numbers.len() as u64);
        let entries = numbers.into_iter().filter_map(|n| terms.entry(n));
        entries.map(|entry| entry.id).collect()
    }

    #[test]
    fn entries_are_found_by_their_terms_first_and_later() {
        let (dir, store) = store(&["disk full", "memory full", "full full"]);
        for _ in 0..2 {
            assert_eq!(ids(&store, "full"), ["PROC-001", "PROC-002", "PROC-003"]);
            assert_eq!(ids(&store, "disk"), ["PROC-001"]);
            assert_eq!(ids(&store, "quota"), [""; 0]);
            assert!(dir.path().join(".index/procedures.terms").is_file());
        }
        let terms = store
            .terms(Kind::Procedure, 1, &|_| unreachable!())
            .unwrap();
        assert_eq!(terms.holding(term("full"), 2), (vec![1, 2], 3));
        assert!(terms.entry(3).is_none());
        // Another scheme needs another table.
        let terms = store.terms(Kind::Procedure, 2, &|_| vec![7]).unwrap();
        assert_eq!(terms.holding(7, 9).1, 3);
    }

    #[test]
    fn a_changed_file_has_another_table() {
        let (dir, store) = store(&["disk full"]);
        assert_eq!(ids(&store, "disk"), ["PROC-001"]);
        let path = dir.path().join(Kind::Procedure.file());
        let text = r#"{"entries": [{"procedure_id": "PROC-009", "error_key": "disk torn"}]}"#;
        named::replace(&path, text.as_bytes()).unwrap();
        assert_eq!(ids(&store, "disk"), ["PROC-009"]);
        assert_eq!(ids(&store, "full"), [""; 0]);
    }

    #[test]
    fn a_damaged_table_is_made_again_or_finds_less() {
        let (dir, store) = store(&["disk full", "memory full"]);
        assert_eq!(ids(&store, "full").len(), 2);
        let path = dir.path().join(".index/procedures.terms");
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x40;
            named::replace(&path, &bytes).unwrap();
            let found = ids(&store, "full");
            assert!(found.len() <= 2, "{at}: {found:?}");
            if at < HEADER {
                assert_eq!(found.len(), 2, "{at}");
            }
            named::replace(&path, &whole[..at]).unwrap();
            assert_eq!(ids(&store, "full").len(), 2, "cut at {at}");
        }
    }

    #[test]
    fn a_memory_without_the_file_has_no_terms_and_gets_no_table() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path().join("none"), Scope::All);
        assert_eq!(ids(&store, "full"), [""; 0]);
        assert!(!dir.path().join("none").exists());
    }
}
