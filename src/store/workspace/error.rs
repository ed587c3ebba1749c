//! Error type of the engine.

use std::path::PathBuf;

use crate::model::{InvalidSkillPath, Kind, MemoryType, SkillPath};
use crate::store::{self, skill};

impl From<memctl_search::embedder::Error> for Error {
    fn from(error: memctl_search::embedder::Error) -> Self {
        use memctl_search::embedder::Error as Of;
        match error {
            Of::Embed(error) => Self::Embed(error),
            Of::Llm(error) => Self::Llm(error),
            Of::VectorSize {
                embedder,
                found,
                expected,
            } => Self::VectorSize {
                embedder,
                found,
                expected,
            },
            Of::Runtime { source } => Self::Runtime { source },
        }
    }
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
    /// Directory of an output file does not exist.
    #[error("cannot write `{}`: its directory does not exist", path.display())]
    NoParent {
        /// Path of the file.
        path: PathBuf,
    },
    /// Path given by the user does not exist.
    #[error("`{}` does not exist", path.display())]
    NoPath {
        /// Path as it was resolved.
        path: PathBuf,
    },
    /// Embedding model on this machine failed.
    #[error(transparent)]
    Embed(#[from] memctl_search::embedder::EmbedError),
    /// Embedder returned vectors of the wrong size.
    #[error("`{embedder}` returned vectors of {found} dimensions, but {expected} are expected")]
    VectorSize {
        /// Name of the embedder.
        embedder: String,
        /// Number of dimensions returned.
        found: usize,
        /// Number of dimensions expected.
        expected: usize,
    },
    /// Vector from the caller does not fit the vectors of this memory.
    #[error("the vector is zero, or has {found} dimensions instead of {expected}")]
    BadVector {
        /// Number of dimensions given.
        found: usize,
        /// Number of dimensions needed, without the zeros that may pad the vector.
        expected: usize,
    },
    /// Async runtime cannot be started.
    #[error("cannot start the async runtime")]
    Runtime {
        /// Error of the operating system.
        source: std::io::Error,
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
    /// No known case is near enough to answer, as it was asked to.
    #[error("no known case of `{skill}` is near enough to this input ({nearest})")]
    NoNearCase {
        /// Path of the skill.
        skill: SkillPath,
        /// Description of the nearest case.
        nearest: String,
    },
    /// No model is configured, and no known case is nearly the same as the input.
    #[error("no model is configured, and no known case answers for `{skill}` ({nearest})")]
    NoModel {
        /// Path of the skill.
        skill: SkillPath,
        /// Description of the nearest case.
        nearest: String,
        /// Installed programs that can answer, as `--model` takes them.
        agents: Vec<String>,
        /// `true` if there is a case that `--model offline` would answer with.
        replayable: bool,
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
    /// No input was given, and the skill has no sample input.
    #[error("`{0}` has no `fixtures/sample_input.json` to run with")]
    NoInput(SkillPath),
    /// Model call failed; the attempt is recorded as an execution.
    #[error("{source}")]
    Asked {
        /// Id of that execution.
        execution: String,
        /// Error of the call.
        source: memctl_llm::Error,
    },
    /// Session operation failed.
    #[error(transparent)]
    Session(#[from] super::SessionError),
    /// Skill has no such test case.
    #[error("`{skill}` has no test case `{case}`")]
    NoCase {
        /// Skill that the caller named.
        skill: SkillPath,
        /// Name of the case.
        case: String,
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
    /// Record has no open merge conflict in the named field.
    #[error("`{id}` has no such open merge conflict")]
    NothingOpen {
        /// Id of the record.
        id: String,
        /// Fields with an open conflict, as JSON pointers.
        open: Vec<String>,
    },
    /// Undo journal holds no change of this user that can be reverted.
    #[error("the undo journal has no change of this user to revert")]
    NothingToUndo,
    /// Name matches no change, or more than one.
    #[error("`{}` matches no change, or more than one", .0.escape_debug())]
    NoChange(String),
    /// Change cannot be reverted.
    #[error("`{change}` was not reverted: {}", reasons.join("; "))]
    NotUndoable {
        /// Name of the change.
        change: String,
        /// Reasons, one per obstacle.
        reasons: Vec<String>,
    },
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
    /// Records of this kind cannot be approved.
    #[error("{kind} `{id}` cannot be approved: only procedures and imported notes are observed")]
    NotApprovable {
        /// Id of the record.
        id: String,
        /// Kind of the record.
        kind: Kind,
    },
    /// Records of this kind, or with this trust, cannot be rejected.
    #[error(
        "{kind} `{id}` cannot be rejected: only candidate rules and observed procedures are proposals"
    )]
    NotRejectable {
        /// Id of the record.
        id: String,
        /// Kind of the record.
        kind: Kind,
    },
    /// Record does not belong into the user store.
    #[error("{kind} `{id}` cannot be promoted: {reason}")]
    NotPromotable {
        /// Id of the record.
        id: String,
        /// Kind of the record.
        kind: Kind,
        /// Reason for the refusal.
        reason: &'static str,
    },
    /// Id of a record of another kind, where a rule is needed.
    #[error("`{id}` is a {kind}, not a rule")]
    NotARule {
        /// Id of the record.
        id: String,
        /// Kind of the record.
        kind: Kind,
    },
    /// A rule that acts on no call has no action.
    #[error("`{id}` has no patterns: no call can be seen to break it")]
    NoPatterns {
        /// Id of the rule.
        id: String,
    },
    /// Rule that a rejection cannot count against.
    #[error("`{rule}` was not in the prompt of `{execution}`, or does not apply to it")]
    NotInjected {
        /// Id of the rule.
        rule: String,
        /// Id of the execution.
        execution: String,
        /// Ids of the rules that applied.
        injected: Vec<String>,
    },
    /// Two records cannot be merged.
    #[error("`{other}` cannot be merged into `{keep}`: {reason}")]
    NotMergeable {
        /// Id of the record to keep.
        keep: String,
        /// Id of the record to merge into it.
        other: String,
        /// Reason for the refusal.
        reason: String,
    },
    /// Field cannot be edited, or the record has no editable field.
    #[error("{} of {kind} `{id}` cannot be edited", match field {
        Some(field) => format!("`{}`", field.escape_debug()),
        None => "the fields".to_owned(),
    })]
    NotEditable {
        /// Id of the record.
        id: String,
        /// Kind of the record.
        kind: Kind,
        /// Field that the caller named; `None` if no field was named.
        field: Option<String>,
        /// Names of the editable fields.
        allowed: Vec<&'static str>,
    },
    /// Value does not fit the field.
    #[error("invalid value for `{field}`: {reason}")]
    BadField {
        /// Name of the field.
        field: &'static str,
        /// Form that the field requires.
        reason: &'static str,
    },
    /// Cost limit for a model without a known price.
    #[error("the price of `{model}` is unknown, so a cost limit cannot hold")]
    UnknownPrice {
        /// Model, as `provider/model`.
        model: String,
    },
    /// Document is not a valid procedure.
    #[error("invalid procedure: {reason}")]
    BadProcedure {
        /// First fault found in it.
        reason: String,
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
    /// Entry is not valid JSON, so its fields cannot be edited.
    #[error("`{id}` cannot be edited here: its entry is not JSON")]
    NotEditableText {
        /// Id of the record.
        id: String,
        /// Position and cause.
        source: serde_json::Error,
    },
    /// Target of the export exists and was not written by this program.
    #[error("`{}` exists, and is not an export of this program", path.display())]
    Occupied {
        /// File or folder that is in the way.
        path: PathBuf,
    },
    /// Skills are exported as folders, so they need a target directory.
    #[error("skills are exported as folders, which standard output cannot hold")]
    NeedsDirectory,
    /// Rules cannot be written to a file of the workspace.
    #[error(transparent)]
    Block(#[from] super::BlockError),
    /// Format of an import is unknown, or the file does not match the stated format.
    #[error("`{}` cannot be imported: {reason}", path.display())]
    NoImport {
        /// File or folder to import.
        path: PathBuf,
        /// Reason for the refusal.
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
}

/// Damage that is still there after the index was rebuilt.
impl From<memctl_search::Damaged> for Error {
    fn from(_: memctl_search::Damaged) -> Self {
        Self::Index
    }
}

/// Error and its chain of sources on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let part = error.to_string();
        if !text.ends_with(&part) {
            text.extend([": ", &part]);
        }
        source = error.source();
    }
    text
}
