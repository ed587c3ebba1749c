//! Logs of agents, in lines, and the counters beside them.
//!
//! - `execution_logs`: actions of agents. `shared`: lines on their way to a database.
//! - Here: the hint log, `hints.jsonl`, with one line for each error that had hints, written when its
//!   outcome is certain; the count of calls that ran although their rules were not checked in time; and how
//!   often a record was put into a prompt or an answer.
//!
//! One byte of `.index/late_calls` stands for one late call, because the thread that writes it must not wait.
//! The file is of this machine, and deleting it starts again at zero.
//!
//! A count must neither delay nor fail a read. So each read appends one line without a lock, and a failed
//! append is ignored. A process that gets the lock of a large file at once folds it to one line a record; a
//! line appended at that moment may be lost. The file is derived: it is in no export, no sync and no merge.
//! Without it the counts start at zero, and nothing else is lost.

pub(crate) mod execution_logs;
pub(crate) mod shared;

use std::collections::BTreeMap;

use memctl_files::Directory;
use serde::{Deserialize, Serialize};

use crate::model::Trial;
use crate::store::files::directory::HINTS;
use crate::store::files::log::{self, Sync};
use crate::store::{DERIVED, Error, Scoped, Writer, atomic};

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
        let text = self.redacted(trial)?;
        log::append_all(self.lock(), HINTS, &[text], Sync::Wait)
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
        let total = found.entry(id).or_default();
        total.times = total.times.saturating_add(use_.times);
        total.last = std::mem::take(&mut total.last).max(use_.last);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;

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
mod tests_of_retrievals {
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
}
