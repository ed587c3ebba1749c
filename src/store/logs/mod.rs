//! Logs of agents, in lines: executions, hints and uses.
//!
//! - `execution_logs`: actions of agents.
//! - Here: audit events on their way to a database, how often a record was put into a prompt or an answer, calls whose rules were not checked in time,
//!   and the hint log, `hints.jsonl`, with one line for each error with known hints, written when its outcome
//!   is known.
//!
//! Reads must neither wait nor fail because they are counted. So a count is one line that is
//! appended without a lock, and a failed append is ignored. A large file is folded to one line a
//! record by a process that gets its lock at once; a line appended at that moment may be lost.
//!
//! The file is derived: it is in no export, no sync and no merge. Without it the counts start at
//! zero, and nothing else is lost.
//!
//! Count of calls that ran although their rules were not checked in time.
//!
//! One byte of `.index/late_calls` stands for one call: the thread that writes it may wait for
//! nothing. The file is this machine's, and deleting it starts again at zero.
//!
//! Audit events on their way to a database, and those of all copies there.
//!
//! A line is written to its file first and sent later, so that neither a hook nor a read waits for the
//! database; so is a line of the log of agents. A derived file notes for each database how far a log has been sent. If it is lost, or if the
//! log has been rewritten, everything is sent again: an event has an id, and what is there stays.
//!
//! Deliberately absent: verification of the lines of other copies. Each copy verifies the chain of its own
//! audit log; the database only adds lines.

pub(crate) mod execution_logs;

use std::collections::BTreeMap;

use memctl_files::{Directory, PositionedFile as _, json};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use crate::model::Trial;
use crate::store::audit::Line;
use crate::store::files::directory::{self, AUDIT_LOG, EXECUTION_LOGS, HINTS};
use crate::store::files::log;
use crate::store::{DERIVED, Error, Scoped, SharedLine, Writer, atomic, redact};

const RETRIEVALS: &str = "retrievals.jsonl";
const LOCK: &str = "retrievals.lock";
/// Size in bytes from which the file is folded.
const FOLDED: u64 = 256 << 10;
/// Maximum size in bytes; a larger file is not ours.
const LARGEST: u64 = 16 << 20;

/// Use of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Retrieved {
    /// Number of retrievals.
    #[serde(rename = "retrieved", default)]
    pub times: u64,
    /// Time of the last one: RFC 3339, UTC; empty if unknown.
    #[serde(rename = "last_retrieved", default, skip_serializing_if = "String::is_empty")]
    pub last: String,
}

#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
struct Retrieval {
    id: String,
    #[serde(flatten)]
    use_: Retrieved,
}

impl Scoped {
    /// Counts one retrieval of each record. Creates no memory, takes no lock and never fails.
    pub fn count_retrievals<'a>(&self, ids: impl IntoIterator<Item = &'a str>) {
        let now = self.access().now;
        let last = now.map(|now| now.to_rfc3339_opts(chrono::SecondsFormat::Secs, true));
        let lines = ids.into_iter().map(|id| Retrieval {
            id: id.to_owned(),
            use_: Retrieved {
                times: 1,
                last: last.clone().unwrap_or_default(),
            },
        });
        let lines: Vec<Retrieval> = lines.collect();
        if !lines.is_empty() {
            drop(self.append_retrievals(&lines));
        }
    }

    fn append_retrievals(&self, lines: &[Retrieval]) -> Result<(), Error> {
        let directory = self.directory();
        if !directory.check().map_err(Error::io("read", directory))? {
            return Ok(());
        }
        self.must_be_enabled()?;
        let derived = directory.below(DERIVED);
        atomic::create_dir(&derived)?;
        atomic::append(&derived, RETRIEVALS.as_ref(), &text(lines)?, false)?;
        fold(&derived)
    }

    /// Returns the use of every record that was retrieved, by id.
    pub fn retrievals(&self) -> BTreeMap<String, Retrieved> {
        read(&self.directory().below(DERIVED))
    }
}

fn text(lines: &[Retrieval]) -> Result<String, Error> {
    let mut text = String::new();
    for line in lines {
        text.push_str(&serde_json::to_string(line)?);
        text.push('\n');
    }
    Ok(text)
}

fn read(derived: &Directory) -> BTreeMap<String, Retrieved> {
    let mut found: BTreeMap<String, Retrieved> = BTreeMap::new();
    let bytes = derived.read(RETRIEVALS, LARGEST).ok().flatten();
    for line in bytes.unwrap_or_default().split(|byte| *byte == b'\n') {
        let Ok(Retrieval { id, use_ }) = serde_json::from_slice(line) else {
            continue;
        };
        let known = found.entry(id).or_default();
        known.times = known.times.saturating_add(use_.times);
        known.last = std::mem::take(&mut known.last).max(use_.last);
    }
    found
}

