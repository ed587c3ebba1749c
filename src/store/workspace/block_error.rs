//! Errors of the rules in a file of the workspace.

use std::path::PathBuf;

/// Reason why a file is not brought in step with the rules.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    /// Workspace has no file for the rules, and the caller named none.
    #[error("the workspace has neither `AGENTS.md` nor `CLAUDE.md`")]
    NoFile,
    /// Markers in a file do not form one block.
    #[error("`{}` cannot hold the rules: line {line} has {reason}", path.display())]
    Misplaced {
        /// Path of the file.
        path: PathBuf,
        /// Line of the marker, from 1.
        line: usize,
        /// The misplaced marker.
        reason: &'static str,
    },
    /// Rules are not written to this file.
    #[error("`{}` cannot hold the rules: {reason}", path.display())]
    NotOfWorkspace {
        /// Path of the file.
        path: PathBuf,
        /// Reason for the refusal.
        reason: &'static str,
    },
    /// Block with the rules was edited by hand.
    #[error("the rules in `{}` were edited by hand (block at line {line})", path.display())]
    Edited {
        /// Path of the file.
        path: PathBuf,
        /// Line of the first marker, from 1.
        line: usize,
    },
}
