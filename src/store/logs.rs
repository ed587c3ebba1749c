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
//! Also a count of the calls that ran although their rules were not checked in time. One byte of
//! `.index/late_calls` stands for one late call, because the thread that writes it must not wait. The file is of this
//! machine, and deleting it starts again at zero.
//!
//! And audit events visible to a caller, of this copy and of all copies at a database: their own, and those of
//! others on their records; and the transfer of events and actions of agents to the database.
//!
//! A line is written to its file first and sent later, so that neither a hook nor a read waits for the
//! database. A derived file notes for each database how far a log has been sent. If it is lost, or if the
//! log has been rewritten, everything is sent again: an event has an id, and existing ones stay.
//!
//! Deliberately absent: verification of the lines of other copies. Each copy verifies the chain of its own
//! audit log; the database only adds lines.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;

use memctl_files::{Directory, PositionedFile as _, json};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use crate::model::{ExecutionLog, Kind, Viewer};
use crate::store::files::directory::{self, AUDIT_LOG, EXECUTION_LOGS};
use crate::store::files::log::{self, Sync};
use crate::store::{
    AuditLine, DERIVED, Error, Primary, Scoped, SharedLine, Writer, atomic, redact,
};

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
    pub const EXECUTION_LOGS: &'static str = EXECUTION_LOGS;

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
        listing.bytes_read = log::backwards(self.directory(), EXECUTION_LOGS, &mut |line| {
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
            return Err(Error::OutOfScope(EXECUTION_LOGS.to_owned()));
        }
        let mut stored = Vec::new();
        let mut texts = Vec::new();
        for mut line in lines {
            let viewer = self.store().viewer();
            let own = viewer.user_id().map(str::to_owned);
            line.user_id = line.user_id.or(own);
            if !viewer.sees(line.user_id.as_deref()) {
                return Err(Error::OutOfScope(EXECUTION_LOGS.to_owned()));
            }
            let text = self.redacted(&line)?;
            stored.push(serde_json::from_str(&text)?);
            // The given JSON may span several lines.
            texts.push(json::compact(&text));
        }
        // As with records: the other copies of the memory know a line before it is acknowledged.
        if self.is_at_primary()
            && let Some(primary) = self.store().primary()
        {
            primary.put_logs(&texts)?;
        }
        log::append(self.lock().directory(), EXECUTION_LOGS, &texts, sync)?;
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
        log::retain(self.lock(), EXECUTION_LOGS, &|line| {
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

/// Derived file with the progress of sending.
const SENT: &str = "sent.json";
/// Number of bytes before the end of what was sent that have to be the same, or all is sent again.
const COMPARED: u64 = 256;

/// Progress by database.
type Marks = BTreeMap<String, Mark>;

/// Part of the log that has been sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    /// Length in bytes.
    bytes: u64,
    /// Hash of its end.
    end: u64,
}

/// Lines of the logs that a database does not have yet.
#[derive(Debug)]
pub struct Unsent {
    /// Audit events, oldest first, redacted.
    pub events: Vec<SharedLine>,
    /// Actions of agents, oldest first.
    pub actions: Vec<String>,
    marks: [(String, Mark); 2],
}

impl Scoped {
    /// Sends the lines that the primary database does not have yet. Does nothing if the files are the
    /// primary store.
    pub fn share_lines(&self) -> Result<(), Error> {
        let (Some(primary), Some(name)) = (self.primary(), self.primary_name()?) else {
            return Ok(());
        };
        self.must_be_enabled()?;
        let unsent = self.unsent(&name.database, &name.origin)?;
        if !unsent.events.is_empty() {
            primary.put_audit(&unsent.events)?;
        }
        if !unsent.actions.is_empty() {
            primary.put_logs(&unsent.actions)?;
        }
        self.note_sent(&unsent);
        Ok(())
    }

    /// Reads the lines that `database` does not have yet under the name `origin`. Costs one look at the
    /// sizes of the files if there are none.
    pub fn unsent(&self, database: &str, origin: &str) -> Result<Unsent, Error> {
        let name = format!("{database} {origin}");
        let name_of_actions = format!("{name} {EXECUTION_LOGS}");
        let (events, sent_events) = self.unsent_lines(AUDIT_LOG, &name, &line_of)?;
        let (actions, sent_actions) =
            self.unsent_lines(EXECUTION_LOGS, &name_of_actions, &action_of)?;
        Ok(Unsent {
            events,
            actions,
            marks: [(name, sent_events), (name_of_actions, sent_actions)],
        })
    }

    /// Returns the lines of a log behind what was sent under this name, and the new end.
    fn unsent_lines<T>(
        &self,
        file: &str,
        name: &str,
        line_of: &dyn Fn(&[u8]) -> Option<T>,
    ) -> Result<(Vec<T>, Mark), Error> {
        let path = self.directory().join(file);
        let failed = || Error::io("read", &path);
        let Some(file) = directory::open_data(self.directory(), file)? else {
            return Ok((Vec::new(), Mark::default()));
        };
        let length = file.metadata().map_err(failed())?.len();
        let mut mark = self.marks().get(name).copied().unwrap_or_default();
        if mark.bytes == length {
            return Ok((Vec::new(), mark));
        }
        let bytes_from = |from: u64, to: u64| {
            let mut bytes = vec![0; usize::try_from(to.saturating_sub(from)).unwrap_or_default()];
            file.read_exact_at(&mut bytes, from).map(|()| bytes)
        };
        let end_of = |bytes: u64| {
            let end = bytes_from(bytes.saturating_sub(COMPARED), bytes);
            end.map(|end| xxh3_64(&end))
        };
        // The log has been rewritten, by a purge or by git.
        if mark.bytes > length || end_of(mark.bytes).map_err(failed())? != mark.end {
            mark = Mark::default();
        }
        let bytes = bytes_from(mark.bytes, length).map_err(failed())?;
        // Another process may be writing the last line.
        let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
        let whole = bytes.get(..whole).unwrap_or_default();
        let lines = whole.split_inclusive(|byte| *byte == b'\n');
        let at = mark.bytes + whole.len() as u64;
        let mark = Mark {
            bytes: at,
            end: end_of(at).map_err(failed())?,
        };
        Ok((lines.filter_map(line_of).collect(), mark))
    }

    /// Notes that the database has these lines. Ignores failure, because they can be sent again.
    pub fn note_sent(&self, unsent: &Unsent) {
        let before = self.marks();
        let mut marks = before.clone();
        marks.extend(unsent.marks.iter().cloned());
        if marks == before {
            return;
        }
        let bytes = serde_json::to_vec(&marks).unwrap_or_default();
        directory::keep_derived(self.directory(), SENT, &[&bytes]);
    }

    fn marks(&self) -> Marks {
        atomic::read_json(&self.directory().below(DERIVED), SENT).unwrap_or_default()
    }

    /// Visits the lines of the log, oldest first. Skips unreadable lines, which
    /// [`Scoped::verify_audit`] reports. A user sees their own events, and other callers' events on
    /// their records. A limited scope sees none, because the log covers everything.
    pub fn audited(&self, visit: &mut dyn FnMut(AuditLine)) -> Result<(), Error> {
        if !self.scope().allows(None) {
            return Ok(());
        }
        let Some(file) = directory::open_data(self.directory(), AUDIT_LOG)? else {
            return Ok(());
        };
        let lines = io::BufRead::split(io::BufReader::new(file), b'\n');
        for line in lines {
            let line = line.map_err(Error::io("read", &self.directory().join(AUDIT_LOG)))?;
            if let Ok(line) = serde_json::from_slice::<AuditLine>(&line)
                && let Some(line) = self.seen_part(line)?
            {
                visit(line);
            }
        }
        Ok(())
    }

    /// Returns an event without the names and the records of other users that it also concerned;
    /// `None` if nothing of it is of the viewer.
    fn seen_part(&self, mut line: AuditLine) -> Result<Option<AuditLine>, Error> {
        let id = match self.viewer() {
            Viewer::Owner => return Ok(Some(line)),
            Viewer::Nobody => return Ok(None),
            Viewer::User(id) => id.as_str(),
        };
        if line.who == id {
            return Ok(Some(line));
        }
        if !line.of.iter().any(|user| user == id) {
            return Ok(None);
        }
        if line.of.iter().any(|user| user != id) {
            line.of.retain(|user| user == id);
            let mut own = Vec::new();
            for record in line.records {
                let kind = Kind::of_id(&record).filter(|kind| kind.has_user());
                if let Some(kind) = kind
                    && let Some(entry) = self.find(kind, &record)?
                    && entry.user_id().is_some_and(|user| user == id)
                {
                    own.push(record);
                }
            }
            line.records = own;
        }
        Ok(Some(line))
    }

    /// Visits the audit events of all copies of this memory, oldest first, as [`Scoped::audited`] does with
    /// those of this one.
    pub fn audited_by_all(&self, visit: &mut dyn FnMut(AuditLine)) -> Result<(), Error> {
        let Some(primary) = self.primary().filter(|_| self.scope().allows(None)) else {
            return self.audited(visit);
        };
        self.share_lines()?;
        let mut failed = None;
        primary.audit(&mut |line| {
            let Ok(line) = serde_json::from_str::<AuditLine>(&line.text) else {
                return;
            };
            match self.seen_part(line) {
                Ok(line) => drop(line.map(&mut *visit)),
                Err(error) => failed = Some(error),
            }
        })?;
        failed.map_or(Ok(()), Err)
    }
}

/// A line of the log of agents; `None` if the line is not one.
fn action_of(text: &[u8]) -> Option<String> {
    read(text)?;
    String::from_utf8(text.trim_ascii().to_vec()).ok()
}

/// An event with its id; `None` if the line is not one.
fn line_of(text: &[u8]) -> Option<SharedLine> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    let text = redact(text).text.into_owned();
    serde_json::from_str::<AuditLine>(&text).ok()?;
    let id = json::string_field(text.as_bytes(), "hash")?.into_owned();
    Some(SharedLine { id, text })
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
        let path = dir.path().join(EXECUTION_LOGS);
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
        named::replace(&dir.path().join(EXECUTION_LOGS), text.as_bytes()).unwrap();
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
        let path = dir.path().join(EXECUTION_LOGS);
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

#[cfg(test)]
mod tests_of_sending {
    use super::*;
    use crate::model::Scope;
    use crate::store::AuditAction;
    use memctl_files::named;

    fn read(store: &Scoped, id: &str) {
        // A memory that nobody has written to has no audit log.
        drop(store.write(&mut || "key".to_owned()).unwrap());
        store.audit(AuditAction::Read, &[(id, None)]).unwrap();
    }

    fn send(store: &Scoped, database: &str) -> Vec<SharedLine> {
        let unsent = store.unsent(database, "origin").unwrap();
        store.note_sent(&unsent);
        unsent.events
    }

    #[test]
    fn events_are_sent_once_to_each_database() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        assert!(send(&store, "one").is_empty());
        for id in ["MEM-001", "MEM-001", "MEM-002"] {
            read(&store, id);
        }
        let sent = send(&store, "one");
        assert_eq!(sent.len(), 3);
        assert!(send(&store, "one").is_empty());
        assert_eq!(send(&store, "two"), sent);
        read(&store, "MEM-003");
        // The beginning of a line that another process is writing is not sent before it is whole.
        let path = dir.path().join(AUDIT_LOG);
        named::append(&path, b"{\"seq\"").unwrap();
        assert_eq!(send(&store, "one").len(), 1);
        assert!(send(&store, "one").is_empty());
    }

    #[test]
    fn log_that_was_rewritten_is_sent_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        for id in ["MEM-001", "MEM-002"] {
            read(&store, id);
        }
        let sent = send(&store, "one");
        assert_eq!(sent.len(), 2);
        let path = dir.path().join(AUDIT_LOG);
        let text = std::fs::read_to_string(&path).unwrap();
        let second = text.lines().nth(1).unwrap();
        named::replace(&path, format!("{second}\n").as_bytes()).unwrap();
        assert_eq!(send(&store, "one"), sent[1..]);
        std::fs::remove_file(&path).unwrap();
        assert!(send(&store, "one").is_empty());
    }

    #[test]
    fn secret_in_an_event_is_not_sent() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        read(&store, "MEM-001");
        let path = dir.path().join(AUDIT_LOG);
        let secret = "ghp_016C7zVZ9hX2mK4pQ8rT5wY1aB3dE6fG7hJ9";
        let text = std::fs::read_to_string(&path).unwrap();
        named::append(&path, text.replace("MEM-001", secret).as_bytes()).unwrap();
        let sent = send(&store, "one");
        assert_eq!(sent.len(), 2);
        assert!(!format!("{sent:?}").contains(secret), "{sent:?}");
    }
}
