//! Derived data, which can be rebuilt at any time.
//!
//! - Directories of derived files, with one writer at a time.
//! - Positions of entries.
//! - [`Terms`]: the entries that contain a term.
//! - [`SeenTexts`]: digests of texts in memory, so that a server need not read all notes for each new one.
//!
//! A file is written once under a unique name, then memory-mapped by any reader. One file, the manifest, names
//! the valid files and is replaced as a whole, so a reader has a consistent state. If a listed file is missing,
//! it was replaced; reading the manifest again helps.
//!
//! Deliberately absent: the meaning of the files, and waiting. A process that does not get the lock
//! does not save.
//!
//! Positions are not limited by the access filter, because derived data covers all records and is filtered on
//! use. Only [`Positions::entry`], which returns a record, applies the filter.
//!
//! There is a table of terms for each data file. A few reads find one entry among ten thousand, which is fast
//! enough for a hook on every failing call. A term is a number that the caller computes. If that computation
//! changes, the `version` must change too, and the table is rebuilt. A table that does not match its file exactly
//! (inode, size, both times) is updated: only entries with a new text are read. It may be deleted at any time.
//!
//! On disk, little-endian: a header of 104 bytes with a checksum, the hash of the text of each entry (8 bytes), then
//! `{ term: 8, entry: 4 }` per posting, sorted by term. Damage to these leads to other entries, which the caller
//! compares. Before an update, the whole table is checked.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::sync::{Mutex, PoisonError};

use memctl_files::json::string_field;
use memctl_files::{Directory, FileState};
use xxhash_rust::xxh3::xxh3_64;

use crate::model::Kind;
use crate::store::files::counters::Counters;
use crate::store::files::data::offsets::{sealed, u32_at, u64_at, unsealed};
use crate::store::files::{Map, directory};
use crate::store::{
    AccessFilter, DERIVED, DataFile, Entry, Error, Problem, Scoped, Snapshot, TrustSnapshot,
};

const LOCK: &str = "lock";
const LIST: &str = "list.json";
/// Maximum size of a list in bytes: thousands of names.
const LONGEST_LIST: u64 = 64 << 20;

/// A directory of derived files.
#[derive(Debug)]
pub struct Derived {
    memory: Directory,
    directory: Directory,
}

/// Exclusive write access to a directory of derived files.
#[derive(Debug)]
pub struct DerivedWriter {
    directory: Directory,
    // Closing the file releases the lock.
    _lock: File,
}

impl Scoped {
    /// Returns the directory of derived files with this name. Its content may exceed the caller's
    /// scope.
    pub fn derived(&self, name: &str) -> Derived {
        Derived {
            memory: self.directory().clone(),
            directory: self.directory().below(DERIVED).below(name),
        }
    }
}

impl Derived {
    /// Returns the list of valid files, as last written.
    pub fn list(&self) -> Option<Vec<u8>> {
        self.directory.read(LIST, LONGEST_LIST).ok().flatten()
    }

    /// Returns the same with an open handle, so that each of many files takes one call; the same as
    /// before if the directory cannot be opened.
    #[must_use]
    pub fn hold(self) -> Self {
        let directory = self.directory.hold();
        Self {
            directory: directory.unwrap_or(self.directory),
            ..self
        }
    }

    /// Maps a file into memory.
    pub fn map(&self, name: &str) -> Option<Map> {
        Map::open(&self.directory, name)
    }

    /// Returns write access, or `None` if another process has it or the memory directory is missing
    /// or read-only.
    pub fn writer(&self) -> Option<DerivedWriter> {
        if !self.memory.is_there() {
            return None;
        }
        self.directory.create().ok()?;
        let lock = self.directory.open_or_create(LOCK).ok()?;
        lock.try_lock().ok()?;
        Some(DerivedWriter {
            directory: self.directory.clone(),
            _lock: lock,
        })
    }
}

impl DerivedWriter {
    /// Writes a file from these parts, under a unique name. Returns `false` on failure, which is
    /// harmless for derived data.
    pub fn write(&self, name: &str, parts: &[&[u8]]) -> bool {
        self.directory.replace_derived(name, parts).is_ok()
    }

