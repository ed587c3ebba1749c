//! Why a verb did not do what was asked.

use std::path::PathBuf;

use crate::model::{InvalidSkillPath, Kind, MemoryType, SkillPath};
use crate::{llm, search, skill, store};

/// Why a verb did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The skill files.
    #[error(transparent)]
    Skill(#[from] skill::Error),
    /// A model; nothing was paid, or what was paid has been stored.
    #[error(transparent)]
    Llm(#[from] llm::Error),
    /// A model of the semantic search on this machine.
    #[error(transparent)]
    Embed(#[from] search::EmbedError),
    /// An embedder gave vectors of another size than it should or did before.
    #[error("`{embedder}` gave vectors of {found} dimensions where {expected} were expected")]
    VectorSize {
        /// Who makes them.
        embedder: String,
        /// How many numbers they have.
        found: usize,
        /// How many they should have.
        expected: usize,
    },
    /// A vector from outside does not fit those of this memory.
    #[error("the vector has {found} dimensions where {expected} are needed, or no direction")]
    BadVector {
        /// How many numbers it has.
        found: usize,
        /// How many it should have, before the zeros that may fill it up.
        expected: usize,
    },
    /// Nothing can be waited for.
    #[error("the system gives no means to wait for an answer")]
    Runtime {
        /// What the system said.
        source: std::io::Error,
    },
    /// The search index was made again and is still not sound: the records change all the time.
    #[error("the search index cannot be made")]
    Index,
    /// Text that is no skill path.
    #[error(transparent)]
    SkillPath(#[from] InvalidSkillPath),
    /// A model that is named in a way that nobody understands.
    #[error("`{}` cannot be used as a model: {reason}", given.escape_debug())]
    ModelName {
        /// What was given.
        given: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no model, and no known case is near enough to answer for one.
    #[error(
        "no model is configured, and no known case of `{skill}` is near enough to this input ({nearest})"
    )]
    NoAnswer {
        /// The skill.
        skill: SkillPath,
        /// What came nearest, in words.
        nearest: String,
    },
    /// A file that the user named holds no JSON.
    #[error("`{}` is not JSON", path.display())]
    NotJson {
        /// The file; `-` for standard input.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// A file that the user named cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// No input was given, and the skill brings no sample.
    #[error("`{0}` has no `fixtures/sample_input.json` to run with")]
    NoInput(SkillPath),
    /// A model was asked in vain; the attempt is recorded.
    #[error("{source}")]
    Asked {
        /// The execution that records it.
        execution: String,
        /// What went wrong.
        source: llm::Error,
    },
    /// A session did not do what was asked of it.
    #[error(transparent)]
    Session(#[from] super::session::SessionError),
    /// The correction says nothing.
    #[error("the correction is empty")]
    EmptyCorrection,
    /// The execution is one of another skill.
    #[error("`{execution}` is an execution of `{actual}`, not of `{skill}`")]
    OtherSkill {
        /// The execution.
        execution: String,
        /// The skill that it ran.
        actual: String,
        /// The skill that was named.
        skill: SkillPath,
    },
    /// An id that belongs to no kind of record.
    #[error("`{}` is no id: ids look like `EXEC-20260220124341` or `REFL-003`", .0.escape_debug())]
    NoId(String),
    /// A record in which no merge has left this open.
    #[error("nothing of that is open in `{id}`")]
    NothingOpen {
        /// Its id.
        id: String,
        /// The fields that are open.
        open: Vec<String>,
    },
    /// No change that could be taken back.
    #[error("there is nothing to take back")]
    NothingToUndo,
    /// The name of no change, or of several.
    #[error("`{}` names no change, or more than one", .0.escape_debug())]
    NoChange(String),
    /// A change that cannot be taken back.
    #[error("`{change}` was not taken back: {}", reasons.join("; "))]
    NotUndoable {
        /// Its name.
        change: String,
        /// Why.
        reasons: Vec<String>,
    },
    /// The record was removed on purpose.
    #[error("{kind} `{id}` was forgotten on {day}")]
    Forgotten {
        /// Its id.
        id: String,
        /// Its kind.
        kind: Kind,
        /// The day: `2026-02-20`.
        day: String,
    },
    /// A record whose kind nobody approves.
    #[error(
        "{kind} `{id}` cannot be approved: only fixes, procedures and imported notes are observed"
    )]
    NotApprovable {
        /// Its id.
        id: String,
        /// Its kind.
        kind: Kind,
    },
    /// Two records that are not made one.
    #[error("`{other}` cannot be merged into `{keep}`: {reason}")]
    NotMergeable {
        /// The id of the one that would be kept.
        keep: String,
        /// The id of the other.
        other: String,
        /// What stands in the way.
        reason: String,
    },
    /// A field that nobody edits, or a record without any that can be.
    #[error("{} of {kind} `{id}` cannot be edited", match field {
        Some(field) => format!("`{}`", field.escape_debug()),
        None => "the fields".to_owned(),
    })]
    NotEditable {
        /// Its id.
        id: String,
        /// Its kind.
        kind: Kind,
        /// The field that was named.
        field: Option<String>,
        /// The fields that can be edited.
        allowed: Vec<&'static str>,
    },
    /// A value that does not fit its field.
    #[error("`{field}` cannot be set to that: {reason}")]
    BadField {
        /// The field.
        field: &'static str,
        /// What it takes.
        reason: &'static str,
    },
    /// A procedure that is none.
    #[error("the procedure does not fit: {reason}")]
    BadProcedure {
        /// What is wrong with it.
        reason: String,
    },
    /// A memory that does not fit its type.
    #[error("{}", match problems.as_slice() {
        [only] => only.clone(),
        all => format!("{} things do not fit a {}: {}", all.len(), memory_type.name(), all.join("; ")),
    })]
    BadMemory {
        /// Its type.
        memory_type: MemoryType,
        /// What does not fit, all of it.
        problems: Vec<String>,
    },
    /// What nobody but a person may say.
    #[error("it is not remembered: {reason}")]
    Suspicious {
        /// Why, as `it …`.
        reason: String,
    },
    /// An entry that is no JSON to other programs: its fields cannot be told apart.
    #[error("`{id}` cannot be edited here: its entry is not JSON")]
    NotEditableText {
        /// Its id.
        id: String,
        /// Where and why.
        source: serde_json::Error,
    },
    /// What an export would be written over is none.
    #[error("`{}` is there already, and is no export of this program", path.display())]
    Occupied {
        /// The file or folder.
        path: PathBuf,
    },
    /// Skills are folders.
    #[error("skills are folders, and cannot go to standard output")]
    NeedsDirectory,
    /// Nobody knows what an import is to be read as, or it is not what it is said to be.
    #[error("`{}` cannot be imported: {reason}", path.display())]
    NoImport {
        /// What was named.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// An answer was paid for and could not be stored.
    #[error("the model answered, but the execution could not be stored; the answer is kept in `{}`", kept.display())]
    NotStored {
        /// The file that holds the whole execution.
        kept: PathBuf,
        /// Why the store refused.
        source: store::Error,
    },
}

/// Whoever meets damage makes the index again; this is what is left when that did not help.
impl From<search::Damaged> for Error {
    fn from(_: search::Damaged) -> Self {
        Self::Index
    }
}

/// An error with everything that it goes back to, on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
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