/// Folds a large file to one line a record.
fn fold(derived: &Directory) -> Result<(), Error> {
    let path = derived.join(RETRIEVALS);
    let file = derived.open(RETRIEVALS).map_err(Error::io("read", &path))?;
    let length = file.and_then(|file| Some(file.metadata().ok()?.len()));
    if length.is_none_or(|length| length <= FOLDED) {
        return Ok(());
    }
    let lock = atomic::open_or_create(derived, LOCK)?;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    let lines = read(derived).into_iter();
    let lines: Vec<Retrieval> = lines.map(|(id, use_)| Retrieval { id, use_ }).collect();
    let folded = text(&lines)?;
    let done = derived.replace_derived(RETRIEVALS, &[folded.as_bytes()]);
    done.map_err(Error::io("write", &path))
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

impl Writer {
    /// Appends a line to the hint log.
    pub fn append_trial(&mut self, trial: &Trial) -> Result<(), Error> {
        if !self.store().scope().allows(None) {
            return Err(Error::OutOfScope(HINTS.to_owned()));
        }
        let text: Box<RawValue> = serde_json::from_str(&self.redacted(trial)?.0)?;
        log::append(self.lock(), HINTS, &text)
    }
}

impl Scoped {
    /// Returns the outcomes of errors with known hints, oldest first. They belong to no domain, so a
    /// limited scope sees none.
    pub fn trials(&self) -> Result<Vec<Trial>, Error> {
        if !self.scope().allows(None) {
            return Ok(Vec::new());
        }
        let lines = log::lines(self.directory(), HINTS)?;
        let trials = lines.iter().map(|line| serde_json::from_slice(line));
        Ok(trials.filter_map(Result::ok).collect())
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

/// Events that a database does not have yet.
#[derive(Debug)]
pub struct Unsent {
    /// The lines, oldest first, redacted.
    pub lines: Vec<SharedLine>,
    mark: Mark,
}

impl Scoped {
    /// Sends the lines that the primary database does not have yet. Does nothing if the files are the
    /// primary store. Returns the number of lines sent.
    pub fn share_lines(&self) -> Result<u64, Error> {
        let (Some(primary), Some(name)) = (self.primary(), self.primary_name()?) else {
            return Ok(0);
        };
        self.must_be_enabled()?;
        let database = format!("{} {}", name.database, name.origin);
        let unsent = self.unsent(&database)?;
        if !unsent.lines.is_empty() {
            primary.put_audit(&unsent.lines)?;
        }
        self.note_sent(&database, &unsent);
        let log = format!("{database} {EXECUTION_LOGS}");
        let actions = self.unsent_lines(EXECUTION_LOGS, &log, &action_of)?;
        let texts = actions.lines.iter().map(|line| line.text.clone());
        let texts: Vec<String> = texts.collect();
        if !texts.is_empty() {
            primary.put_logs(&texts).map_err(Error::Primary)?;
        }
        self.note_sent(&log, &actions);
        Ok(unsent.lines.len() as u64)
    }

    /// Reads the events that `database` does not have yet. Costs one look at the size of the file if
    /// there are none.
    pub fn unsent(&self, database: &str) -> Result<Unsent, Error> {
        self.unsent_lines(AUDIT_LOG, database, &line_of)
    }

    fn unsent_lines(
        &self,
        file: &str,
        database: &str,
        line_of: &dyn Fn(&[u8]) -> Option<SharedLine>,
    ) -> Result<Unsent, Error> {
        let path = self.directory().join(file);
        let failed = || Error::io("read", &path);
        let mut unsent = Unsent {
            lines: Vec::new(),
            mark: Mark::default(),
        };
        let Some(file) = directory::open_data(self.directory(), file)? else {
            return Ok(unsent);
        };
        let length = file.metadata().map_err(failed())?.len();
        let mut known = self.marks().get(database).copied().unwrap_or_default();
        if known.bytes == length {
            unsent.mark = known;
            return Ok(unsent);
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
        if known.bytes > length || end_of(known.bytes).map_err(failed())? != known.end {
            known = Mark::default();
        }
        let bytes = bytes_from(known.bytes, length).map_err(failed())?;
        // Another process may be writing the last line.
        let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
        let whole = bytes.get(..whole).unwrap_or_default();
        let lines = whole.split_inclusive(|byte| *byte == b'\n');
        unsent.lines.extend(lines.filter_map(line_of));
        let at = known.bytes + whole.len() as u64;
        unsent.mark = Mark {
            bytes: at,
            end: end_of(at).map_err(failed())?,
        };
        Ok(unsent)
    }

    /// Notes that `database` has these events. Ignores failure, because they can be sent again.
    pub fn note_sent(&self, database: &str, unsent: &Unsent) {
        let mut marks = self.marks();
        if marks.insert(database.to_owned(), unsent.mark) == Some(unsent.mark) {
            return;
        }
        let bytes = serde_json::to_vec(&marks).unwrap_or_default();
        directory::keep_derived(self.directory(), SENT, &[&bytes]);
    }

    fn marks(&self) -> Marks {
        atomic::read_json(&self.directory().below(DERIVED), SENT).unwrap_or_default()
    }

    /// Visits the audit events of all copies of this memory, oldest first, as [`Scoped::audited`] does with
    /// those of this one.
    pub fn audited_by_all(&self, visit: &mut dyn FnMut(Line)) -> Result<(), Error> {
        let Some(primary) = self.primary().filter(|_| self.scope().allows(None)) else {
            return self.audited(visit);
        };
        self.share_lines()?;
        // The database may have dropped the oldest lines of this copy.
        let mut is_first = true;
        let mut failed = None;
        let done = primary.audit(&mut |line| {
            let Ok(line) = serde_json::from_str::<Line>(&line.text) else {
                return;
            };
            if std::mem::take(&mut is_first) {
                failed = self.audited_before(&line.at, visit).err();
            }
            match self.seen_part(line) {
                Ok(line) => drop(line.map(&mut *visit)),
                Err(error) => failed = Some(error),
            }
        });
        done?;
        if is_first {
            return self.audited(visit);
        }
        failed.map_or(Ok(()), Err)
    }

    fn audited_before(&self, at: &str, visit: &mut dyn FnMut(Line)) -> Result<(), Error> {
        self.audited(&mut |line| {
            if line.at.as_str() < at {
                visit(line);
            }
        })
    }
}

/// A line of the log of agents with its id; `None` if the line is not one.
fn action_of(text: &[u8]) -> Option<SharedLine> {
    let id = execution_logs::read(text)?.id;
    let text = std::str::from_utf8(text.trim_ascii()).ok()?.to_owned();
    Some(SharedLine { id, text })
}

/// An event with its id; `None` if the line is not one.
fn line_of(text: &[u8]) -> Option<SharedLine> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    let text = redact(text).text.into_owned();
    serde_json::from_str::<Line>(&text).ok()?;
    let id = json::string_field(text.as_bytes(), "hash")?.into_owned();
    Some(SharedLine { id, text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;

    fn store(directory: &std::path::Path) -> Scoped {
        Scoped::new(directory, Scope::All).at(chrono::DateTime::UNIX_EPOCH)
    }

    #[test]
    fn retrievals_are_counted_by_record() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        store.count_retrievals(["PROC-001", "PROC-002@3f2a"]);
        store.count_retrievals(["PROC-001"]);
        store.count_retrievals([]);
        let found = store.retrievals();
        let of = |id: &str| (found[id].times, found[id].last.as_str());
        assert_eq!(of("PROC-001"), (2, "1970-01-01T00:00:00Z"));
        assert_eq!((of("PROC-002@3f2a").0, found.len()), (1, 2));
    }

    #[test]
    fn counting_creates_no_memory_and_ignores_what_it_cannot_read() {
        let dir = tempfile::tempdir().unwrap();
        let missing = store(&dir.path().join("none"));
        missing.count_retrievals(["PROC-001"]);
        assert!(missing.retrievals().is_empty());
        assert!(!missing.directory().check().unwrap());
        let store = store(dir.path());
        store.count_retrievals(["PROC-001"]);
        let derived = store.directory().below(DERIVED);
        derived.append(RETRIEVALS, b"broken\n{}\n", false).unwrap();
        store.count_retrievals(["PROC-001"]);
        assert_eq!(store.retrievals()["PROC-001"].times, 2);
    }

    #[test]
    fn large_file_is_folded_without_a_loss() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let ids = vec!["PROC-001"; 4_000];
        store.count_retrievals(ids.iter().copied());
        let length = || {
            let derived = store.directory().below(DERIVED);
            derived.read(RETRIEVALS, LARGEST).unwrap().unwrap().len()
        };
        assert!(length() < 200, "{}", length());
        store.count_retrievals(["PROC-001"]);
        assert_eq!(store.retrievals()["PROC-001"].times, 4_001);
    }

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

    #[test]
    fn lines_come_back_and_a_narrow_scope_sees_and_writes_none() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let trial = Trial {
            session: "s".to_owned(),
            repeats: 2,
            ..Trial::default()
        };
        let random = &mut || "key".to_owned();
        store.write(random).unwrap().append_trial(&trial).unwrap();
        assert_eq!(store.trials().unwrap(), std::slice::from_ref(&trial));
        let narrow = Scoped::new(dir.path(), Scope::parse("hr"));
        assert_eq!(narrow.trials().unwrap(), []);
        let refused = narrow.write(random).unwrap().append_trial(&trial);
        assert!(matches!(refused, Err(Error::OutOfScope(..))));
    }
}

#[cfg(test)]
mod tests_of_sharing {
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
        let unsent = store.unsent(database).unwrap();
        store.note_sent(database, &unsent);
        unsent.lines
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
