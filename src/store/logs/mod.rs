//! The execution log of agents, `execution_logs.jsonl`: one action per line, append-only. Reads and writes of
//! memories are actions too, logged without texts. Lines are removed only with a session that is
//! forgotten for good, or by a purge.
//!
//! The log is read from its end, so that the newest actions cost the same in a log of any length.
//! Lines are in time order; a reader that knows the start of a session reads no further back. Lines
//! belong to no domain, so a limited scope neither reads nor writes them. Each user reads and
//! writes only their own.
//!
//! Deliberately absent: an index. Reading the lines of an old session also reads all later lines.
//!
//! - `shared`: lines on their way to a database.
//! - Here too: a count of the calls that ran although their rules were not checked in time. One byte of
//!   `.index/late_calls` stands for one late call, because the thread that writes it must not wait. The file is of this
//!   machine, and deleting it starts again at zero.

pub(crate) mod shared;

use std::ops::ControlFlow;

use memctl_files::Directory;
use serde_json::value::RawValue;

use crate::model::ExecutionLog;
use crate::store::files::directory::EXECUTION_LOGS as FILE;
use crate::store::files::log::{self, Sync};
use crate::store::{DERIVED, Error, Primary, Scoped, Writer};

/// Number of consecutive lines before `since` after which reading stops. A single old line may come
/// from a wrong clock.
const TOO_OLD: usize = 256;

/// Steps that tell what an agent was told: at a failing call, and at a start or another call.
const TOLD: [&str; 2] = ["hint", "told"];

/// Filter for log lines.
#[derive(Debug, Clone, Copy)]
pub struct LogSelection<'a> {
    /// Names of the session; a line must carry one of them. `None`: lines of all sessions and of none.
    pub sessions: Option<&'a [String]>,
    /// Earliest time, RFC 3339 in the format of the lines; empty for no limit.
    pub since: &'a str,
    /// Maximum number of lines; the newest are kept.
    pub newest: usize,
}

/// Result of reading the log.
#[derive(Debug, Default)]
pub struct LogListing {
    /// The lines, oldest first.
    pub lines: Vec<ExecutionLog>,
    /// `true` if older lines match too.
    pub has_older: bool,
    /// Number of bytes read.
    pub bytes_read: u64,
}

impl Scoped {
    /// Name of the log in the memory directory.
    pub const EXECUTION_LOGS: &'static str = FILE;

    /// Returns the newest lines of a selection.
    pub fn execution_logs(&self, selection: LogSelection<'_>) -> Result<LogListing, Error> {
        if let Some(primary) = self.primary().filter(|_| self.scope().allows(None)) {
            return self.logs_of_copies(primary.as_ref(), selection);
        }
        let mut too_old = 0;
        self.newest_lines(selection.newest, &mut |line| {
            if line.created_at.as_str() < selection.since {
                too_old += 1;
                return match too_old {
                    TOO_OLD.. => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(false),
                };
            }
            too_old = 0;
            let session = line.session_id.as_ref();
            let is_of = |names: &[String]| session.is_some_and(|id| names.contains(id));
            ControlFlow::Continue(selection.sessions.is_none_or(is_of))
        })
    }

    /// Returns the newest lines of any session that tell what agents were told, of those that are wanted. Lines
    /// are asked about from the newest on.
    pub fn logs_of_delivered(
        &self,
        newest: usize,
        is_wanted: &mut dyn FnMut(&ExecutionLog) -> bool,
    ) -> Result<LogListing, Error> {
        self.newest_lines(newest, &mut |line| {
            let tells = TOLD.contains(&line.step_name.as_str());
            ControlFlow::Continue(tells && is_wanted(line))
        })
    }

    /// Returns the newest of the lines that are wanted, until `is_wanted` breaks.
    fn newest_lines(
        &self,
        newest: usize,
        is_wanted: &mut dyn FnMut(&ExecutionLog) -> ControlFlow<(), bool>,
    ) -> Result<LogListing, Error> {
        let mut listing = LogListing::default();
        if !self.scope().allows(None) {
            return Ok(listing);
        }
        listing.bytes_read = log::backwards(self.directory(), FILE, &mut |line| {
            let Some(line) = read(line) else {
                return ControlFlow::Continue(());
            };
            if !is_wanted(&line)? || !self.viewer().sees(line.user_id.as_deref()) {
                return ControlFlow::Continue(());
            }
            if listing.lines.len() == newest {
                listing.has_older = true;
                return ControlFlow::Break(());
            }
            listing.lines.push(line);
            ControlFlow::Continue(())
        })?;
        listing.lines.reverse();
        Ok(listing)
    }

    /// Returns the newest lines of all copies of a memory in a database, this one included.
    fn logs_of_copies(
        &self,
        primary: &dyn Primary,
        selection: LogSelection<'_>,
    ) -> Result<LogListing, Error> {
        self.share_lines()?;
        let wanted = selection.newest.saturating_add(1);
        let user = self.viewer().user_id();
        let texts = primary.newest_logs(selection.sessions, user, wanted)?;
        let newest = texts.iter().take(selection.newest).rev();
        let lines = newest.filter_map(|text| read(text.as_bytes()));
        let is_seen = |line: &ExecutionLog| self.viewer().sees(line.user_id.as_deref());
        Ok(LogListing {
            lines: lines.filter(is_seen).collect(),
            has_older: texts.len() >= wanted,
            bytes_read: 0,
        })
    }
}

