//! Log of a running session: its calls, and the outcome of the question to its agent.
//!
//! Each event of an agent host is a process of its own and appends one line, without a read or a lock, so
//! parallel calls lose nothing. A full log becomes the older half of the next one: its size is bounded, and
//! the newest calls stay. An event reads the newest lines alone.

use std::ops::ControlFlow;

use memctl_files::Directory;

use super::{BINARY, by_age, forget_oldest, must_exist, read, stem};
use crate::store::files::log::backwards;
use crate::store::{DERIVED, Error, Scoped, atomic};

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
}
