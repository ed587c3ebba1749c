//! Logs of agents, in lines, and what is counted beside them.
//!
//! - `execution_logs`: actions of agents. `retrievals`: uses of records. `shared`: lines on their way to a
//!   database.
//! - Here: the hint log, `hints.jsonl`, with one line for each error with known hints, written when its outcome
//!   is known; and the count of calls that ran although their rules were not checked in time.
//!
//! One byte of `.index/late_calls` stands for one such call: the thread that writes it may wait for
//! nothing. The file is this machine's, and deleting it starts again at zero.

pub(crate) mod execution_logs;
pub(crate) mod retrievals;
pub(crate) mod shared;

use memctl_files::Directory;

use crate::model::Trial;
use crate::store::files::directory::HINTS;
use crate::store::files::log::{self, Sync};
use crate::store::{DERIVED, Error, Scoped, Writer};

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
