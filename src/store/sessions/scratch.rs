//! Scratch file of a running session: what a room remembers from one event to the next, such as shown hints and
//! rules. Without it a hint may be shown twice, and nothing else is lost.
//!
//! Scratch files have a lock of their own: simultaneous events do not overwrite each other's changes, and a long
//! hold of the memory's lock blocks no agent.

use std::fs::File;
use std::time::Duration;

use memctl_files::Directory;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{BINARY, forget_oldest, must_exist, read, stem};
use crate::store::files::directory;
use crate::store::{DERIVED, Error, Scoped, atomic};

/// Maximum number of sessions with a scratch file.
const NEWEST: usize = 256;
/// Name of the lock file of all scratch files, next to their directory.
const LOCK: &str = "sessions.lock";

/// Exclusive write access to the scratch file of one session.
#[derive(Debug)]
pub struct SessionScratch {
    directory: Directory,
    name: String,
    // Closing the file releases the lock.
    _lock: File,
}

impl Scoped {
    /// Reads the scratch file of a session in the form of the caller; empty if there is none, or if it is
    /// unreadable. Needs no lock.
    pub fn scratch_of<T: DeserializeOwned + Default>(&self, session: &str) -> T {
        let scratch = read(&scratch_directory(self), &(stem(session) + ".json"));
        serde_json::from_slice(&scratch).unwrap_or_default()
    }

    /// Changes the scratch file of a session.
    ///
    /// # Errors
    ///
    /// As [`Scoped::scratch`].
    pub fn change_scratch<T: Serialize + DeserializeOwned + Default, R>(
        &self,
        session: &str,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, Error> {
        let scratch = self.scratch(session)?;
        let mut all = self.scratch_of(session);
        let done = change(&mut all);
        scratch.save(&serde_json::to_vec(&all)?)?;
        Ok(done)
    }

    /// Changes the scratch file of a session while an agent waits, which gets its answer in any case: where it
    /// cannot be written now, the change is made to a copy, and the answer is that of the copy.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn try_change_scratch<T: Serialize + DeserializeOwned + Default + Clone + PartialEq, R>(
        &self,
        session: &str,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, Error> {
        let scratch = self.scratch_if_free(session)?;
        let mut all: T = self.scratch_of(session);
        let before = all.clone();
        let done = change(&mut all);
        if let Some(scratch) = scratch.filter(|_| all != before) {
            scratch.save(&serde_json::to_vec(&all)?)?;
        }
        Ok(done)
    }

    /// Opens the scratch file of a session for changes; `None` if another process holds the lock, or nothing can
    /// be written.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn scratch_if_free(&self, session: &str) -> Result<Option<SessionScratch>, Error> {
        if self.directory().is_read_only() {
            return Ok(None);
        }
        match self.scratch(session) {
            Err(Error::Locked { .. } | Error::Io { .. }) => Ok(None),
            scratch => scratch.map(Some),
        }
    }

    /// Returns why nothing can be written to the memory, such as a read-only file system or one
    /// without locks; `None` if it can, if another process writes at the moment, or if nothing is
    /// to be written: the memory is disabled, or does not exist. Creates no memory.
    pub fn unwritable(&self) -> Option<Error> {
        match self.directory().check() {
            Ok(true) if self.must_be_enabled_for_all().is_ok() => {}
            Ok(_) => return None,
            Err(error) => return Some(Error::io("read", self.directory())(error)),
        }
        let directory = self.directory();
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

    /// Opens the scratch file of a session for changes. Fails if the memory directory does not exist,
    /// because a scratch file alone does not create a memory.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn scratch(&self, session: &str) -> Result<SessionScratch, Error> {
        must_exist(self.directory())?;
        self.must_be_enabled()?;
        let lock = lock(self.directory(), self.lock_limit())?;
        self.must_be_enabled()?;
        Ok(SessionScratch {
            directory: scratch_directory(self),
            name: stem(session) + ".json",
            _lock: lock,
        })
    }
}

impl SessionScratch {
    /// Replaces the file.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn save(&self, bytes: &[u8]) -> Result<(), Error> {
        if !self.directory.is_file(&self.name) {
            atomic::create_dir(&self.directory)?;
            forget_oldest(&self.directory, NEWEST);
        }
        let saved = self.directory.replace_derived(&self.name, &[BINARY, bytes]);
        saved.map_err(Error::io("write", &self.directory.join(&self.name)))
    }
}

/// Takes the lock of all scratch files.
pub(crate) fn lock(directory: &Directory, limit: Duration) -> Result<File, Error> {
    let derived = directory.below(DERIVED);
    atomic::create_dir(&derived)?;
    let file = atomic::open_or_create(&derived, LOCK)?;
    directory::wait_for(&derived.join(LOCK), limit, || file.try_lock())?;
    Ok(file)
}

fn scratch_directory(store: &Scoped) -> Directory {
    store.directory().below(DERIVED).below("sessions")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::model::Scope;

    // A process that another test starts holds the lock until it has its own program.
    fn store(directory: &Path) -> Scoped {
        Scoped::new(directory, Scope::All).with_lock_limit(Duration::from_millis(300))
    }

    #[test]
    fn a_scratch_file_comes_back_and_has_one_writer() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        assert_eq!(store.scratch_of::<String>("../a"), "");
        let scratch = store.scratch("../a").unwrap();
        scratch.save(b"\"one\"").unwrap();
        scratch.save(b"\"two\"").unwrap();
        assert_eq!(store.scratch_of::<String>("../a"), "two");
        assert_eq!(store.scratch_of::<String>("b"), "");
        assert!(store.scratch("b").is_err(), "the lock is held");
        drop(scratch);
        assert!(store.scratch("b").is_ok());
    }

    #[test]
    fn a_scratch_file_has_the_form_of_their_reader() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        store
            .change_scratch("s", |all: &mut Vec<u8>| all.push(7))
            .unwrap();
        assert_eq!(store.scratch_of::<Vec<u8>>("s"), [7]);
        assert_eq!(store.scratch_of::<String>("s"), "");
        // If they cannot be changed now, the answer is that of a copy.
        let _held = store.scratch("s").unwrap();
        let length = store.try_change_scratch("s", |all: &mut Vec<u8>| {
            all.push(8);
            all.len()
        });
        assert_eq!(
            (length.unwrap(), store.scratch_of::<Vec<u8>>("s")),
            (2, vec![7])
        );
    }

    #[test]
    fn a_scratch_file_begins_no_memory() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing");
        assert!(store(&missing).scratch("a").is_err());
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
    fn the_scratch_of_old_sessions_go() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        for i in 0..NEWEST + 10 {
            let scratch = store.scratch(&i.to_string()).unwrap();
            scratch.save(b"7").unwrap();
        }
        let files = std::fs::read_dir(dir.path().join(".index/sessions")).unwrap();
        assert_eq!(files.count(), NEWEST - NEWEST / 4 + 10);
        assert_eq!(store.scratch_of::<u8>(&(NEWEST + 9).to_string()), 7);
    }
}
