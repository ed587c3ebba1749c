//! Log of a running session: its calls, and what became of the question to its agent.
//!
//! Each event of an agent host is a process of its own and appends one line. Nothing is read or
//! rewritten for that, and no lock is taken, so parallel calls lose nothing. When a log is full, it
//! becomes the older half of the next one, so its size is bounded and the newest calls stay.
//! Files are named by a hash, because a session's name is untrusted.
//!
//! Deliberately absent: the meaning of the lines, redaction (the caller's), and syncing to disk.

use std::io;

use sha2::{Digest as _, Sha256};

use crate::store::access::scoped::Scoped;
use crate::store::error::Error;
use crate::store::files::directory::DERIVED;
use memctl_files::{Directory, hex};

const DIRECTORY: &str = "calls";
/// Maximum number of files; the least recently changed are removed.
const KEPT: usize = 128;
/// Size of one half of a log in bytes.
const FULL: u64 = 192 << 10;
/// Maximum size that is read; a larger file is not ours.
const LARGEST: u64 = 1 << 20;

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
        SessionLog {
            memory: self.directory().clone(),
            directory: self.directory().below(DERIVED).below(DIRECTORY),
            stem: hex(&Sha256::digest(session.as_bytes())),
        }
    }

    /// Returns the log that was changed last; `None` if there is none.
    pub fn newest_session_log(&self) -> Option<SessionLog> {
        let directory = self.directory().below(DERIVED).below(DIRECTORY);
        let newest = by_age(&directory, "calls").pop()?;
        let stem = newest.strip_suffix(".calls")?.to_owned();
        Some(SessionLog {
            memory: self.directory().clone(),
            directory,
            stem,
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
    pub fn append_call(&self, first: &str, line: &str) -> Result<(), Error> {
        let name = self.name("calls");
        let size = self.directory.open(&name).ok().flatten();
        let size = size.and_then(|file| file.metadata().ok());
        let is_new = match size.map(|found| found.len()) {
            Some(size) if size < FULL => false,
            Some(_) => {
                drop(self.directory.rename(&name, self.name("older")));
                true
            }
            None => {
                self.make_room()?;
                true
            }
        };
        let text = if is_new {
            format!("{first}\n{line}\n")
        } else {
            format!("{line}\n")
        };
        self.append("calls", &text)
    }

    /// Returns the marks, oldest first.
    pub fn marks(&self) -> Vec<u8> {
        self.read("marks")
    }

    /// Appends a mark: what became of the question to the agent.
    pub fn mark(&self, line: &str) -> Result<(), Error> {
        self.make_room()?;
        self.append("marks", &format!("{line}\n"))
    }

    fn name(&self, ending: &str) -> String {
        format!("{}.{ending}", self.stem)
    }

    fn read(&self, ending: &str) -> Vec<u8> {
        let bytes = self.directory.read(self.name(ending), LARGEST);
        bytes.ok().flatten().unwrap_or_default()
    }

    fn append(&self, ending: &str, text: &str) -> Result<(), Error> {
        let name = self.name(ending);
        let written = self.directory.append(&name, text.as_bytes(), false);
        written.map_err(Error::io("write", &self.directory.join(&name)))
    }

    fn make_room(&self) -> Result<(), Error> {
        // A log alone does not create a memory.
        let is_there = self
            .memory
            .check()
            .map_err(Error::io("read", &self.memory))?;
        if !is_there {
            return Err(Error::io("write", &self.memory)(
                io::ErrorKind::NotFound.into(),
            ));
        }
        let made = self.directory.create();
        made.map_err(Error::io("write", &self.directory))?;
        let files = by_age(&self.directory, "");
        let surplus = (files.len() + 1).saturating_sub(KEPT);
        for name in files.into_iter().take(surplus) {
            drop(self.directory.remove(name));
        }
        Ok(())
    }
}

/// Names of the files with this ending, least recently changed first.
fn by_age(directory: &Directory, ending: &str) -> Vec<String> {
    let mut files: Vec<_> = directory
        .list()
        .unwrap_or_default()
        .into_iter()
        .filter_map(|found| {
            let name = found.name.to_string_lossy().into_owned();
            let file = directory.open(&found.name).ok()??;
            let changed = file.metadata().ok()?.modified().ok()?;
            name.ends_with(ending).then_some((changed, name))
        })
        .collect();
    files.sort();
    files.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::super::session_log::*;
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
        for i in 0..KEPT + 10 {
            store.session_log(&i.to_string()).mark("asked").unwrap();
        }
        let files = std::fs::read_dir(dir.path().join(".index/calls")).unwrap();
        assert_eq!(files.count(), KEPT);
        let newest = store.session_log(&(KEPT + 9).to_string());
        assert_eq!(newest.marks(), b"asked\n");
        assert!(newest.calls().is_empty());
    }
}
