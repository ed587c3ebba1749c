//! The log of what agents did, `execution_logs.jsonl`: an action a line, only ever added to: a line goes
//! only with its session.
//!
//! It is read from its end, so that the newest actions cost the same in a log of any length. Its lines
//! stand in the order of time; a reader who knows when a session began reads no further back than that.
//! Lines belong to no domain, so a scope that is not everything sees none and writes none; of those of
//! several users each sees and writes his own.
//!
//! Deliberately absent: an index. Whoever wants the lines of a session of long ago reads what came after
//! it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::ops::ControlFlow;

use serde_json::value::RawValue;

use crate::model::ExecutionLog;

use super::directory;
use super::error::{Error, Problem, ProblemKind};
use super::log::{self, Sync};
use super::scoped::Scoped;
use super::writer::Writer;

pub(super) const FILE: &str = "execution_logs.jsonl";
/// After so many lines in a row that are too old, the rest is older too. A single one may come from a
/// clock that was wrong.
const TOO_OLD: usize = 256;

/// Which lines are wanted.
#[derive(Debug, Clone, Copy)]
pub struct LogSelection<'a> {
    /// Those that carry one of these names of a session.
    pub sessions: &'a [String],
    /// None from before this time, which is RFC 3339 in the form that lines are written in; empty for
    /// all times.
    pub since: &'a str,
    /// The newest so many.
    pub newest: usize,
}

/// The lines that were wanted.
#[derive(Debug, Default)]
pub struct LogListing {
    /// The lines, oldest first.
    pub lines: Vec<ExecutionLog>,
    /// Whether there are older ones that would have been wanted too.
    pub has_older: bool,
    /// How many lines on the way could not be read.
    pub broken: usize,
    /// How much of the file was read, in bytes.
    pub bytes_read: u64,
}

impl Scoped {
    /// The file of the log, as a name in the memory directory.
    pub const EXECUTION_LOGS: &'static str = FILE;

    /// The newest lines of a selection, which may also be none.
    pub fn execution_logs(&self, selection: LogSelection<'_>) -> Result<LogListing, Error> {
        let mut listing = LogListing::default();
        if !self.scope().allows(None) {
            return Ok(listing);
        }
        let mut too_old = 0;
        let bytes_read = log::backwards(self.directory(), FILE, &mut |line| {
            let Some(line) = read(line) else {
                listing.broken += 1;
                return ControlFlow::Continue(());
            };
            if line.created_at.as_str() < selection.since {
                too_old += 1;
                return if too_old < TOO_OLD {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                };
            }
            too_old = 0;
            let names = selection.sessions;
            let is_wanted = line
                .session_id
                .as_ref()
                .is_some_and(|id| names.contains(id));
            if !is_wanted || !self.viewer().sees(line.user_id.as_deref()) {
                return ControlFlow::Continue(());
            }
            if listing.lines.len() == selection.newest {
                listing.has_older = true;
                return ControlFlow::Break(());
            }
            listing.lines.push(line);
            ControlFlow::Continue(())
        })?;
        listing.bytes_read = bytes_read;
        listing.lines.reverse();
        Ok(listing)
    }

    /// What is wrong with the log: at most one problem, which counts the lines that cannot be read. They
    /// are passed over and harm nobody.
    pub fn inspect_execution_logs(&self) -> Result<Option<Problem>, Error> {
        let path = self.directory().join(FILE);
        let file = directory::open_data(self.directory(), FILE)?;
        let Some(file) = file.filter(|_| self.sees_all()) else {
            return Ok(None);
        };
        let mut first = None;
        let (mut broken, mut number, mut offset) = (0_u64, 0, 0);
        each_line(file, &mut |line| {
            number += 1;
            if !line.trim_ascii().is_empty() && read(line).is_none() {
                broken += 1;
                first.get_or_insert((number, offset));
            }
            offset += line.len() as u64;
            Ok(())
        })
        .map_err(Error::io("read", &path))?;
        Ok(first.map(|(line, offset)| Problem {
            path,
            offset,
            line,
            kind: ProblemKind::Unreadable,
            message: match broken {
                1 => "this line is no action of an agent; it is passed over".to_owned(),
                n => format!(
                    "{n} lines from here on are no actions of an agent; they are passed over"
                ),
            },
        }))
    }
}

impl Writer {
    /// Adds lines to the log of what agents did and waits until they are on the disk. Answers them as
    /// they are stored.
    pub fn append_execution_logs(
        &mut self,
        lines: Vec<ExecutionLog>,
    ) -> Result<Vec<ExecutionLog>, Error> {
        self.append_actions(lines, Sync::Wait)
    }

    /// The same without waiting for the disk, for those whom an agent waits for: a machine that fails
    /// may take the line with it.
    pub fn note_execution_logs(&mut self, lines: Vec<ExecutionLog>) -> Result<(), Error> {
        self.append_actions(lines, Sync::Leave).map(drop)
    }

    fn append_actions(
        &mut self,
        lines: Vec<ExecutionLog>,
        sync: Sync,
    ) -> Result<Vec<ExecutionLog>, Error> {
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        if !self.store().scope().allows(None) {
            let what = FILE.to_owned();
            return Err(Error::OutOfScope { what });
        }
        let mut stored = Vec::new();
        let mut texts = Vec::new();
        for mut line in lines {
            let viewer = self.store().viewer();
            let own = viewer.user_id().map(str::to_owned);
            line.user_id = line.user_id.or(own);
            if !viewer.sees(line.user_id.as_deref()) {
                let what = FILE.to_owned();
                return Err(Error::OutOfScope { what });
            }
            let (text, _) = self.redacted(&line)?;
            stored.push(serde_json::from_str(&text)?);
            // JSON that was given may be laid out over lines.
            texts.push(super::json_text::compact(&text));
        }
        log::append_all(self.lock(), FILE, &texts, sync)?;
        Ok(stored)
    }
}

