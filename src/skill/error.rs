//! What makes a skill, or all of them, unusable.
//!
//! Every message names the file, relative to the project root; the caller adds what to do about it.

use std::path::PathBuf;

use crate::model::SkillPath;

use super::Role;

/// Why a skill cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The skills directory is not there, or is no directory.
    #[error("there is no skills directory at `{}`", path.display())]
    NoDirectory {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// No directory of that name has a SKILL.md.
    #[error("there is no skill `{skill}`{}", did_you_mean(candidates))]
    NotFound {
        /// What was asked for.
        skill: SkillPath,
        /// Skills with a similar name, the most similar first.
        candidates: Vec<SkillPath>,
    },
    /// SKILL.md is there and says nothing about itself.
    #[error(
        "`{}` has no metadata: put it between `---` lines at the top, or into a ```yaml block \
         under `## Skill Metadata`",
        path.display()
    )]
    NoMetadata {
        /// The file.
        path: PathBuf,
    },
    /// There is metadata, and not one key can be read from it.
    #[error("{}:{line}: the metadata cannot be read: {reason}", path.display())]
    Metadata {
        /// The file.
        path: PathBuf,
        /// The line in that file, from 1.
        line: usize,
        /// What the YAML reader says.
        reason: String,
    },
    /// The metadata names a role that does not exist.
    #[error(
        "`{}` has the role `{}`; a role is one of {}",
        path.display(),
        value.escape_debug(),
        Role::ALL.map(Role::as_str).join(", ")
    )]
    Role {
        /// The file.
        path: PathBuf,
        /// What is written there.
        value: String,
    },
    /// A file is larger than any sensible one of its kind.
    #[error("`{}` has {bytes} bytes; at most {limit} are read", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// What is allowed.
        limit: u64,
    },
    /// A symbolic link, or a path with `..`, leaves the skills directory.
    #[error("`{}` leads outside of the skills directory", path.display())]
    Outside {
        /// The link, not its target: that is nobody's business.
        path: PathBuf,
    },
    /// A symbolic link. None is followed, also where it stays inside.
    #[error("`{}` is a symbolic link, and links are not followed", path.display())]
    Link {
        /// The link, not its target: that is nobody's business.
        path: PathBuf,
    },
    /// Something other than a file lies where a file belongs.
    #[error("`{}` is not a regular file", path.display())]
    NotAFile {
        /// What lies there.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("cannot read `{}`", path.display())]
    Io {
        /// What was to be read.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

fn did_you_mean(candidates: &[SkillPath]) -> String {
    match candidates {
        [] => String::new(),
        some => {
            let names: Vec<String> = some.iter().map(|skill| format!("`{skill}`")).collect();
            format!("; did you mean {}?", names.join(" or "))
        }
    }
}

/// The message of an error and of what caused it, on one line.
pub(super) fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        None => error.to_string(),
        Some(cause) => format!("{error}: {cause}"),
    }
}
