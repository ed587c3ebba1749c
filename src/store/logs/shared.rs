//! Audit events visible to a caller, of this copy and of all copies at a database: their own, and those of
//! others on their records. And the transfer of events and actions of agents to the database.
//!
//! A line is written to its file first and sent later, so that neither a hook nor a read waits for the
//! database. A derived file notes for each database how far a log has been sent. If it is lost, or if the
//! log has been rewritten, everything is sent again: an event has an id, and existing ones stay.
//!
//! Deliberately absent: verification of the lines of other copies. Each copy verifies the chain of its own
//! audit log; the database only adds lines.

use std::collections::BTreeMap;
use std::io;

use memctl_files::{PositionedFile as _, json};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::model::{Kind, Viewer};
use crate::store::files::directory::{self, AUDIT_LOG, EXECUTION_LOGS};
use crate::store::logs;
use crate::store::{AuditLine, DERIVED, Error, Scoped, SharedLine, atomic, redact};

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
    logs::read(text)?;
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
