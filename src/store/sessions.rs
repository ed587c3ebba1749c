//! Derived files about sessions. Those of running ones are named by a hash, because a session's name is untrusted. Those of the oldest
//! sessions are removed. Each begins with [`BINARY`], so that an agent that searches the project with `grep -r` does
//! not read its own calls again.
//!
//! - The log of a session: its calls, and the outcome of the question to its agent. Each event of an agent host is a
//!   process of its own and appends one line, without a read or a lock, so parallel calls lose nothing. A full log
//!   becomes the older half of the next one: its size is bounded, and the newest calls stay. An event reads the
//!   newest lines alone.
//! - Its scratch file: what a room remembers from one event to the next, such as shown hints and rules. Without it a
//!   hint may be shown twice, and nothing else is lost. Scratch files have a lock of their own: simultaneous events
//!   do not overwrite each other's changes, and a long hold of the memory's lock blocks no agent.
//! - The list of the processed session files: an unchanged file need not be read again. Without it, files are read
//!   again, and recorded origins prevent double counting.
//!
//! Deliberately absent: the meaning of lines and scratch files, redaction (the caller's), and syncing to disk.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use memctl_files::{Directory, hex};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::store::files::directory;
use crate::store::files::log::backwards;
use crate::store::{DERIVED, Error, Scoped, atomic};

/// Maximum size that is read; a larger file is not ours.
const LARGEST: u64 = 1 << 20;

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

/// First bytes of a file: `grep` takes a file with a zero byte for binary, and prints no line of it.
const BINARY: &[u8] = b"\0\n";

/// Reads what follows [`BINARY`]; empty if there is nothing.
fn read(directory: &Directory, name: &str) -> Vec<u8> {
    let mut bytes = directory
        .read(name, LARGEST)
        .ok()
        .flatten()
        .unwrap_or_default();
    if bytes.starts_with(BINARY) {
        bytes.drain(..BINARY.len());
    }
    bytes
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

/// Maximum number of files with logs.
const LOGS: usize = 128;
/// Size of one half of a log in bytes.
const FULL: u64 = 192 << 10;

/// Log of one session.
#[derive(Debug)]
pub struct SessionLog {
    memory: Directory,
    directory: Directory,
    stem: String,
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

    /// Visits the lines of [`Self::calls`], newest first, until `visit` breaks. A half that cannot be read has none.
    pub fn newest(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) {
        let mut flow = ControlFlow::Continue(());
        for ending in ["calls", "older"] {
            let read = backwards(&self.directory, &self.name(ending), &mut |line| {
                if line != BINARY.trim_ascii_end() {
                    flow = visit(line);
                }
                flow
            });
            if read.is_err() || flow.is_break() {
                return;
            }
        }
    }

    /// Appends a line about something else than a call, if the session has calls.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn append_beside_calls(&self, line: &str) -> Result<(), Error> {
        if !self.directory.is_file(self.name("calls")) {
            return Ok(());
        }
        self.append("calls", &format!("{line}\n"))
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
        let first = if self.directory.is_file(&name) {
            &[]
        } else {
            BINARY
        };
        let written = self
            .directory
            .append(&name, &[first, text.as_bytes()].concat(), false);
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
        match lock_scratch(directory, Duration::ZERO) {
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
        let lock = lock_scratch(self.directory(), self.lock_limit())?;
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
pub(crate) fn lock_scratch(directory: &Directory, limit: Duration) -> Result<File, Error> {
    let derived = directory.below(DERIVED);
    atomic::create_dir(&derived)?;
    let file = atomic::open_or_create(&derived, LOCK)?;
    directory::wait_for(&derived.join(LOCK), limit, || file.try_lock())?;
    Ok(file)
}

fn scratch_directory(store: &Scoped) -> Directory {
    store.directory().below(DERIVED).below("sessions")
}

/// Name of the list of processed files.
const PROCESSED: &str = "sources.json";

/// State of a session file when it was processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProcessedFile {
    /// Size in bytes.
    pub size: u64,
    /// Modification time, in nanoseconds since 1970.
    pub mtime: i64,
    /// Number of steps in the file.
    pub steps: u64,
}

/// The list of processed files.
#[derive(Debug)]
pub struct ProcessedFiles {
    directory: Directory,
    entries: BTreeMap<String, ProcessedFile>,
    changed: bool,
}

impl Scoped {
    /// Reads the list of processed files; empty if it is missing or damaged.
    pub fn processed_files(&self) -> ProcessedFiles {
        let directory = self.directory().clone();
        let entries = atomic::read_json(&directory.below(DERIVED), PROCESSED);
        ProcessedFiles {
            directory,
            entries: entries.unwrap_or_default(),
            changed: false,
        }
    }
}

impl ProcessedFiles {
    /// Returns `true` if a file with this size and time was processed.
    pub fn contains(&self, path: &str, size: u64, mtime: i64) -> bool {
        let entry = self.entries.get(path);
        entry.is_some_and(|entry| entry.size == size && entry.mtime == mtime)
    }

    /// Records a processed file.
    pub fn insert(&mut self, path: String, file: ProcessedFile) {
        self.changed |= self.entries.insert(path, file) != Some(file);
    }

    /// Saves the list, if it changed and the memory directory exists. Ignores failure, because the
    /// next run is only slower.
    pub fn save(&mut self) {
        let text = serde_json::to_vec(&self.entries).unwrap_or_default();
        if self.changed && directory::keep_derived(&self.directory, PROCESSED, &[&text]) {
            self.changed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::model::Scope;
    use memctl_files::named;

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
        let mut newest = Vec::new();
        log.newest(&mut |line| {
            newest.push(line.to_vec());
            ControlFlow::Continue(())
        });
        newest.reverse();
        assert_eq!(newest.join(&b'\n'), text.trim_end().as_bytes());
    }

    #[test]
    fn a_search_of_the_project_prints_no_line_of_a_session() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let log = store.session_log("a");
        for call in ["needle 1", "needle 2"] {
            log.append_call("first", call).unwrap();
        }
        log.mark("needle 3").unwrap();
        store
            .change_scratch("a", |seen: &mut String| *seen = "needle 4".into())
            .unwrap();
        for file in ["calls", "sessions"].map(|folder| dir.path().join(".index").join(folder)) {
            for file in std::fs::read_dir(file).unwrap() {
                let bytes = std::fs::read(file.unwrap().path()).unwrap();
                assert_eq!(bytes.split(|byte| *byte == 0).count(), 2, "{bytes:?}");
            }
        }
        assert_eq!(log.calls(), b"first\nneedle 1\nneedle 2\n");
        assert_eq!(log.marks(), b"needle 3\n");
        assert_eq!(store.scratch_of::<String>("a"), "needle 4");
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

    #[test]
    fn a_file_is_known_as_long_as_it_does_not_change() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let mut files = store.processed_files();
        let file = ProcessedFile {
            size: 3,
            mtime: 1_795_220_415_123_456_789,
            steps: 2,
        };
        files.insert("/a b\n".to_owned(), file);
        files.save();
        let files = store.processed_files();
        assert!(files.contains("/a b\n", 3, file.mtime));
        assert!(!files.contains("/a b\n", 4, file.mtime));
        assert!(!files.contains("/a b\n", 3, file.mtime + 1));
        assert!(!files.contains("/c", 3, file.mtime));
        named::replace(&dir.path().join(".index/sources.json"), b"junk").unwrap();
        assert!(!store.processed_files().contains("/a b\n", 3, file.mtime));
    }
}
