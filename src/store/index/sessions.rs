//! Derived files of sessions.
//!
//! - Log of a running session: its calls, and the outcome of the question to its agent. Each event of an
//!   agent host is a process of its own and appends one line, without a read or a lock, so parallel calls
//!   lose nothing. A full log becomes the older half of the next one: its size is bounded, and the newest
//!   calls stay.
//! - Notes of a running session carry shown hints and watched failures from one event to the next. Without
//!   them a hint may be shown twice, and nothing else is lost. They have a lock of their own: simultaneous
//!   events do not overwrite each other's notes, and a long hold of the memory's lock blocks no agent.
//! - List of the processed session files: an unchanged file need not be read again. Without it, files are
//!   read again, and recorded origins prevent double counting.
//!
//! Files are named by a hash, because a session's name is untrusted. Those of the oldest sessions are removed.
//!
//! Deliberately absent: the meaning of lines and notes, redaction (the caller's), and syncing to disk.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::time::Duration;

use memctl_files::{Directory, hex};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::store::files::directory;
use crate::store::{DERIVED, Error, Scoped, atomic};

/// Maximum number of files with logs, and of sessions with notes.
const LOGS: usize = 128;
const NOTES: usize = 256;
/// Size of one half of a log in bytes.
const FULL: u64 = 192 << 10;
/// Maximum size that is read; a larger file is not ours.
const LARGEST: u64 = 1 << 20;
/// Name of the lock file of all notes, next to their directory.
const LOCK: &str = "sessions.lock";

/// Log of one session.
#[derive(Debug)]
pub struct SessionLog {
    memory: Directory,
    directory: Directory,
    stem: String,
}

/// Exclusive write access to the notes of one session.
#[derive(Debug)]
pub struct Notes {
    directory: Directory,
    name: String,
    // Closing the file releases the lock.
    _lock: File,
}

impl Scoped {
    /// Returns the log of a session. Does not create it.
    pub fn session_log(&self, session: &str) -> SessionLog {
        self.log_of(stem(session))
    }

    /// Returns the log that was changed last; `None` if there is none.
    pub fn newest_session_log(&self) -> Option<SessionLog> {
        let newest = by_age(&self.log_of(String::new()).directory, ".calls").pop()?;
        Some(self.log_of(newest.strip_suffix(".calls")?.to_owned()))
    }

    fn log_of(&self, stem: String) -> SessionLog {
        SessionLog {
            memory: self.directory().clone(),
            directory: self.directory().below(DERIVED).below("calls"),
            stem,
        }
    }

    /// Reads the current notes of a session in their form; empty if there are none, or if they are unreadable.
    /// Needs no lock.
    pub fn notes_of<T: DeserializeOwned + Default>(&self, session: &str) -> T {
        let notes = read(&notes_directory(self), &(stem(session) + ".json"));
        serde_json::from_slice(&notes).unwrap_or_default()
    }

    /// Changes the notes of a session.
    ///
    /// # Errors
    ///
    /// Notes of [`Scoped::notes`].
    pub fn change_notes<T: Serialize + DeserializeOwned + Default, R>(
        &self,
        session: &str,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, Error> {
        let notes = self.notes(session)?;
        let mut all = self.notes_of(session);
        let done = change(&mut all);
        notes.save(&serde_json::to_vec(&all)?)?;
        Ok(done)
    }

    /// Changes the notes of a session while an agent waits, which gets its answer in any case: where they cannot
    /// be written now, the change is made to a copy, and the answer is that of the copy.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn note<T: Serialize + DeserializeOwned + Default + Clone + PartialEq, R>(
        &self,
        session: &str,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, Error> {
        let notes = self.notes_if_free(session)?;
        let mut all: T = self.notes_of(session);
        let before = all.clone();
        let done = change(&mut all);
        if let Some(notes) = notes.filter(|_| all != before) {
            notes.save(&serde_json::to_vec(&all)?)?;
        }
        Ok(done)
    }

    /// Opens the notes of a session for changes; `None` if another process holds the lock, or nothing can be
    /// written. Without notes a hint may be shown twice, and nothing else is lost.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn notes_if_free(&self, session: &str) -> Result<Option<Notes>, Error> {
        if self.directory().is_read_only() {
            return Ok(None);
        }
        match self.notes(session) {
            Err(Error::Locked { .. } | Error::Io { .. }) => Ok(None),
            notes => notes.map(Some),
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

    /// Opens the notes of a session for changes. Fails if the memory directory does not exist,
    /// because notes alone do not create a memory.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn notes(&self, session: &str) -> Result<Notes, Error> {
        must_exist(self.directory())?;
        self.must_be_enabled()?;
        let lock = lock(self.directory(), self.lock_limit())?;
        self.must_be_enabled()?;
        Ok(Notes {
            directory: notes_directory(self),
            name: stem(session) + ".json",
            _lock: lock,
        })
    }
}

impl SessionLog {
    /// Returns the calls, oldest first: `first` of each half, then a line each.
    pub fn calls(&self) -> Vec<u8> {
        let mut all = self.read("older");
        all.extend(self.read("calls"));
        all
    }

