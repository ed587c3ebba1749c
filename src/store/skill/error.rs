//! Errors that make a skill, or all skills, unusable.
//!
//! Messages name the file relative to the project root; the caller adds a hint.

use std::path::PathBuf;

use crate::model::SkillPath;
use crate::model::error::{Explain, Explanation, Kind, of_io};
use crate::store::skill::Role;

/// Error of a skill.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The skills directory does not exist or is not a directory.
    #[error("skills directory `{}` not found", path.display())]
    NoDirectory {
        /// Expected path.
        path: PathBuf,
    },
    /// No directory of that name has a SKILL.md.
    #[error("skill `{skill}` not found{}", did_you_mean(candidates))]
    NotFound {
        /// Requested skill.
        skill: SkillPath,
        /// Skills with similar names, most similar first.
        candidates: Vec<SkillPath>,
    },
    /// SKILL.md has no metadata.
    #[error(
        "`{}` has no metadata: it needs a `description` between `---` lines at the top, or in a \
         ```yaml block under `## Skill Metadata`",
        path.display()
    )]
    NoMetadata {
        /// Path of the file.
        path: PathBuf,
    },
    /// No key of the metadata can be read.
    #[error("{}:{line}: the metadata cannot be read: {reason}", path.display())]
    Metadata {
        /// Path of the file.
        path: PathBuf,
        /// Line number in the file, from 1.
        line: usize,
        /// Message of the YAML parser.
        reason: String,
    },
    /// Unknown role in the metadata.
    #[error(
        "`{}` has the role `{}`; a role is one of {}",
        path.display(),
        value.escape_debug(),
        Role::ALL.map(Role::as_str).join(", ")
    )]
    Role {
        /// Path of the file.
        path: PathBuf,
        /// Value in the file.
        value: String,
    },
    /// A file exceeds the size limit.
    #[error("`{}` has {bytes} bytes; at most {limit} are read", path.display())]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
        /// Size in bytes.
        bytes: u64,
        /// Limit in bytes.
        limit: u64,
    },
    /// A symbolic link, or a path with `..`, leaves the skills directory.
    #[error("`{}` leads outside of the skills directory", path.display())]
    Outside {
        /// Path of the link. Its target is not revealed.
        path: PathBuf,
    },
    /// A symbolic link. Links are not followed, even within the directory.
    #[error("`{}` is a symbolic link, and links are not followed", path.display())]
    Link {
        /// Path of the link. Its target is not revealed.
        path: PathBuf,
    },
    /// Not a regular file.
    #[error("`{}` is not a regular file", path.display())]
    NotAFile {
        /// Path of the entry.
        path: PathBuf,
    },
    /// Error of the file system.
    #[error("cannot read `{}`", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
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

/// Error and its cause on one line.
pub(super) fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        None => error.to_string(),
        Some(cause) => format!("{error}: {cause}"),
    }
}

impl Explain for Error {
    fn explain(&self) -> Explanation {
        let (kind, hint) = match self {
            Self::NotFound { candidates, .. } => {
                let hint = match candidates.first() {
                    Some(candidate) => format!("memctl run {candidate}"),
                    None => "ls skills/*/".to_owned(),
                };
                (Kind::NotFound, hint)
            }
            Self::NoDirectory { path } => {
                let example = path.join("DOMAIN/SKILL/SKILL.md");
                let hint = format!(
                    "write the instructions of the skill to `{}`; for a coding agent, without \
                     skills: memctl lesson add",
                    example.display()
                );
                (Kind::NotFound, hint)
            }
            Self::Outside { .. } => (
                Kind::Input,
                "replace the link by the file itself".to_owned(),
            ),
            Self::Io { source, .. } => (of_io(source), "memctl doctor".to_owned()),
            Self::NoMetadata { .. } => (
                Kind::Input,
                r"begin the file with: ---\ndescription: what the skill does\n---".to_owned(),
            ),
            Self::Metadata { .. }
            | Self::Role { .. }
            | Self::TooLarge { .. }
            | Self::Link { .. }
            | Self::NotAFile { .. } => (Kind::Input, "memctl doctor".to_owned()),
        };
        (kind, Some(hint))
    }
}