/// Shows every line, with its line break, in the order of the file.
pub(super) fn each_line(
    file: File,
    visit: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut input = BufReader::new(file);
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        visit(&line)?;
        line.clear();
    }
    Ok(())
}

/// A line that is one: an object that says what was done.
pub(super) fn read(line: &[u8]) -> Option<ExecutionLog> {
    let line: &RawValue = serde_json::from_slice(line.trim_ascii()).ok()?;
    let is_object = line.get().starts_with('{');
    let line: ExecutionLog = serde_json::from_str(line.get()).ok()?;
    (is_object && !line.action_type.as_str().is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;
    use crate::platform::named;

    fn line(session: &str, at: &str) -> ExecutionLog {
        ExecutionLog {
            session_id: Some(session.to_owned()),
            action_type: "decision".into(),
            created_at: at.to_owned(),
            ..ExecutionLog::default()
        }
    }

    fn times(store: &Scoped, session: &str, since: &str, newest: usize) -> (Vec<String>, bool) {
        let listing = store
            .execution_logs(LogSelection {
                sessions: &[session.to_owned()],
                since,
                newest,
            })
            .unwrap();
        let times = listing.lines.into_iter().map(|line| line.created_at);
        (times.collect(), listing.has_older)
    }

    #[test]
    fn the_newest_lines_of_a_session_come_back_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let mut writer = store.write(&mut || "key".to_owned()).unwrap();
        let lines = [
            line("a", "1"),
            line("b", "2"),
            line("a", "3"),
            line("a", "4"),
        ];
        writer.append_execution_logs(lines.into()).unwrap();
        drop(writer);
        let check = |newest, expected: &[&str], older| {
            let (times, has_older) = times(&store, "a", "", newest);
            assert_eq!(
                (times, has_older),
                (expected.iter().map(ToString::to_string).collect(), older)
            );
        };
        check(9, &["1", "3", "4"], false);
        check(3, &["1", "3", "4"], false);
        check(2, &["3", "4"], true);
        check(0, &[], true);
        assert_eq!(times(&store, "a", "2", 9).0, ["3", "4"]);
        assert_eq!(times(&store, "c", "", 9), (Vec::new(), false));
    }

    #[test]
    fn lines_that_are_none_are_counted_and_cost_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let random = &mut || "key".to_owned();
        store
            .write(random)
            .unwrap()
            .append_execution_logs(vec![line("a", "1")])
            .unwrap();
        assert_eq!(store.inspect_execution_logs().unwrap(), None);
        let path = dir.path().join(FILE);
        named::append(&path, "[]\n\n{\"torn\": \"".as_bytes()).unwrap();
        store
            .write(random)
            .unwrap()
            .note_execution_logs(vec![line("a", "2")])
            .unwrap();
        assert_eq!(times(&store, "a", "", 9).0, ["1", "2"]);
        let problem = store.inspect_execution_logs().unwrap().unwrap();
        assert_eq!(problem.line, 2);
        assert!(problem.message.starts_with("2 lines"), "{problem}");
    }

    #[test]
    fn a_session_takes_its_lines_with_it_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let path = dir.path().join(FILE);
        let of = |session: &str| {
            format!("{{\"session_id\": \"{session}\",  \"action_type\":\"decision\"}}\n")
        };
        let others = format!("{}[]\n\n{{\"torn", of("b"));
        let text = format!("{}{}{others}", of("a"), of("host/a"));
        named::replace(&path, text.as_bytes()).unwrap();
        let mut writer = store.write(&mut || "key".to_owned()).unwrap();
        let mut remove = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            writer
                .remove_execution_logs("SESS-1", &names, true)
                .unwrap()
        };
        assert_eq!((remove(&["c"]), remove(&["a", "host/a"])), (0, 2));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), others);
    }

    #[test]
    fn a_narrow_scope_sees_and_writes_none() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let random = &mut || "key".to_owned();
        store
            .write(random)
            .unwrap()
            .append_execution_logs(vec![line("a", "1")])
            .unwrap();
        let narrow = Scoped::new(dir.path(), Scope::parse("hr"));
        assert_eq!(times(&narrow, "a", "", 9), (Vec::new(), false));
        let refused = narrow
            .write(random)
            .unwrap()
            .append_execution_logs(vec![line("a", "2")]);
        assert!(matches!(refused, Err(Error::OutOfScope { .. })));
    }

    #[test]
    fn a_session_that_began_late_is_not_looked_for_before_that() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let line = |n| {
            format!(
                "{{\"session_id\":\"old\",\"action_type\":\"decision\",\"created_at\":\"{n:06}\"}}\n"
            )
        };
        let text = (0..100_000).map(line).collect::<Vec<_>>().concat();
        named::replace(&dir.path().join(FILE), text.as_bytes()).unwrap();
        let listing = store
            .execution_logs(LogSelection {
                sessions: &["new".to_owned()],
                since: "099990",
                newest: 20,
            })
            .unwrap();
        assert!(listing.lines.is_empty());
        assert!(
            listing.bytes_read * 50 < text.len() as u64,
            "{}",
            listing.bytes_read
        );
    }
}