    /// Appends a line about a call. `first` is the line that a new file begins with.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn append_call(&self, first: &str, line: &str) -> Result<(), Error> {
        let name = self.name("calls");
        let state = self.directory.state(&name).ok().flatten();
        let text = match state {
            Some(state) if state.size < FULL => format!("{line}\n"),
            Some(_) => {
                drop(self.directory.rename(&name, self.name("older")));
                format!("{first}\n{line}\n")
            }
            None => {
                self.make_room()?;
                format!("{first}\n{line}\n")
            }
        };
        self.append("calls", &text)
    }

    /// Returns the marks, oldest first.
    pub fn marks(&self) -> Vec<u8> {
        self.read("marks")
    }

    /// Appends a mark: what became of the question to the agent.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn mark(&self, line: &str) -> Result<(), Error> {
        self.make_room()?;
        self.append("marks", &format!("{line}\n"))
    }

    fn name(&self, ending: &str) -> String {
        format!("{}.{ending}", self.stem)
    }

    fn read(&self, ending: &str) -> Vec<u8> {
        read(&self.directory, &self.name(ending))
    }

    fn append(&self, ending: &str, text: &str) -> Result<(), Error> {
        let name = self.name(ending);
        let written = self.directory.append(&name, text.as_bytes(), false);
        written.map_err(Error::io("write", &self.directory.join(&name)))
    }

    /// Makes room for a new file. A log alone does not create a memory.
    fn make_room(&self) -> Result<(), Error> {
        must_exist(&self.memory)?;
        atomic::create_dir(&self.directory)?;
        forget_oldest(&self.directory, LOGS);
        Ok(())
    }
}

impl Notes {
    /// Replaces the notes.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn save(&self, bytes: &[u8]) -> Result<(), Error> {
        if !self.directory.is_file(&self.name) {
            atomic::create_dir(&self.directory)?;
            forget_oldest(&self.directory, NOTES);
        }
        let saved = self.directory.replace_derived(&self.name, &[bytes]);
        saved.map_err(Error::io("write", &self.directory.join(&self.name)))
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

fn notes_directory(store: &Scoped) -> Directory {
    store.directory().below(DERIVED).below("sessions")
}

fn must_exist(memory: &Directory) -> Result<(), Error> {
    let failed = || Error::io("read", memory);
    if memory.check().map_err(failed())? {
        return Ok(());
    }
    Err(failed()(io::ErrorKind::NotFound.into()))
}

fn stem(session: &str) -> String {
    hex(&Sha256::digest(session.as_bytes()))
}

fn read(directory: &Directory, name: &str) -> Vec<u8> {
    let bytes = directory.read(name, LARGEST).ok().flatten();
    bytes.unwrap_or_default()
}

/// Makes room for one more file. If there is none, a quarter of the files is removed, the least recently changed
/// first. So the age of all files is read once in many sessions, not at the first event of each.
fn forget_oldest(directory: &Directory, most: usize) {
    if directory.list().map_or(0, |found| found.len()) < most {
        return;
    }
    let files = by_age(directory, "");
    let surplus = files.len().saturating_sub(most - most / 4);
    for name in files.into_iter().take(surplus) {
        drop(directory.remove(name));
    }
}

/// Names of the files with this ending, least recently changed first.
fn by_age(directory: &Directory, ending: &str) -> Vec<String> {
    let found = directory.list().unwrap_or_default().into_iter();
    let mut files: Vec<_> = found
        .filter_map(|found| {
            let name = found.name.into_string().ok()?;
            let state = directory.state(&name).ok()??;
            name.ends_with(ending).then_some((state.modified, name))
        })
        .collect();
    files.sort();
    files.into_iter().map(|(_, name)| name).collect()
}

/// Name of the list of processed files.
const SOURCES: &str = "sources.json";

/// State of a session file when it was processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Source {
    /// Size in bytes.
    pub size: u64,
    /// Modification time, in nanoseconds since 1970.
    pub mtime: i64,
    /// Number of steps in the file.
    pub steps: u64,
}

/// The list of processed files.
#[derive(Debug)]
pub struct Sources {
    directory: Directory,
    entries: BTreeMap<String, Source>,
    changed: bool,
}

impl Scoped {
    /// Reads the list of processed files; empty if it is missing or damaged.
    pub fn sources(&self) -> Sources {
        let directory = self.directory().clone();
        let entries = atomic::read_json(&directory.below(DERIVED), SOURCES);
        Sources {
            directory,
            entries: entries.unwrap_or_default(),
            changed: false,
        }
    }
}

impl Sources {
    /// Returns `true` if a file with this size and time was processed.
    pub fn knows(&self, path: &str, size: u64, mtime: i64) -> bool {
        let entry = self.entries.get(path);
        entry.is_some_and(|entry| entry.size == size && entry.mtime == mtime)
    }

