//! The notes of a session: a small file that lives as long as the session is of interest.
//!
//! What an agent has been shown and what it is watched for lies here between one event and the
//! next, for each event is a process of its own. Notes are derived data in the wide sense: without
//! them a hint may be shown twice, and nothing else is lost. Their file is named by a hash, because
//! a session's name comes from outside.
//!
//! Whoever changes notes holds a lock of their own, so that two events of one moment do not undo each
//! other's notes, and so that whoever keeps the lock of the memory keeps no agent waiting.
//!
//! Deliberately absent: what the notes say, and waiting for the disk.

use std::fs::File;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::platform::Directory;

use super::atomic;
use super::directory::{self, DERIVED};
use super::error::Error;
use super::scoped::Scoped;

const DIRECTORY: &str = "sessions";
/// What is locked, beside the directory.
const LOCK: &str = "sessions.lock";
/// So many sessions keep their notes; then those that were not touched for longest go.
const KEPT: usize = 256;
/// Notes are a page of text; what is larger was not written here.
const LARGEST: u64 = 1 << 20;

/// The right to change the notes of one session.
#[derive(Debug)]
pub struct Notes {
    directory: Directory,
    name: String,
    // Closing the file gives the lock back.
    _lock: File,
}

impl Scoped {
    /// The notes of a session as they are now; empty where there are none. Needs no lock.
    pub fn read_notes(&self, session: &str) -> Vec<u8> {
        read(&directory_of(self.directory()), &name_of(session))
    }

    /// Opens the notes of a session for changing them. The memory directory must exist: notes
    /// alone are no reason to begin a memory.
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
    /// The notes; empty where there are none.
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

    /// Removes the notes: the session is over.
    pub fn remove(&self) {
        drop(self.directory.remove(&self.name));
    }
}

/// Keeps everybody else from changing notes.
pub(super) fn lock(directory: &Directory, limit: Duration) -> Result<File, Error> {
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
    format!("{:x}.json", Sha256::digest(session.as_bytes()))
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

    use super::*;
    use crate::model::Scope;

    fn store(directory: &Path) -> Scoped {
        Scoped::new(directory, Scope::All).with_lock_limit(Duration::ZERO)
    }

    #[test]
    fn notes_come_back_until_they_are_removed() {
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
        notes.remove();
        drop(notes);
        assert_eq!(store.read_notes("../a"), b"");
        assert!(store.notes("b").is_ok());
    }

    #[test]
    fn notes_begin_no_memory() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing");
        assert!(store(&missing).notes("a").is_err());
        assert!(!missing.exists());
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
