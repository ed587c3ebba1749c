//! Errors of the store, and problems found in its files.
//!
//! Explanations of errors of the store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use memctl_files::{Owned, owned};
use serde::Serialize;

use crate::model::Kind;
use crate::model::error::{Explain, Explanation, Kind as Of};

/// Error of a database, in its own words.
#[derive(Debug)]
pub struct Fault(Box<dyn Explain>);

impl Fault {
    pub(super) fn explain(&self) -> Explanation {
        self.0.explain()
    }
}

impl<E: Explain> From<E> for Fault {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

/// Error of a store operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system reported an error.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The attempted action, to complete "cannot …".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process held the lock for longer than the time limit.
    #[error("`{}` has been locked by another process for {waited_ms} ms", path.display())]
    Locked {
        /// The memory directory of the workspace.
        path: PathBuf,
        /// Time waited, in milliseconds.
        waited_ms: u128,
    },
    /// Another program, which takes no lock, keeps changing the file. The write counts as not done.
    #[error("`{}` is being changed by another program", .0.display())]
    Changing(PathBuf),
    /// A newer program wrote the file: it can be read, but not written.
    #[error("`{}` has format {found}, and this program writes format {ours}", path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Format of the file.
        found: u64,
        /// Newest format that this program writes.
        ours: u64,
    },
    /// The file is damaged in a part that this operation needs.
    #[error("{0}")]
    Damaged(Problem),
    /// No record has this id.
    #[error("{} `{}` not found", kind.map_or("record", Kind::name), id.escape_debug())]
    NotFound {
        /// Requested kind, if known.
        kind: Option<Kind>,
        /// Requested id or id prefix, or `latest`.
        id: String,
        /// Similar ids, best first.
        similar: Vec<String>,
    },
    /// No workspace that was pulled, or more than one, has a name with this prefix.
    #[error("no single pulled workspace has a name that starts with `{}`", beginning.escape_debug())]
    NoOrigin {
        /// The given prefix.
        beginning: String,
        /// Names of the pulled workspaces.
        known: Vec<String>,
    },
    /// More than one id has this prefix.
    #[error("`{}` is a prefix of {count} ids", id.escape_debug())]
    Ambiguous {
        /// The given prefix.
        id: String,
        /// Number of matching ids.
        count: usize,
        /// Some of the matching ids.
        examples: Vec<String>,
    },
    /// The undo journal holds text that cannot be stored as a record.
    #[error("the undo journal holds no valid {kind} for `{id}`")]
    InvalidJournal {
        /// The kind of the record.
        kind: Kind,
        /// The id of the record.
        id: String,
    },
    /// A record with this id exists already.
    #[error("`{0}` exists already")]
    Exists(String),
    /// The caller's scope does not cover the record.
    #[error("`{}` is outside the scope", .0.escape_debug())]
    OutOfScope(String),
    /// The memory is disabled.
    #[error("memory is disabled by `{}`", .0.display())]
    Disabled(PathBuf),
    /// The memory is disabled for a user.
    #[error("memory is disabled for the user `{}`", .0.escape_debug())]
    DisabledForUser(String),
    /// The memory's primary is a database, and no connection is configured.
    #[error("the memory `{}` is stored in a database, and no connection is configured", .0.display())]
    NoPrimary(PathBuf),
    /// The primary database reported an error.
    #[error(transparent)]
    Primary(Fault),
    /// A write failed that several requests share.
    #[error(transparent)]
    Group(Arc<Error>),
    /// The thread that should have written the record has ended.
    #[error("the write ended without an answer")]
    Abandoned,
    /// A record could not be serialized as JSON.
    #[error("cannot write the record as JSON")]
    Serialize(#[from] serde_json::Error),
}

impl Error {
    /// No record of this kind has this id, or one like it.
    pub(crate) fn not_found(kind: Kind, id: &str) -> Self {
        Self::NotFound {
            kind: Some(kind),
            id: id.to_owned(),
            similar: Vec::new(),
        }
    }

    /// Returns a closure that turns an [`io::Error`] into an [`Error::Io`] with this path.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// A problem in a file. Reading continues around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// Byte position in the file.
    pub offset: u64,
    /// Line in the file, from 1.
    pub line: u64,
    /// Kind of problem, which decides what can be done about it.
    pub kind: ProblemKind,
    /// Description, as a lower-case fragment.
    pub message: String,
}

/// Kind of a [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// The file ends inside an entry, as after a crash. The next write repairs it.
    TornTail,
    /// Bytes that belong to no entry. Only `doctor --repair` changes them.
    Damage,
    /// An entry that cannot be parsed as a record of its kind. It is kept.
    Unreadable,
    /// Two entries with the same id.
    Duplicate,
    /// The file as a whole is invalid.
    File,
}

impl ProblemKind {
    /// Returns `true` if `doctor --repair` can repair the problem.
    pub const fn is_repairable(self) -> bool {
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

impl Explain for Error {
    fn explain(&self) -> Explanation {
        match self {
            Self::NotFound { kind, similar, .. } => {
                let list = kind.map_or("memctl memory status".to_owned(), |kind| {
                    format!("memctl list {}", kind.nouns())
                });
                let hint = match similar.first() {
                    Some(id) => format!("did you mean `{id}`? see: {list}"),
                    None => list,
                };
                (Of::NotFound, Some(hint))
            }
            Self::Ambiguous { examples, .. } => (
                Of::Input,
                Some(format!("give a longer prefix: {}", examples.join(", "))),
            ),
            Self::NoOrigin { known, .. } => (
                Of::NotFound,
                Some(if known.is_empty() {
                    "memctl sync".to_owned()
                } else {
                    format!("give a longer prefix: {}", known.join(", "))
                }),
            ),
            Self::Exists(..) => (Of::Input, None),
            Self::OutOfScope(..) => (
                Of::Permission,
                Some("give a `--scope` that covers it".to_owned()),
            ),
            Self::Damaged(_) => (Of::Store, Some("memctl doctor --repair".to_owned())),
            Self::Group(error) => error.explain(),
            Self::NewerFormat { .. } => (
                Of::Store,
                Some("install a newer memctl; this one can only read the file".to_owned()),
            ),
            Self::Locked { .. } => (
                Of::Store,
                Some("wait for the other process, or end it".to_owned()),
            ),
            Self::Changing(..) => (
                Of::Store,
                Some("run the command again once the other program has saved the file".to_owned()),
            ),
            Self::Io { path, source, .. } => (Of::Store, Some(advice(path, source))),
            Self::Disabled(..) => (Of::Usage, Some("memctl memory enable".to_owned())),
            Self::DisabledForUser(user) => (
                Of::Permission,
                Some(format!("memctl memory enable --user {user}")),
            ),
            Self::NoPrimary(..) => (
                Of::Remote,
                Some("set MEMCTL_DATABASE_URL, or go back to files: memctl remote leave".into()),
            ),
            Self::Primary(fault) => fault.explain(),
            Self::Serialize(_) | Self::Abandoned => (Of::Internal, None),
            Self::InvalidJournal { .. } => (Of::Store, None),
        }
    }
}

/// Returns the hint for an error of the system at a path.
pub fn advice(path: &Path, error: &io::Error) -> String {
    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
    let owned = is_denied.then(|| owned(path)).flatten();
    match owned {
        Some(Owned {
            path, is_own: true, ..
        }) => format!("chmod u+rwX {}", path.display()),
        Some(Owned { path, owner, .. }) => format!(
            "`{}` belongs to {owner}; run the command as {owner}",
            path.display()
        ),
        None => format!(
            "check the permissions and the free space of `{}`",
            path.display()
        ),
    }
}