    /// Replaces the list, and removes every file that it does not name.
    pub fn keep(&self, list: &[u8], files: &HashSet<String>) -> bool {
        let replaced = self.directory.replace_derived(LIST, &[list]).is_ok();
        if replaced {
            for found in self.directory.list().unwrap_or_default() {
                let name = found.name.to_string_lossy();
                if name != LIST && name != LOCK && !files.contains(&*name) {
                    drop(self.directory.remove(&found.name));
                }
            }
        }
        replaced
    }
}

/// Flag in the place of an entry of the local file. The largest place is kept free for the caller.
const LOCAL: u32 = 1 << 31;

/// Returns what the number of an entry in its file is combined with to its place.
fn flag_of(file: &Snapshot) -> u32 {
    if file.of.is_local { LOCAL } else { 0 }
}

/// Entries of a kind at one moment. Each has a place, which stays while the files only grow.
#[derive(Debug)]
pub struct Positions {
    kind: Kind,
    access: AccessFilter,
    /// The files of the kind, the shared one first.
    files: Vec<Snapshot>,
}

impl Scoped {
    /// Returns the current positions of all entries of a kind.
    pub fn positions(&self, kind: Kind) -> Result<Positions, Error> {
        Ok(Positions {
            kind,
            access: self.access().clone(),
            files: self.snapshots(kind)?,
        })
    }
}

impl Positions {
    /// Returns a number and the number of entries for each file. The first is constant while entries
    /// are only appended to that file, so that indexes stay valid.
    pub fn generations(&self) -> impl Iterator<Item = (u64, usize)> {
        self.files
            .iter()
            .map(|file| (file.table.header.generation, file.table.len()))
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.files.iter().map(|file| file.table.len()).sum()
    }

    /// Returns `true` if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the places of all entries, each file oldest first.
    pub fn places(&self) -> impl Iterator<Item = u32> {
        self.places_behind(&[0, 0])
    }

    /// Returns the places of the entries of each file behind its first `covered` ones.
    pub fn places_behind(&self, covered: &[usize]) -> impl Iterator<Item = u32> {
        let covered = covered.iter().copied().chain(std::iter::repeat(0));
        let files = self.files.iter().zip(covered);
        files.flat_map(|(file, covered)| {
            let flag = flag_of(file);
            let rows = (covered..file.table.len()).map_while(|row| u32::try_from(row).ok());
            rows.take_while(|row| *row < LOCAL - 1)
                .map(move |row| row | flag)
        })
    }

    /// Returns the problems of the files; empty if no scan was needed.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.files.iter().flat_map(|file| &file.problems)
    }

    /// Returns the place of every entry and a hash of its text, which identifies its version. In the
    /// order of [`Self::places`].
    pub fn keys(&self) -> Vec<(u32, u64)> {
        let keys = self
            .files
            .iter()
            .flat_map(Snapshot::rows)
            .map(|row| row.key);
        self.places().zip(keys).collect()
    }

    /// Returns the key and the entry at a place, without the access filter. The id may be empty.
    pub fn any_entry(&self, place: u32) -> Result<Option<(u64, Entry)>, Error> {
        let is_local = place & LOCAL != 0;
        let file = self.files.iter().find(|file| file.of.is_local == is_local);
        let Some(file) = file else {
            return Ok(None);
        };
        let Some(row) = file.table.get((place & !LOCAL) as usize) else {
            return Ok(None);
        };
        let entry = file.entry(&row)?;
        Ok(Some((row.key, entry)))
    }

    /// Returns the key and the entry at a place, if the caller may see it.
    pub fn entry(&self, place: u32) -> Result<Option<(u64, Entry)>, Error> {
        let entry = self.any_entry(place)?;
        Ok(entry.filter(|(_, entry)| self.access.sees(self.kind, &entry.text)))
    }
}

