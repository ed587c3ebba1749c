//! Derived tables from terms to the entries of a kind that contain them, one for each data file.
//!
//! A few reads find one entry among ten thousand, which is fast enough for a hook on every failing call. A term
//! is a number that the caller computes. If that computation changes, the `version` must change too, and the
//! table is rebuilt. A table that does not match its file exactly (inode, size, both times) is updated: only
//! entries with a new text are read. It may be deleted at any time.

use std::cell::OnceCell;

use crate::model::Kind;
use crate::store::files::counters::Counters;
use crate::store::index::flag_of;
use crate::store::index::term_table::Table;
use crate::store::{DataFile, Entry, Error, Positions, Scoped, TrustSnapshot};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;
    use crate::store::index::term_table;
    use memctl_files::{json, named};
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