    /// Names that begin with this text.
    pub fn beginning_with<'a>(&'a self, beginning: &'a str) -> impl Iterator<Item = &'a str> {
        let names = self.entries.range(beginning.to_owned()..);
        let names = names.map(|(name, _)| name.as_str());
        names.take_while(move |name| name.starts_with(beginning))
    }

    /// Records a processed file.
    pub fn insert(&mut self, path: String, source: Source) {
        self.changed |= self.entries.insert(path, source) != Some(source);
    }

    /// Saves the list, if it changed and the memory directory exists. Ignores failure, because the
    /// next run is only slower.
    pub fn save(&mut self) {
        let text = serde_json::to_vec(&self.entries).unwrap_or_default();
        if self.changed && directory::keep_derived(&self.directory, SOURCES, &[&text]) {
            self.changed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;

    #[test]
    fn a_log_keeps_the_newest_calls_and_stays_small() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let log = store.session_log("../a");
        assert!(log.calls().is_empty());
        for i in 0..3_000 {
            let line = format!("{i} {}", "x".repeat(200));
            log.append_call("first", &line).unwrap();
        }
        let text = String::from_utf8(log.calls()).unwrap();
        assert!(text.len() < 450_000, "{}", text.len());
        assert!(text.lines().last().unwrap().starts_with("2999 "));
        assert_eq!(text.lines().filter(|line| *line == "first").count(), 2);
        assert!(store.session_log("b").calls().is_empty());
        assert_eq!(store.newest_session_log().unwrap().calls(), text.as_bytes());
    }

    #[test]
    fn marks_are_apart_and_old_files_go() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        for i in 0..LOGS + 10 {
            store.session_log(&i.to_string()).mark("asked").unwrap();
        }
        let files = std::fs::read_dir(dir.path().join(".index/calls")).unwrap();
        assert_eq!(files.count(), LOGS - LOGS / 4 + 10);
        let newest = store.session_log(&(LOGS + 9).to_string());
        assert_eq!(newest.marks(), b"asked\n");
        assert!(newest.calls().is_empty());
    }
}

#[cfg(test)]
mod tests_of_notes {
    use std::path::Path;

    use super::*;
    use crate::model::Scope;

    // A process that another test starts holds the lock until it has its own program.
    fn store(directory: &Path) -> Scoped {
        Scoped::new(directory, Scope::All).with_lock_limit(Duration::from_millis(300))
    }

    #[test]
    fn notes_come_back_and_have_one_writer() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        assert_eq!(store.notes_of::<String>("../a"), "");
        let notes = store.notes("../a").unwrap();
        notes.save(b"\"one\"").unwrap();
        notes.save(b"\"two\"").unwrap();
        assert_eq!(store.notes_of::<String>("../a"), "two");
        assert_eq!(store.notes_of::<String>("b"), "");
        assert!(store.notes("b").is_err(), "the lock is held");
        drop(notes);
        assert!(store.notes("b").is_ok());
    }

    #[test]
    fn notes_have_the_form_of_their_reader() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        store
            .change_notes("s", |all: &mut Vec<u8>| all.push(7))
            .unwrap();
        assert_eq!(store.notes_of::<Vec<u8>>("s"), [7]);
        assert_eq!(store.notes_of::<String>("s"), "");
        // If they cannot be changed now, the answer is that of a copy.
        let _held = store.notes("s").unwrap();
        let length = store.note("s", |all: &mut Vec<u8>| {
            all.push(8);
            all.len()
        });
        assert_eq!(
            (length.unwrap(), store.notes_of::<Vec<u8>>("s")),
            (2, vec![7])
        );
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
        for i in 0..NOTES + 10 {
            let notes = store.notes(&i.to_string()).unwrap();
            notes.save(b"7").unwrap();
        }
        let files = std::fs::read_dir(dir.path().join(".index/sessions")).unwrap();
        assert_eq!(files.count(), NOTES - NOTES / 4 + 10);
        assert_eq!(store.notes_of::<u8>(&(NOTES + 9).to_string()), 7);
    }
}

#[cfg(test)]
mod tests_of_sources {
    use super::*;
    use crate::model::Scope;
    use memctl_files::named;

    #[test]
    fn a_file_is_known_as_long_as_it_does_not_change() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let mut sources = store.sources();
        let source = Source {
            size: 3,
            mtime: 1_795_220_415_123_456_789,
            steps: 2,
        };
        sources.insert("/a b\n".to_owned(), source);
        sources.save();
        let sources = store.sources();
        assert!(sources.knows("/a b\n", 3, source.mtime));
        assert!(!sources.knows("/a b\n", 4, source.mtime));
        assert!(!sources.knows("/a b\n", 3, source.mtime + 1));
        assert!(!sources.knows("/c", 3, source.mtime));
        named::replace(&dir.path().join(".index/sources.json"), b"junk").unwrap();
        assert!(!store.sources().knows("/a b\n", 3, source.mtime));
    }
}
