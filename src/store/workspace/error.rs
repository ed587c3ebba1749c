//! Errors of the verbs: of the workspace, of the rules in its files, and of sessions.
//!
//! A request that cannot be done is refused in words, with the way out, where it is read. An error has a
//! variant of its own if some code asks for it.

use std::path::{Path, PathBuf};

use memctl_search::embedder;

use crate::model::error::{Explain, Explanation, Kind as ErrorKind, of_io};
use crate::model::{InvalidSkillPath, Kind, MemoryType, SkillPath};
use crate::store::{self, skill};

pub(crate) use crate::model::error::message as chain;

impl From<embedder::Error> for Error {
    fn from(error: embedder::Error) -> Self {
        match error {
            embedder::Error::Llm(error) => Self::Llm(error),
            other => Self::Embedder(other),
        }
    }
}

/// Refusal of a lesson for one of its fields, so that its author can mend it.
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

/// Error of an engine operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Data files: the store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Skill files: reading or checking failed.
    #[error(transparent)]
    Skill(#[from] skill::Error),
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
    /// Text is not a skill path.
    #[error(transparent)]
    SkillPath(#[from] InvalidSkillPath),
    /// Model name is not valid.
    #[error("`{}` cannot be used as a model: {reason}", given.escape_debug())]
    ModelName {
        /// Name as given.
        given: String,
        /// Reason for the rejection.
        reason: String,
    },
    /// File named by the user is not JSON.
    #[error("`{}` is not JSON", path.display())]
    NotJson {
        /// Path of the file; `-` for standard input.
        path: PathBuf,
        /// Position and cause.
        source: serde_json::Error,
    },
    /// File named by the user cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Model call failed; the attempt is recorded as an execution.
    #[error("{source}")]
    Asked {
        /// Id of that execution.
        execution: String,
        /// Error of the call.
        source: memctl_llm::Error,
    },
    /// Correction has no text.
    #[error("the correction is empty")]
    EmptyCorrection,
    /// Rule that an agent heard cannot be recorded as it gave it.
    #[error("`{field}` {reason}")]
    NotHeard {
        /// Field to mend.
        field: &'static str,
        /// Fault, as a clause that follows the name of the field.
        reason: String,
    },
    /// Lesson that is not stored as it was given.
    #[error(transparent)]
    Lesson(#[from] Refusal),
    /// Execution belongs to another skill.
    #[error("`{execution}` is an execution of `{actual}`, not of `{skill}`")]
    OtherSkill {
        /// Id of the execution.
        execution: String,
        /// Skill that the execution ran.
        actual: String,
        /// Skill that the caller named.
        skill: SkillPath,
    },
    /// Id has no known prefix.
    #[error("`{}` is not an id: ids look like `EXEC-20260220124341` or `REFL-003`", .0.escape_debug())]
    NoId(String),
    /// Record was deleted on purpose.
    #[error("{kind} `{id}` was forgotten on {day}")]
    Forgotten {
        /// Id of the record.
        id: String,
        /// Kind of the record.
        kind: Kind,
        /// Day of the deletion: `2026-02-20`.
        day: String,
    },
    /// Memory does not fit its type.
    #[error("{}", match problems.as_slice() {
        [only] => only.clone(),
        all => format!("{} problems with the {}: {}", all.len(), memory_type.name(), all.join("; ")),
    })]
    BadMemory {
        /// Type of the memory.
        memory_type: MemoryType,
        /// All misfits, one sentence each.
        problems: Vec<String>,
    },
    /// Text looks like a prompt injection and does not come from a person.
    #[error("the text was not stored: {reason}")]
    Suspicious {
        /// Result of the screening, as a clause that starts with `it`.
        reason: String,
    },
    /// Model answered, but the execution could not be stored.
    #[error("the model answered, but the execution could not be stored; the answer is kept in `{}`", kept.display())]
    NotStored {
        /// File that holds the whole execution.
        kept: PathBuf,
        /// Error of the store.
        source: store::Error,
    },
    /// Request that cannot be done as it was given: its kind, the message, and the way out.
    #[error("{1}")]
    Refused(ErrorKind, String, String),
}

impl Error {
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

/// Damage that is still there after the index was rebuilt.
impl From<memctl_search::Damaged> for Error {
    fn from(_: memctl_search::Damaged) -> Self {
        Self::Index
    }
}

/// Hint for a runtime that cannot be started.
const RUNTIME: &str = "check the limits on threads and open files: ulimit -a";

impl Explain for Error {
    fn explain(&self) -> Explanation {
        let input = |hint: &str| (ErrorKind::Input, Some(hint.to_owned()));
        match self {
            Self::Store(error) => error.explain(),
            Self::Skill(error) => error.explain(),
            Self::Llm(error) => error.explain(),
            Self::Refused(kind, _, hint) => (*kind, Some(hint.clone())),
            Self::Asked { execution, source } => recorded(execution, source),
            Self::SkillPath(error) => error.explain(),
            Self::ModelName { .. } => input("memctl config show"),
            Self::NotJson { path, .. } => input(&format!(
                "check it with: python3 -m json.tool {}",
                path.display()
            )),
            Self::Embedder(error) => error.explain(),
            Self::Index => (ErrorKind::Store, Some("memctl index".to_owned())),
            Self::Unreadable { source, .. } => {
                let is_missing = source.kind() == std::io::ErrorKind::NotFound;
                let hint = is_missing.then(|| "name a file or a folder that is there".to_owned());
                (of_io(source), hint)
            }
            Self::EmptyCorrection => input("say what should change: --correction \"…\""),
            Self::NotHeard { .. } => input("memctl correct --help lists the fields of `--heard`"),
            Self::Lesson(refusal) => input(&refusal.passes),
            Self::OtherSkill {
                actual, execution, ..
            } => input(&format!(
                "memctl correct {actual} --execution-id {execution} --correction \"…\""
            )),
            Self::NoId(_) => {
                input("memctl list shows the ids; memctl search finds one by its words")
            }
            Self::Forgotten { kind, .. } => (
                ErrorKind::NotFound,
                Some(format!("memctl list {}", kind.nouns())),
            ),
            Self::BadVector { .. } => input("memctl config show lists the embedder"),
            Self::BadMemory { .. } => {
                input("memctl memory add --help lists the fields of each type")
            }
            Self::Suspicious { .. } => {
                input("only a user can add it: memctl memory add --type TYPE --content \"…\"")
            }
            Self::NotStored { source, .. } => {
                let (kind, hint) = source.explain();
                let is_remote = kind == ErrorKind::Remote;
                (if is_remote { kind } else { ErrorKind::Store }, hint)
            }
        }
    }
}

/// Explains a failed call of a model whose attempt is recorded.
fn recorded(execution: &str, source: &memctl_llm::Error) -> Explanation {
    let (kind, hint) = source.explain();
    let recorded = format!("the attempt is recorded: memctl show {execution}");
    let hint = hint.map_or(recorded.clone(), |hint| format!("{hint}; {recorded}"));
    (kind, Some(hint))
}

impl Explain for embedder::Error {
    fn explain(&self) -> Explanation {
        match self {
            Self::Load(_) | Self::Run(_) | Self::NoVector => (ErrorKind::Model, None),
            Self::Llm(error) => error.explain(),
            Self::VectorSize { .. } => {
                (ErrorKind::Model, Some("memctl index --rebuild".to_owned()))
            }
            Self::Runtime { .. } => (ErrorKind::Io, Some(RUNTIME.to_owned())),
        }
    }
}
