//! Options and outcome of an export of the rules.

use std::path::PathBuf;

use serde::Serialize;

/// Target of the rules.
#[derive(Debug)]
pub struct AgentsMdOptions {
    /// Directory of the workspace.
    pub root: PathBuf,
    /// File to write, created if missing; `None` for `AGENTS.md` and `CLAUDE.md` if they exist.
    pub output: Option<PathBuf>,
    /// Replaces a block that was edited by hand.
    pub force: bool,
    /// Writes nothing.
    pub dry_run: bool,
}

/// Result of an export of the rules.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct AgentsMdReport {
    /// `agents-md`.
    pub format: &'static str,
    /// The files, in the order of writing.
    pub files: Vec<FileReport>,
    /// Number of rules left out because they are of other projects.
    pub other_projects: usize,
    /// Number of candidates from chats that wait for approval.
    pub candidates: usize,
    /// `true` if nothing was written.
    pub dry_run: bool,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Outcome for one file.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct FileReport {
    /// Path relative to the workspace.
    pub path: String,
    /// Change of the file.
    pub change: FileChange,
    /// Number of rules in the block.
    pub rules: usize,
    /// Rules left out because the file says them itself.
    pub said: Vec<SaidRule>,
    /// Rules in the block that the file may say in other words.
    pub near: Vec<NearRule>,
    /// Changed lines; empty for no change.
    pub diff: String,
    #[serde(skip)]
    pub(super) before: Option<String>,
    #[serde(skip)]
    pub(super) after: String,
}

/// Change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileChange {
    /// The file is new.
    Created,
    /// The file has a new block.
    Added,
    /// The block has other lines.
    Updated,
    /// Nothing changes.
    Unchanged,
}

/// Rule that a file says itself, with the same words.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct SaidRule {
    /// Id of the rule.
    pub id: String,
    /// Statement of the file.
    pub statement: String,
}

/// Rule that a file may say in other words.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct NearRule {
    /// Id of the rule.
    pub id: String,
    /// Text of the rule.
    pub rule: String,
    /// Statement of the file.
    pub statement: String,
    /// Cosine of both, from 0 to 1.
    pub score: f64,
}
