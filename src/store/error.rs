//! The error of the store and of the operations on it, and problems found in its files.
//!
//! A refused request says in words why, and what to do instead. An error has a variant of its own only if some
//! code tests for it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memctl_files::{named, owned};
use memctl_search::embedder;
use serde::Serialize;

use crate::model::error::{Explain, Explanation, Kind as ErrorKind, of_io};
use crate::model::{InvalidSkillPath, Kind, MemoryType, SkillPath};
use crate::store::DIRECTORY;

/// Refusal of a lesson for one of its fields, so that its author can correct it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}`: {reason}")]
pub struct Refusal {
    /// Field of the lesson.
    pub field: &'static str,
    /// Reason.
    pub reason: String,
    /// Text that would pass.
    pub passes: String,
}

/// Error of an operation on the memory.
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
    /// No record has this id, id prefix, or `latest`; of this kind, if it is known.
    #[error("{} `{}` not found", .0.noun(), .1.escape_debug())]
    NotFound(Kind, String),
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
    #[error("{0}")]
    Primary(Box<dyn Explain>),
    /// A write failed that several requests share.
    #[error(transparent)]
    Group(Arc<Error>),
    /// The thread that should have written the record has ended.
    #[error("the write ended without an answer")]
    Abandoned,
    /// A record could not be serialized as JSON.
    #[error("cannot write the record as JSON")]
    Serialize(#[from] serde_json::Error),
    /// The skills directory does not exist or is not a directory.
    #[error("skills directory `{}` not found", .0.display())]
    NoSkills(PathBuf),
    /// No directory of that name has a SKILL.md.
    #[error(
        "skill `{skill}` not found{}",
        similar.as_ref().map_or_else(String::new, |similar| format!("; did you mean `{similar}`?"))
    )]
    NoSkill {
        /// Requested skill.
        skill: SkillPath,
        /// Skill with the most similar name, if there is one.
        similar: Option<SkillPath>,
    },
    /// A file of a skill is there and cannot be used: what is wrong, and the way out. Its path is relative to
    /// the project root.
    #[error("{0}")]
    BadSkill(String, &'static str),
    /// LLM call failed: nothing was paid, or the paid answer has been stored.
    #[error(transparent)]
    Llm(#[from] memctl_llm::Error),
    /// The embedder has failed.
    #[error(transparent)]
    Embedder(embedder::Error),
    /// Vector from the caller does not fit the vectors of this memory.
    #[error("the vector is zero, or has {found} dimensions instead of {expected}")]
    BadVector {
        /// Number of dimensions given.
        found: usize,
        /// Number of dimensions needed, without the zeros that may pad the vector.
        expected: usize,
    },
    /// Search index was rebuilt and is still damaged, because the records keep changing.
    #[error("cannot build the search index")]
    Index,
    /// Model name is not valid.
    #[error("`{}` cannot be used as a model: {reason}", given.escape_debug())]
    ModelName {
        /// Name as given.
        given: String,
        /// Reason for the rejection.
        reason: String,
    },
    /// File named by the user cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Lesson that is not stored as it was given.
    #[error(transparent)]
    Lesson(#[from] Refusal),
    /// Id has no known prefix.
    #[error("`{}` is not an id: ids look like `EXEC-20260220124341` or `REFL-003`", .0.escape_debug())]
    NoId(String),
    /// Record was deleted on purpose, or undone.
    #[error("{} `{id}` was removed on {day}", .kind.noun())]
    Forgotten {
        /// Id of the record.
        id: String,
        /// Kind of the record.
        kind: Kind,
        /// Day of the deletion: `2026-02-20`.
        day: String,
    },
    /// Model answered, but the execution could not be stored.
    #[error("the model answered, but the execution could not be stored; the answer is kept in `{}`", file.display())]
    NotStored {
        /// File that holds the whole execution.
        file: PathBuf,
        /// Error of the store.
        source: Box<Error>,
    },
    /// Request that cannot be done as it was given: its kind, the message, and the way out.
    #[error("{1}")]
    Refused(ErrorKind, String, String),
}

impl Error {
    /// No record of this kind has this id, or one like it.
    pub(crate) fn not_found(kind: Kind, id: &str) -> Self {
        Self::NotFound(kind, id.to_owned())
    }

    /// Refuses a file that is no JSON; `-` is the standard input.
    pub(crate) fn not_json(path: &Path, error: &serde_json::Error) -> Self {
        let path = path.display();
        let hint = format!("check it with: python3 -m json.tool {path}");
        Self::input(format!("`{path}` is not JSON: {error}"), hint)
    }

    /// Refuses a text that looks like a prompt injection and does not come from a person. The reason is a clause that
    /// starts with `it`.
    pub(crate) fn suspicious(reason: &str) -> Self {
        let hint = "only a user can add it: memctl memory add --type TYPE --content \"…\"";
        Self::input(format!("the text was not stored: {reason}"), hint)
    }

    /// Refuses a memory that does not fit its type, with all misfits, one sentence each.
    pub(crate) fn bad_memory(memory_type: MemoryType, problems: &[String]) -> Self {
        let message = match problems {
            [only] => only.clone(),
            all => format!(
                "{} problems with the {memory_type}: {}",
                all.len(),
                all.join("; ")
            ),
        };
        let hint = "correct what it names; memctl memory add --help lists the fields of each type";
        Self::input(message, hint)
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

    /// Converts an I/O error for a file outside of the store, which cannot be read.
    pub(crate) fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Unreadable { path, source }
    }

    /// Refuses an invalid value.
    pub(crate) fn input(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused(ErrorKind::Input, message.into(), hint.into())
    }

    /// Refuses a contradictory request, or one without its precondition.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused(ErrorKind::Usage, message.into(), hint.into())
    }

    /// Says that something does not exist.
    pub(crate) fn missing(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused(ErrorKind::NotFound, message.into(), hint.into())
    }

    /// Refuses an output file whose directory does not exist.
    pub(crate) fn no_parent(path: &Path) -> Self {
        let hint = path.parent().map_or_else(
            || "name another file".to_owned(),
            |parent| format!("mkdir -p {}", parent.display()),
        );
        let path = path.display();
        Self::input(
            format!("cannot write `{path}`: its directory does not exist"),
            hint,
        )
    }
}

impl From<InvalidSkillPath> for Error {
    fn from(error: InvalidSkillPath) -> Self {
        let (kind, hint) = error.explain();
        Self::Refused(kind, error.to_string(), hint.unwrap_or_default())
    }
}

impl From<embedder::Error> for Error {
    fn from(error: embedder::Error) -> Self {
        match error {
            embedder::Error::Llm(error) => Self::Llm(error),
            other => Self::Embedder(other),
        }
    }
}

/// Damage that is still there after the index was rebuilt.
impl From<memctl_search::Damaged> for Error {
    fn from(_: memctl_search::Damaged) -> Self {
        Self::Index
    }
}

/// A problem in a file. Reading continues around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error, schemars::JsonSchema)]
#[error("`{}` line {line} (byte {offset}): {message}", path.display())]
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
    /// Git has left the marks of a merge conflict in the file. Git has both sides of it.
    Conflict,
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

impl Explain for Error {
    fn explain(&self) -> Explanation {
        use ErrorKind::{Input, Internal, NotFound, Permission, Remote, Store, Usage};
        let say = |kind, hint: &str| (kind, Some(hint.to_owned()));
        match self {
            Self::Group(error) => error.explain(),
            Self::Primary(error) => error.explain(),
            Self::Llm(error) => error.explain(),
            Self::Embedder(error) => error.explain(),
            Self::NotStored { source, .. } => match source.explain() {
                (Remote, hint) => (Remote, hint),
                (_, hint) => (Store, hint),
            },
            Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                say(of_io(source), "name a file or a folder that is there")
            }
            Self::Unreadable { source, .. } => (of_io(source), None),
            Self::Exists(..) => (Input, None),
            Self::Serialize(_) | Self::Abandoned => (Internal, None),
            Self::Refused(kind, _, hint) => say(*kind, hint),
            Self::NotFound(kind, _) => say(NotFound, &format!("memctl list {}", kind.nouns())),
            Self::Forgotten { .. } => say(NotFound, "what removed it: memctl undo --list"),
            Self::Lesson(refusal) => say(Input, &refusal.passes),
            Self::Io { path, source, .. } => say(Store, &advice(path, source)),
            Self::OutOfScope(..) => say(Permission, "give a `--scope` that covers it"),
            Self::DisabledForUser(user) => {
                say(Permission, &format!("memctl memory enable --user {user}"))
            }
            Self::NoSkills(path) => {
                let hint = format!(
                    "write the instructions of the skill to `{}`; for a coding agent, without \
                     skills: memctl lesson add",
                    path.join("DOMAIN/SKILL/SKILL.md").display()
                );
                say(NotFound, &hint)
            }
            Self::NoSkill { similar, .. } => match similar {
                Some(similar) => say(NotFound, &format!("memctl run {similar}")),
                None => say(NotFound, "ls skills/*/"),
            },
            Self::Damaged(Problem {
                kind: ProblemKind::Conflict,
                ..
            }) => say(Store, MERGE_AGAIN),
            Self::Damaged(_) => say(Store, "memctl doctor --repair"),
            Self::Index => say(Store, "memctl index"),
            Self::NewerFormat { .. } => {
                let hint = "install a newer memctl; this one can only read the file";
                say(Store, hint)
            }
            Self::Locked { .. } => say(Store, "wait for the other process, or end it"),
            Self::Changing(..) => {
                let hint = "run the command again once the other program has saved the file";
                say(Store, hint)
            }
            Self::Disabled(..) => say(Usage, "memctl memory enable"),
            Self::NoPrimary(..) => {
                let hint = "set MEMCTL_DATABASE_URL and leave `--store json` out, or go back to files: \
                            memctl remote leave";
                say(Remote, hint)
            }
            Self::BadSkill(_, hint) => say(Input, hint),
            Self::NoId(_) => {
                let hint = "memctl list shows the ids; memctl search finds one by its words";
                say(Input, hint)
            }
            Self::BadVector { .. } => say(Input, "memctl config show lists the embedder"),
            Self::ModelName { .. } => {
                let hint = "an installed agent needs no key: --model 'exec:claude -p'";
                say(Input, hint)
            }
        }
    }
}

/// Way out of a merge that git made line by line, without the merge driver.
pub const MERGE_AGAIN: &str = "memctl init --git && git checkout --merge .agentura";

/// Returns the hint for an error of the system at a path.
pub fn advice(path: &Path, error: &io::Error) -> String {
    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
    let is_new_memory = path.ends_with(DIRECTORY) && !named::exists(path);
    match owned(path).filter(|_| is_denied) {
        Some((path, true)) => format!("chmod u+rwX {}", path.display()),
        Some(_) if is_new_memory => {
            "a memory is of a project: change to the directory of yours".to_owned()
        }
        Some((path, false)) => {
            let path = path.display();
            format!("`{path}` belongs to another user, who can run the command: ls -ld {path}")
        }
        None => format!(
            "check the permissions and the free space of `{}`",
            path.display()
        ),
    }
}
