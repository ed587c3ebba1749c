//! Logs in lines: `execution_logs` has the actions of agents, `shared` their lines on the way to a database.
//! Here: a count of the calls that ran although their rules were not checked in time.
//!
//! One byte of `.index/late_calls` stands for one late call, because the thread that writes it must not wait.
//! The file is of this machine, and deleting it starts again at zero.

pub(crate) mod execution_logs;
pub(crate) mod shared;

use memctl_files::Directory;

use crate::store::DERIVED;

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