/// Index from terms to the entries of a kind. Entries have the places of [`Positions`].
#[derive(Debug)]
pub struct Terms {
    positions: Positions,
    /// Tables of the files of the kind, in their order.
    tables: Vec<Table>,
    store: Scoped,
    // Loaded only when an entry is found.
    trust_snapshot: OnceCell<TrustSnapshot>,
    /// Counters of this machine for the records of the shared file.
    counters: OnceCell<Counters>,
}

impl Scoped {
    /// Opens the term tables of a kind. `of` returns the terms of an entry's text; it is called for each text that a
    /// table does not know yet, and never otherwise. An entry without terms is never found.
    pub fn terms(
        &self,
        kind: Kind,
        version: u64,
        of: &dyn Fn(&[u8]) -> Vec<u64>,
    ) -> Result<Terms, Error> {
        let positions = self.positions(kind)?;
        let files = positions.files.iter();
        let tables = files.map(|file| Table::of(self, file, version, of));
        Ok(Terms {
            tables: tables.collect::<Result<_, _>>()?,
            positions,
            store: self.clone(),
            trust_snapshot: OnceCell::new(),
            counters: OnceCell::new(),
        })
    }
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

    /// Returns each table with what its numbers are combined with to a place.
    fn tables(&self) -> impl Iterator<Item = (u32, &Table)> {
        let flags = self.positions.files.iter().map(flag_of);
        flags.zip(&self.tables)
    }

    /// Returns the places of the newest `limit` entries of each file that contain a term, oldest first.
    pub fn holding(&self, term: u64, limit: usize) -> Vec<u32> {
        let found = self.tables().flat_map(|(flag, table)| {
            let found = table.holding(term, limit);
            found.map(move |number| number | flag)
        });
        found.collect()
    }

    /// Returns every term with the place of an entry that has it.
    pub fn postings(&self) -> impl Iterator<Item = (u64, u32)> {
        self.tables().flat_map(|(flag, table)| {
            let postings = table.postings();
            postings.map(move |(term, number)| (term, number | flag))
        })
    }

    /// Returns the entry at a place; `None` if the caller may not see it or a table is damaged.
    pub fn entry(&self, place: u32) -> Option<Entry> {
        let (_, mut entry) = self.positions.any_entry(place).ok()??;
        if !entry.is_local {
            let shared = DataFile::shared(entry.kind);
            let counters = || self.store.counters(shared);
            self.counters.get_or_init(counters).apply(&mut entry);
        }
        self.store.admits(&entry).then_some(entry)
    }
}

/// Changes with the layout; older tables are rebuilt.
const MAGIC: [u8; 8] = *b"mctltrm4";
const HEADER: usize = 104;
/// Length of the hash of an entry, and of a posting.
const KEY: usize = 8;
const POSTING: usize = 12;

/// Index from terms to the entries of a file.
#[derive(Debug)]
struct Table {
    entries: u64,
    postings: u64,
    /// Hash of what is behind the header.
    sum: u64,
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
    let mut body = Vec::with_capacity(snapshot.table.len() * KEY);
    let mut known: HashMap<u64, u32> = saved.into_iter().flat_map(Table::keys).collect();
    // The number that each known entry has now.
    let mut now = HashMap::with_capacity(known.len());
    let mut new = Vec::new();
    for (number, row) in (0_u32..).zip(snapshot.rows()) {
        body.extend_from_slice(&row.key.to_le_bytes());
        if let Some(place) = known.remove(&row.key) {
            now.insert(place, number);
        } else {
            let terms = terms_of(&snapshot.read(&row)?);
            new.extend(terms.into_iter().map(|term| (term, number)));
        }
    }
    let old = saved.into_iter().flat_map(Table::postings);
    let old = old.filter_map(|(term, place)| Some((term, *now.get(&place)?)));
    let mut postings: Vec<(u64, u32)> = old.chain(new).collect();
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
    fn of(
        store: &Scoped,
        snapshot: &Snapshot,
        version: u64,
        terms_of: &dyn Fn(&[u8]) -> Vec<u64>,
    ) -> Result<Self, Error> {
        let name = format!("{}.terms", snapshot.of.derived_name());
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
        let (entries, sum) = (snapshot.table.len() as u64, xxh3_64(&body));
        // A table is saved only for the state of the file that was read. Ignores failure, because
        // it can be rebuilt.
        let read = snapshot.file.as_ref().and_then(|f| FileState::of(f).ok());
        if read == Some(stamp) {
            let numbers = [version, entries, postings, sum];
            let header: [u8; HEADER] = sealed(MAGIC, &stamp, &numbers);
            directory::keep_derived(store.directory(), &name, &[&header, &body]);
        }
        Ok(Self {
            entries,
            postings,
            sum,
            bytes: Map::Memory([&[0; HEADER][..], &body].concat()),
        })
    }

