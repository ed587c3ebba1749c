//! Derived tables from terms to the entries of a kind that contain them, one for each data file.
//!
//! A few reads find one entry among ten thousand, which is fast enough for a hook on every failing call. A term
//! is a number that the caller computes. If that computation changes, the `scheme` must change too, and the
//! table is rebuilt. A table that does not match its file exactly (inode, size, both times) is updated: only
//! entries with a new text are read. It may be deleted at any time.
//!
//! An entry may also have facts: a fixed number of bytes, from which counts over a whole file are made.

use std::cell::OnceCell;

use memctl_files::json;

use crate::model::Kind;
use crate::store::files::counters::Counters;
use crate::store::index::term_table::Table;
use crate::store::{DataFile, Entry, Error, Scoped, TrustSnapshot};

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
        let tables: Result<Vec<_>, _> = files.map(|file| Table::of(self, file, scheme)).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;
    use crate::store::index::term_table;
    use memctl_files::named;
    use xxhash_rust::xxh3::xxh3_64;

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
            if at < term_table::HEADER {
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
