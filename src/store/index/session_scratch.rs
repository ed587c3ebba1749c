//! Session notes: a small file per running session.
//!
//! Notes carry shown hints and watched failures from one event to the next, because each event runs
//! in its own process. They are derived data in a wide sense: without them a hint may be shown
//! twice, and nothing else is lost. Files are named by a hash, because a session's name is
//! untrusted.
//!
//! Notes have a lock of their own. Two simultaneous events do not overwrite each other's notes, and
//! a long hold of the memory's lock does not block an agent.
//!
//! Deliberately absent: the meaning of the notes, and syncing to disk.

use std::fs::File;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::store::access::scoped::Scoped;
use crate::store::atomic;
use crate::store::error::Error;
use crate::store::files::directory::{self, DERIVED};
use memctl_files::{Directory, hex};

const DIRECTORY: &str = "sessions";
/// Name of the lock file, next to the directory.
const LOCK: &str = "sessions.lock";
/// Maximum number of sessions with notes; the least recently changed are removed.
const KEPT: usize = 256;
/// Maximum size of notes in bytes; a larger file is not ours.
const LARGEST: u64 = 1 << 20;

/// Exclusive write access to the notes of one session.
#[derive(Debug)]
pub struct Notes {
    directory: Directory,
    name: String,
    // Closing the file releases the lock.
    _lock: File,
}

impl Scoped {
    /// Reads the current notes of a session; empty if there are none. Needs no lock.
    pub fn read_notes(&self, session: &str) -> Vec<u8> {
        read(&directory_of(self.directory()), &name_of(session))
    }

    /// Returns why nothing can be written to the memory, such as a read-only file system or one
    /// without locks; `None` if it can, if another process writes at the moment, or if nothing is
    /// to be written: the memory is disabled, or does not exist. Creates no memory.
    pub fn unwritable(&self) -> Option<Error> {
        let directory = self.directory();
        match directory.check() {
            Ok(true) if self.must_be_enabled_for_all().is_ok() => {}
            Ok(_) => return None,
            Err(error) => return Some(Error::io("read", directory)(error)),
        }
        match lock(directory, Duration::ZERO) {
            Ok(_) | Err(Error::Locked { .. }) => {}
            Err(error) => return Some(error),
        }
        if let Err(error) = directory.check_writable() {
            return Some(Error::io("write", directory)(error));
        }
        let lock = directory.check_file(directory::LOCK).err();
        lock.map(Error::io("write", &directory.join(directory::LOCK)))
    }

    /// Opens the notes of a session for changes. Fails if the memory directory does not exist,
    /// because notes alone do not create a memory.
    pub fn notes(&self, session: &str) -> Result<Notes, Error> {
        let directory = self.directory();
        if !directory.check().map_err(Error::io("read", directory))? {
            let missing = std::io::ErrorKind::NotFound.into();
            return Err(Error::io("read", directory)(missing));
        }
        self.must_be_enabled()?;
        let lock = lock(directory, self.lock_limit())?;
        self.must_be_enabled()?;
        Ok(Notes {
            directory: directory_of(directory),
            name: name_of(session),
            _lock: lock,
        })
    }
}

impl Notes {
    /// Reads the notes; empty if there are none.
    pub fn read(&self) -> Vec<u8> {
        read(&self.directory, &self.name)
    }

    /// Replaces the notes.
    pub fn save(&self, bytes: &[u8]) -> Result<(), Error> {
        let path = self.directory.join(&self.name);
        let cannot_write = |source| Error::io("write", &path)(source);
        if !self.directory.is_file(&self.name) {
            self.directory.create().map_err(cannot_write)?;
            forget_oldest(&self.directory);
        }
        let saved = self.directory.replace_derived(&self.name, &[bytes]);
        saved.map_err(cannot_write)
    }
}

/// Takes the lock of all notes.
pub(crate) fn lock(directory: &Directory, limit: Duration) -> Result<File, Error> {
    let derived = directory.below(DERIVED);
    atomic::create_dir(&derived)?;
    let file = atomic::open_or_create(&derived, LOCK)?;
    directory::wait_for(&derived.join(LOCK), limit, || file.try_lock())?;
    Ok(file)
}

fn directory_of(memory: &Directory) -> Directory {
    memory.below(DERIVED).below(DIRECTORY)
}

fn name_of(session: &str) -> String {
    hex(&Sha256::digest(session.as_bytes())) + ".json"
}

fn read(directory: &Directory, name: &str) -> Vec<u8> {
    let notes = directory.read(name, LARGEST).ok().flatten();
    notes.unwrap_or_default()
}

fn forget_oldest(directory: &Directory) {
    let mut files: Vec<_> = directory
        .list()
        .unwrap_or_default()
        .into_iter()
        .filter_map(|found| {
            let file = directory.open(&found.name).ok()??;
            Some((file.metadata().ok()?.modified().ok()?, found.name))
        })
        .collect();
    files.sort();
    let surplus = (files.len() + 1).saturating_sub(KEPT);
    for (_, name) in files.into_iter().take(surplus) {
        drop(directory.remove(name));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::session_scratch::*;
    use crate::model::Scope;

    // A process that another test starts holds the lock until it has its own program.
    fn store(directory: &Path) -> Scoped {
        Scoped::new(directory, Scope::All).with_lock_limit(Duration::from_millis(300))
    }

    #[test]
    fn notes_come_back_and_have_one_writer() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        assert_eq!(store.read_notes("../a"), b"");
        let notes = store.notes("../a").unwrap();
        notes.save(b"one").unwrap();
        notes.save(b"two").unwrap();
        assert_eq!(
            (notes.read(), store.read_notes("b")),
            (b"two".to_vec(), Vec::new())
        );
        assert!(store.notes("b").is_err(), "the lock is held");
        drop(notes);
        assert!(store.notes("b").is_ok());
    }

    #[test]
    fn notes_begin_no_memory() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing");
        assert!(store(&missing).notes("a").is_err());
        assert!(store(&missing).unwritable().is_none());
        assert!(!missing.exists());
    }

    #[test]
    fn a_disabled_memory_is_not_tried() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        store.disable().unwrap();
        assert!(store.unwritable().is_none());
        assert!(!dir.path().join(".index").join(LOCK).exists());
    }

    #[test]
    fn the_notes_of_old_sessions_go() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        for i in 0..KEPT + 10 {
            let notes = store.notes(&i.to_string()).unwrap();
            notes.save(b"x").unwrap();
        }
        let kept = std::fs::read_dir(dir.path().join(".index/sessions")).unwrap();
        assert_eq!(kept.count(), KEPT);
        assert_eq!(store.read_notes(&(KEPT + 9).to_string()), b"x");
    }
}