impl Writer {
    /// Appends lines and syncs them to disk. Returns them as stored.
    pub fn append_execution_logs(
        &mut self,
        lines: Vec<ExecutionLog>,
    ) -> Result<Vec<ExecutionLog>, Error> {
        self.append_actions(lines, Sync::Wait)
    }

    /// Appends lines without syncing, for calls that an agent waits for. A power failure may lose
    /// them.
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
            return Err(Error::OutOfScope(FILE.to_owned()));
        }
        let mut stored = Vec::new();
        let mut texts = Vec::new();
        for mut line in lines {
            let viewer = self.store().viewer();
            let own = viewer.user_id().map(str::to_owned);
            line.user_id = line.user_id.or(own);
            if !viewer.sees(line.user_id.as_deref()) {
                return Err(Error::OutOfScope(FILE.to_owned()));
            }
            let text = self.redacted(&line)?;
            stored.push(serde_json::from_str(&text)?);
            // The given JSON may span several lines.
            texts.push(memctl_files::json::compact(&text));
        }
        // As with records: the other copies of the memory know a line before it is acknowledged.
        if self.is_at_primary()
            && let Some(primary) = self.store().primary()
        {
            primary.put_logs(&texts)?;
        }
        log::append(self.lock().directory(), FILE, &texts, sync)?;
        Ok(stored)
    }
}

/// Parses a line; `None` unless it is an object with an action type.
pub(crate) fn read(line: &[u8]) -> Option<ExecutionLog> {
    let line: &RawValue = serde_json::from_slice(line.trim_ascii()).ok()?;
    let is_object = line.get().starts_with('{');
    let line: ExecutionLog = serde_json::from_str(line.get()).ok()?;
    (is_object && !line.action_type.as_str().is_empty()).then_some(line)
}

impl Writer {
    /// Removes the lines of a session, given its names; all other lines keep their bytes. Returns
    /// the number of removed lines.
    pub fn remove_execution_logs(&mut self, sessions: &[String]) -> Result<u64, Error> {
        if !self.store().scope().allows(None) {
            return Ok(0);
        }
        let viewer = self.store().viewer();
        log::retain(self.lock(), FILE, &|line| {
            let line = read(line).filter(|line| viewer.sees(line.user_id.as_deref()));
            let session = line.and_then(|line| line.session_id);
            session.is_none_or(|session| !sessions.contains(&session))
        })
    }
}

/// Name of the file of late calls.
const LATE: &str = "late_calls";

/// Calls of one memory whose rules were not checked in time.
#[derive(Debug)]
pub struct LateCalls(Directory);

impl LateCalls {
    /// Returns the count of a memory directory.
    pub fn of(memory: &Directory) -> Self {
        Self(memory.below(DERIVED))
    }

    /// Counts one call. A failure is ignored: nobody could be told.
    pub fn add(&self) {
        if self.0.create().is_ok() {
            drop(self.0.append(LATE, b".", false));
        }
    }

    /// Number of calls; 0 if it cannot be read.
    pub fn count(&self) -> u64 {
        let state = self.0.state(LATE).ok().flatten();
        state.map_or(0, |state| state.size)
    }

    /// Describes the count; `None` without such a call.
    pub fn sentence(&self) -> Option<String> {
        let calls = match self.count() {
            0 => return None,
            1 => "1 call".to_owned(),
            count => format!("{count} calls"),
        };
        Some(format!(
            "{calls} ran before the rules about calls could be checked: a hook has 0.4 s; \
             memctl index"
        ))
    }
}

#[cfg(test)]
mod tests {
    use memctl_files::named;

    use super::*;
    use crate::model::Scope;

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
                sessions: Some(&[session.to_owned()]),
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
    fn lines_that_are_none_cost_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let random = &mut || "key".to_owned();
        store
            .write(random)
            .unwrap()
            .append_execution_logs(vec![line("a", "1")])
            .unwrap();
        let path = dir.path().join(FILE);
        named::append(&path, "[]\n\n{\"torn\": \"".as_bytes()).unwrap();
        store
            .write(random)
            .unwrap()
            .note_execution_logs(vec![line("a", "2")])
            .unwrap();
        assert_eq!(times(&store, "a", "", 9).0, ["1", "2"]);
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
        assert!(matches!(refused, Err(Error::OutOfScope(..))));
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
                sessions: Some(&["new".to_owned()]),
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
            writer.remove_execution_logs(&names).unwrap()
        };
        assert_eq!((remove(&["c"]), remove(&["a", "host/a"])), (0, 2));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), others);
    }
}

#[cfg(test)]
mod tests_of_late_calls {
    use super::*;

    #[test]
    fn each_late_call_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let calls = LateCalls::of(&Directory::at(dir.path()));
        assert_eq!(calls.sentence(), None);
        calls.add();
        assert!(calls.sentence().unwrap().starts_with("1 call ran"));
        calls.add();
        assert_eq!(calls.count(), 2);
    }
}
