//! Derived tables from terms to the entries of a kind that contain them, one for each data file.
//!
//! A few reads find one entry among ten thousand, which is fast enough for a hook on every failing call. A term
//! is a number that the caller computes. If that computation changes, the `scheme` must change too, and the
//! table is rebuilt. A table that does not match its file exactly (inode, size, both times) is updated: only
//! entries with a new text are read. It may be deleted at any time.
//!
//! An entry may also have facts: a fixed number of bytes, from which counts over a whole file are made.
//!
//! On disk, little-endian: a header of 104 bytes with a checksum, `{ at: 8, length: 4, hash of the text: 8,
//! facts }` per entry, then `{ term: 8, entry: 4 }` per posting, sorted by term. A damaged row leads to text
//! that is not valid JSON, and the entry counts as not found. Before an update, the whole table is checked.

use std::cell::OnceCell;
use std::fs::File;

use memctl_files::{FileState, PositionedFile as _, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::model::Kind;
use crate::store::files::counters::Counters;
use crate::store::files::data::offsets::{sealed, u32_at, u64_at, unsealed};
use crate::store::files::directory;
use crate::store::{DERIVED, DataFile, Entry, Error, Map, Row, Scoped, Snapshot, TrustSnapshot};

/// Changes with the layout; older tables are rebuilt.
const MAGIC: [u8; 8] = *b"mctltrm3";
const HEADER: usize = 104;
/// Length of the row of an entry, without its facts, and of a posting.
const ROW: usize = 20;
const POSTING: usize = 12;
/// Number of entries in a row that may be gone from a file without the later ones being read again.
const AHEAD: usize = 64;
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

/// Terms of an entry, and its facts as bytes.
pub(crate) type TermsAndFacts = (Vec<u64>, Vec<u8>);

/// Terms that a caller finds entries by, and facts about each.
#[derive(Clone, Copy)]
pub struct Scheme<'a> {
    /// Version of the function.
    pub version: u64,
    /// Number of bytes of the facts of an entry.
    pub width: usize,
    /// Returns the terms and the facts of an entry's text. It is called for each text that the table does not
    /// know yet, and never otherwise. An entry without terms is never found.
    pub of: &'a dyn Fn(&[u8]) -> TermsAndFacts,
}

/// Index from terms to the entries of a file.
#[derive(Debug)]
struct Table {
    entries: u64,
    postings: u64,
    /// Number of bytes of the facts of an entry.
    width: usize,
    /// Mapped, or in memory once it was built.
    bytes: Map,
    data: Option<File>,
}

impl Scoped {
    /// Opens the term tables of a kind. `of` returns the terms of an entry's text, as in a [`Scheme`]
    /// without facts.
    pub fn terms(
        &self,
        kind: Kind,
        version: u64,
        of: &dyn Fn(&[u8]) -> Vec<u64>,
    ) -> Result<Terms, Error> {
        let of = &|text: &[u8]| (of(text), Vec::new());
        let width = 0;
        self.terms_and_facts(kind, Scheme { version, width, of })
    }

