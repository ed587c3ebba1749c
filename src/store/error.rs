//! What can go wrong in the store, and what is merely noticed.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::model::Kind;

/// Why the store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was tried, to complete "cannot …".
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Another process has held the lock for longer than the time limit.
    #[error("`{}` has been locked by another process for {waited_ms} ms", path.display())]
    Locked {
        /// The workspace's memory directory.
        path: PathBuf,
        /// How long this process has waited.
        waited_ms: u128,
    },
    /// Another program, which takes no lock, changes the file again and again. Nothing of this write is in it.
    #[error("`{}` is being changed by another program", path.display())]
    Changing {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a newer program: it is read, but not written.
    #[error("`{}` has format {found}, and this program writes format {ours}", path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// The format that it says it has.
        found: u64,
        /// The newest format that this program writes.
        ours: u64,
    },
    /// Two versions of a file cannot be made one.
    #[error("`{name}` cannot be joined: {reason}")]
    Unjoinable {
        /// The file.
        name: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// The file is damaged in a place that must be whole for this operation.
    #[error("{0}")]
    Damaged(Problem),
    /// No record has this id.
    #[error("{} `{}` not found", kind.map_or("record", Kind::name), id.escape_debug())]
    NotFound {
        /// The kind that was looked for, where it was known.
        kind: Option<Kind>,
        /// The id, prefix or `latest` that was looked for.
        id: String,
        /// Ids that look like it, best first.
        similar: Vec<String>,
    },
    /// No workspace that was pulled, or more than one, is called like this.
    #[error("`{}` is the beginning of the name of no single workspace that was pulled", beginning.escape_debug())]
    NoOrigin {
        /// What was given.
        beginning: String,
        /// Those that were pulled.
        known: Vec<String>,
    },
    /// More than one id starts like this.
    #[error("`{}` is the beginning of {count} ids", id.escape_debug())]
    Ambiguous {
        /// What was given.
        id: String,
        /// How many ids start with it.
        count: usize,
        /// A few of them.
        examples: Vec<String>,
    },
    /// The undo journal holds a text that cannot stand among the records.
    #[error("the undo journal holds no valid {kind} for `{id}`")]
    InvalidJournal {
        /// The kind of the record.
        kind: Kind,
        /// The id of the record.
        id: String,
    },
    /// A record with this id exists already.
    #[error("`{id}` exists already")]
    Exists {
        /// The id.
        id: String,
    },
    /// The scope of the caller does not cover this.
    #[error("`{}` is outside the scope", what.escape_debug())]
    OutOfScope {
        /// The skill or record that was to be written.
        what: String,
    },
    /// The memory is switched off.
    #[error("memory is disabled by `{}`", path.display())]
    Disabled {
        /// The marker that says so.
        path: PathBuf,
    },
    /// The memory lies in a database, and nobody has said how to get there.
    #[error("the memory `{}` lies in a database that is not named", path.display())]
    NoPrimary {
        /// The memory directory.
        path: PathBuf,
    },
    /// The database that the memory lies in did not do what was asked.
    #[error(transparent)]
    Primary(super::Fault),
    /// A record could not be turned into JSON.
    #[error("cannot write the record as JSON")]
    Serialize(#[from] serde_json::Error),
}

impl Error {
    /// Makes a closure that turns an [`io::Error`] into an [`Error::Io`] with its path.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// Something in a file that is not as it should be. Reading goes on around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// Byte position in the file.
    pub offset: u64,
    /// Line in the file, from 1.
    pub line: u64,
    /// What kind of problem it is, and so what may be done about it.
    pub kind: ProblemKind,
    /// What is wrong, as a lower-case fragment.
    pub message: String,
}

/// What kind of problem a [`Problem`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// The file ends inside an entry, as after a crash. The next write mends it.
    TornTail,
    /// Bytes that belong to no entry. Only `doctor --repair` touches them.
    Damage,
    /// An entry that is kept but cannot be read as a record of its kind.
    Unreadable,
    /// Two entries with the same id.
    Duplicate,
    /// The file as a whole is not what it should be.
    File,
}

impl ProblemKind {
    /// Whether `doctor --repair` can do something about it.
    pub const fn is_mendable(self) -> bool {
        matches!(self, Self::TornTail | Self::Damage | Self::File)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` line {} (byte {}): {}",
            self.path.display(),
            self.line,
            self.offset,
            self.message
        )
    }
}
