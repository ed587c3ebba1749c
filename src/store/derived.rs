//! A directory of derived files: made again at any time, and written by one process at a time.
//!
//! A file is written once, under a name of its own, and then read by anyone, mapped into memory.
//! Which files count is said by one of them, the list, which is replaced as a whole. So a reader who has
//! the list has a state that does not change under it; a file that is gone by then was replaced,
//! and reading the list again helps.
//!
//! Deliberately absent: what the files mean, and any waiting. Who does not get the lock goes without
//! saving.

use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use crate::platform::Directory;

use super::Scoped;
use super::directory::DERIVED;
use super::map::Map;

const LOCK: &str = "lock";
const LIST: &str = "list.json";
/// The most bytes of a list: thousands of names.
const LONGEST_LIST: u64 = 64 << 20;

/// A directory of derived files.
#[derive(Debug)]
pub struct Derived {
    memory: Directory,
    directory: Directory,
}

/// The right to write to it.
#[derive(Debug)]
pub struct DerivedWriter {
    directory: Directory,
    // Closing the file gives the lock back.
    _lock: File,
}

impl Scoped {
    /// The derived files of this name. What they hold may be of any scope.
    pub fn derived(&self, name: &str) -> Derived {
        Derived {
            memory: self.directory().clone(),
            directory: self.directory().below(DERIVED).below(name),
        }
    }
}

impl Derived {
    /// The list of the files that count, as it was last written.
    pub fn list(&self) -> Option<Vec<u8>> {
        self.directory.read(LIST, LONGEST_LIST).ok().flatten()
    }

    /// A file, mapped into memory.
    pub fn map(&self, name: &str) -> Option<Map> {
        Map::open(&self.directory, name)
    }

    /// The right to write, if nobody has it at this moment and the memory directory exists and takes
    /// writes.
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
    /// Writes a file of these parts, under a name that is used once. `false` is failure, and no
    /// error: nothing derived has to be there.
    pub fn write(&self, name: &str, parts: &[&[u8]]) -> bool {
        self.directory.replace_derived(name, parts).is_ok()
    }

    /// Makes a file of this size under a name that is used once, with these first bytes and zeros
    /// behind them, which take no room on the disk until they are filled.
    pub fn reserve(&self, name: &str, first: &[u8], size: u64) -> bool {
        let made = self.directory.replace_derived(name, &[first]).is_ok();
        let file = made.then(|| self.directory.open_for_update(name).ok().flatten());
        file.flatten()
            .is_some_and(|file| file.set_len(size).is_ok())
    }

    /// Fills places of a file.
    pub fn fill<'b>(&self, name: &str, places: impl Iterator<Item = (u64, &'b [u8])>) -> bool {
        let Ok(Some(file)) = self.directory.open_for_update(name) else {
            return false;
        };
        places
            .into_iter()
            .all(|(at, bytes)| file.write_all_at(bytes, at).is_ok())
    }

    /// Replaces the list, and removes every file that does not stand in it any more.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;

    fn derived(directory: &std::path::Path) -> Derived {
        Scoped::new(directory, Scope::All).derived("x")
    }

    #[test]
    fn what_the_list_does_not_name_goes_away_but_stays_for_those_who_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let derived = derived(dir.path());
        let writer = derived.writer().unwrap();
        assert!(writer.write("1", &[b"one", b"!"]));
        assert!(writer.reserve("2", b"two", 8));
        assert!(writer.fill("2", [(4u64, &b"x"[..])].into_iter()));
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        assert!(writer.keep(b"both", &names(&["1", "2"])));
        let (one, two) = (derived.map("1").unwrap(), derived.map("2").unwrap());
        assert_eq!((&*one, &*two), (&b"one!"[..], &b"two\0x\0\0\0"[..]));
        assert!(writer.keep(b"second", &names(&["2"])));
        assert!(derived.map("1").is_none());
        assert_eq!(&*one, b"one!");
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