    /// Returns the newest `limit` entries that contain a term, oldest first.
    fn holding(&self, term: u64, limit: usize) -> impl Iterator<Item = u32> {
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
            sum: number(3),
            bytes,
        };
        is_ours.then_some((table, of))
    }

    /// Returns `true` if every byte of a saved table is as it was written.
    fn is_intact(&self) -> bool {
        self.sum == xxh3_64(&self.bytes[HEADER..])
    }

    fn postings(&self) -> impl Iterator<Item = (u64, u32)> {
        (0..self.postings).filter_map(|number| self.posting(number))
    }

    fn posting(&self, number: u64) -> Option<(u64, u32)> {
        let first = HEADER + usize::try_from(self.entries).ok()? * KEY;
        let at = usize::try_from(number).ok()?.checked_mul(POSTING)?;
        let posting = self.bytes.get(first + at..)?.get(..POSTING)?;
        Some((u64_at(posting, 0), u32_at(posting, 8)))
    }

    /// Returns the hash of the text of each entry, with its number.
    fn keys(&self) -> impl Iterator<Item = (u64, u32)> {
        let keys = self.bytes[HEADER..].chunks_exact(KEY);
        let keys = keys.map(|key| u64_at(key, 0)).zip(0_u32..);
        keys.take_while(|(_, number)| u64::from(*number) < self.entries)
    }
}

/// Digests of the texts in the shared file of one kind, for the requests of one process. No text leaves it, so that
/// entries of other users stay hidden: an existing digest only says that a search is worthwhile.
#[derive(Debug, Default)]
pub struct SeenTexts(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// Generation of the file, and the end of its entries, when it was read.
    read: Option<(u64, u64)>,
    digests: HashSet<u64>,
}