    /// Opens the tables of a kind.
    pub fn terms_and_facts(&self, kind: Kind, scheme: Scheme<'_>) -> Result<Terms, Error> {
        // In this order, a record that is approved meanwhile is in one of them.
        let files = DataFile::of(kind).rev();
        let tables: Result<Vec<_>, _> = files.map(|file| self.table(file, scheme)).collect();
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

    fn table(&self, file: DataFile, scheme: Scheme<'_>) -> Result<Table, Error> {
        let path = self.directory().join(file.name());
        let Some(data) = directory::open_data(self.directory(), file.name())? else {
            return Ok(Table {
                entries: 0,
                postings: 0,
                width: scheme.width,
                bytes: Map::Memory(vec![0; HEADER]),
                data: None,
            });
        };
        let now = FileState::of(&data).map_err(Error::io("read", &path))?;
        let saved = Map::open(&self.directory().below(DERIVED), terms_name(file));
        let saved = saved.and_then(|bytes| Table::open(bytes, scheme));
        let saved = match saved {
            Some((table, of)) if of == now => {
                let data = Some(data);
                return Ok(Table { data, ..table });
            }
            Some((table, _)) => Some(table).filter(Table::is_intact),
            None => None,
        };
        let snapshot = self.file(file).snapshot()?;
        let (entries, postings, body) = rows_of(&snapshot, saved.as_ref(), &scheme)?;
        // A table is saved only for the state of the file that was read. Ignores failure, because
        // it can be rebuilt.
        let read = snapshot.file.as_ref().and_then(|f| FileState::of(f).ok());
        if let Some(read) = read.filter(|read| *read == snapshot.table.header.stamp) {
            let numbers = [scheme.version, entries, postings, xxh3_64(&body)];
            let header: [u8; HEADER] = sealed(MAGIC, &read, &numbers);
            directory::keep_derived(self.directory(), terms_name(file), &[&header, &body]);
        }
        Ok(Table {
            entries,
            postings,
            width: scheme.width,
            bytes: Map::Memory([&[0; HEADER][..], &body].concat()),
            data: snapshot.file,
        })
    }
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
            let postings = table.postings();
            postings.filter_map(move |(term, number)| Some((term, number.checked_add(first)?)))
        })
    }

    /// Returns the newest `limit` entries with one of these terms that the caller may see, newest first, and the
    /// number of all of them. No entry has two of the terms.
    pub fn newest(&self, terms: &[u64], limit: usize) -> (Vec<Entry>, u64) {
        let holding = |limit| {
            let (mut numbers, mut total) = (Vec::new(), 0);
            for term in terms {
                let (found, count) = self.holding(*term, limit);
                numbers.extend(found);
                total += count;
            }
            numbers.sort_unstable();
            (numbers, total)
        };
        let seen = |numbers: Vec<u32>| {
            let numbers = numbers.into_iter().rev();
            numbers.filter_map(|number| self.entry(number))
        };
        if self.store.sees_all() {
            let (numbers, count) = holding(limit);
            return (seen(numbers).take(limit).collect(), count);
        }
        let mut all: Vec<Entry> = seen(holding(usize::MAX).0).collect();
        let count = all.len() as u64;
        all.truncate(limit);
        (all, count)
    }

    /// Returns the facts of every entry that the caller may see, each file oldest first.
    pub fn facts(&self) -> impl Iterator<Item = &[u8]> {
        let of_tables = self.tables.iter().flat_map(|table| {
            let places = 0..table.entries;
            places.map(|place| table.facts(place))
        });
        let sees_all = self.store.sees_all();
        let seen = (0..).zip(of_tables);
        let seen = seen.filter(move |(number, _)| sees_all || self.entry(*number).is_some());
        seen.map(|(_, facts)| facts)
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
                    is_local: file.is_local,
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
    fn entry(&self, number: u64) -> Option<(Vec<u8>, u64)> {
        let row = self.entry_row(number)?;
        let (at, length) = (u64_at(row, 0), u32_at(row, 8));
        if length > LONGEST {
            return None;
        }
        let mut text = vec![0; length as usize];
        self.data.as_ref()?.read_exact_at(&mut text, at).ok()?;
        Some((text, at))
    }

    fn postings(&self) -> impl Iterator<Item = (u64, u32)> {
        (0..self.postings).filter_map(|number| self.posting(number))
    }

    fn posting(&self, number: u64) -> Option<(u64, u32)> {
        let first = HEADER + usize::try_from(self.entries).ok()? * (ROW + self.width);
        let at = usize::try_from(number).ok()?.checked_mul(POSTING)?;
        let posting = self.bytes.get(first + at..)?.get(..POSTING)?;
        Some((u64_at(posting, 0), u32_at(posting, 8)))
    }

    /// Returns the facts of an entry; none if the table is damaged.
    fn facts(&self, number: u64) -> &[u8] {
        self.entry_row(number).map_or(&[], |row| &row[ROW..])
    }

    /// Returns the row of an entry, with its facts.
    fn entry_row(&self, number: u64) -> Option<&[u8]> {
        let length = ROW + self.width;
        let at = HEADER + usize::try_from(number).ok()?.checked_mul(length)?;
        self.bytes.get(at..)?.get(..length)
    }
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
    fn facts_are_of_what_a_caller_may_see() {
        let dir = tempfile::tempdir().unwrap();
        let entry = |n: u8, skill: &str| {
            format!(r#"{{"execution_id": "EXEC-2026010100000{n}", "skill": "{skill}"}}"#)
        };
        let entries = [entry(1, "hr/x"), entry(2, "dev/y"), entry(3, "hr/z")];
        let text = format!("{{\"entries\": [{}]}}", entries.join(","));
        named::replace(&dir.path().join(Kind::Execution.file()), text.as_bytes()).unwrap();
        let of = |text: &[u8]| (vec![7], vec![text[text.len() - 3]]);
        let scheme = Scheme {
            version: 1,
            width: 1,
            of: &of,
        };
        for (scope, facts, ids) in [
            (
                Scope::All,
                &b"xyz"[..],
                &["EXEC-20260101000003", "EXEC-20260101000002"][..],
            ),
            (
                Scope::parse("hr"),
                b"xz",
                &["EXEC-20260101000003", "EXEC-20260101000001"],
            ),
            (Scope::parse("dev"), b"y", &["EXEC-20260101000002"]),
        ] {
            let store = Scoped::new(dir.path(), scope);
            let terms = store.terms_and_facts(Kind::Execution, scheme).unwrap();
            assert_eq!(terms.facts().collect::<Vec<_>>().concat(), facts);
            let (newest, count) = terms.newest(&[7], 2);
            assert_eq!(count, facts.len() as u64);
            assert_eq!(newest.iter().map(|one| &one.id).collect::<Vec<_>>(), ids);
        }
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
