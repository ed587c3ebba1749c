//! Derived data, which can be rebuilt at any time.
//!
//! - Here: directories of derived files, with one writer at a time, and positions of entries.
//! - `terms`: the entries that contain a term.
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

pub(crate) mod terms;

use std::collections::HashSet;
use std::fs::File;

use memctl_files::Directory;

use crate::model::Kind;
use crate::store::files::Map;
use crate::store::{AccessFilter, DERIVED, Entry, Error, Problem, Scoped, Snapshot};

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