impl SeenTexts {
    /// Returns `true` if an entry may have this text in a field.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn may_hold(
        &self,
        store: &Scoped,
        kind: Kind,
        field: &str,
        text: &str,
    ) -> Result<bool, Error> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = store.file(DataFile::shared(kind)).snapshot()?;
        let (generation, end) = (snapshot.table.header.generation, snapshot.table.header.tail);
        // Until all is read, nothing counts as read.
        let before = seen.read.take();
        let before = before.filter(|before| before.0 == generation && before.1 <= end);
        if before.is_none() {
            seen.digests.clear();
        }
        let from = before.map_or(0, |(_, end)| end);
        for row in snapshot.rows().rev().take_while(|row| row.at >= from) {
            let entry = snapshot.read(&row)?;
            let text = string_field(&entry, field);
            seen.digests
                .extend(text.map(|text| xxh3_64(text.as_bytes())));
        }
        seen.read = Some((generation, end));
        Ok(seen.digests.contains(&xxh3_64(text.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;

    fn derived(directory: &std::path::Path) -> Derived {
        Scoped::new(directory, Scope::All).derived("x")
    }

    #[test]
    fn unlisted_file_is_removed_but_stays_for_its_readers() {
        let dir = tempfile::tempdir().unwrap();
        let derived = derived(dir.path());
        let writer = derived.writer().unwrap();
        assert!(writer.write("1", &[b"one", b"!"]));
        assert!(writer.write("2", &[b"two"]));
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        assert!(writer.keep(b"both", &names(&["1", "2"])));
        let (one, two) = (derived.map("1").unwrap(), derived.map("2").unwrap());
        assert_eq!((&*one, &*two), (&b"one!"[..], &b"two"[..]));
        assert!(writer.keep(b"second", &names(&["2"])));
        // Windows removes a mapped file only when nobody reads it any more.
        assert!(derived.map("1").is_none() || cfg!(windows));
        assert_eq!(&*one, b"one!");
        drop(one);
        assert!(writer.keep(b"second", &names(&["2"])));
        assert!(derived.map("1").is_none());
        assert_eq!(derived.list().unwrap(), b"second");
    }

    #[test]
    fn one_writes_and_nothing_is_made_where_there_is_no_memory() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing");
        assert!(derived(&missing).writer().is_none());
        assert!(!missing.exists());
        let derived = derived(dir.path());
        let writer = derived.writer().unwrap();
        assert!(derived.writer().is_none());
        drop(writer);
        assert!(derived.writer().is_some());
    }
}

#[cfg(test)]
mod tests_of_terms {
    use super::*;
    use crate::model::Scope;
    use memctl_files::named;

    /// Each word of the error key is a term: its length and its first byte.
    fn of(text: &[u8]) -> Vec<u64> {
        let key = string_field(text, "error_key").unwrap_or_default();
        key.split(' ').map(term).collect()
    }

    fn term(word: &str) -> u64 {
        xxh3_64(word.as_bytes())
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
        let places = terms.holding(term(word), usize::MAX);
        let entries = places.into_iter().filter_map(|n| terms.entry(n));
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
        assert_eq!(terms.holding(term("full"), 2), [1, 2]);
        assert!(terms.entry(3).is_none());
        // Another scheme needs another table.
        let terms = store.terms(Kind::Procedure, 2, &|_| vec![7]).unwrap();
        assert_eq!(terms.holding(7, 9).len(), 3);
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
    fn only_entries_that_a_table_does_not_know_are_read() {
        let (dir, store) = store(&["disk full", "memory full", "full full", "quota"]);
        assert_eq!(ids(&store, "full"), ["PROC-001", "PROC-002", "PROC-003"]);
        let path = dir.path().join(Kind::Procedure.file());
        let entry =
            |id: &str, key: &str| format!(r#"{{"procedure_id": "{id}", "error_key": "{key}"}}"#);
        let check = |entries: &[String], read: usize, full: &[&str], quota: &[&str]| {
            let text = format!("{{\"entries\": [{}]}}", entries.join(",\n"));
            named::replace(&path, text.as_bytes()).unwrap();
            let reads = std::cell::Cell::new(0);
            let counted = |text: &[u8]| {
                reads.set(reads.get() + 1);
                of(text)
            };
            drop(store.terms(Kind::Procedure, 1, &counted).unwrap());
            assert_eq!(reads.get(), read, "{text}");
            assert_eq!(ids(&store, "full"), full, "{text}");
            assert_eq!(ids(&store, "quota"), quota, "{text}");
        };
        let mut entries = vec![
            entry("PROC-001", "disk full"),
            entry("PROC-002", "memory full"),
            entry("PROC-003", "full full"),
            entry("PROC-004", "quota"),
        ];
        // Behind all, in the place of another, away, in the middle.
        entries.push(entry("PROC-005", "full quota"));
        let all = ["PROC-001", "PROC-002", "PROC-003", "PROC-005"];
        check(&entries, 1, &all, &["PROC-004", "PROC-005"]);
        entries[1] = entry("PROC-002", "quota");
        check(
            &entries,
            1,
            &["PROC-001", "PROC-003", "PROC-005"],
            &["PROC-002", "PROC-004", "PROC-005"],
        );
        entries.drain(..2);
        check(
            &entries,
            0,
            &["PROC-003", "PROC-005"],
            &["PROC-004", "PROC-005"],
        );
        entries.insert(1, entry("PROC-009", "full"));
        check(
            &entries,
            1,
            &["PROC-003", "PROC-009", "PROC-005"],
            &["PROC-004", "PROC-005"],
        );
        // A damaged table is rebuilt.
        let table = dir.path().join(".index/procedures.terms");
        let mut bytes = std::fs::read(&table).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        named::replace(&table, &bytes).unwrap();
        entries.pop();
        check(&entries, 3, &["PROC-003", "PROC-009"], &["PROC-004"]);
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
