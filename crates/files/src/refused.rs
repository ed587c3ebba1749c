//! Refused file system objects, with a hint for the user.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An object below a workspace that is not a regular file or directory. Wrapped in an
/// [`io::Error`], so that every layer can propagate it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Path of the object: of the link itself, not of its target.
    pub path: PathBuf,
    /// Reason for the refusal.
    pub reason: Reason,
}

/// Reasons to refuse an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A symbolic link.
    Link,
    /// A directory, pipe, device or socket instead of a file.
    NotAFile,
    /// A device, a pipe or a directory as the target of a write that the user asked for.
    Special,
    /// Anything other than a directory in its place.
    NotADirectory,
    /// A file with a second name, whose content would change too.
    HardLink,
    /// A path that leaves its directory.
    Outside,
    /// A file larger than any valid file of this name.
    TooLarge {
        /// Maximum number of bytes read.
        limit: u64,
    },
}

impl Refused {
    /// Returns the refusal wrapped in an error, if it is one.
    pub fn in_error(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// Returns the command that resolves the problem.
    pub fn hint(&self) -> String {
        let path = self.path.display();
        match self.reason {
            Reason::Link => format!(
                "rm {path}; a directory elsewhere is named by AGENTURA_KNOWLEDGE_DIR or AGENTURA_SKILLS_DIR"
            ),
            Reason::HardLink => format!("cp {path} {path}.copy && mv {path}.copy {path}"),
            Reason::NotAFile | Reason::NotADirectory => format!("mv {path} {path}.aside"),
            Reason::Special => "name a regular file, or one that does not exist yet".to_owned(),
            Reason::Outside => "name a file inside the directory".to_owned(),
            Reason::TooLarge { .. } => format!("ls -l {path}"),
        }
    }

    pub(super) fn error(path: &Path, reason: Reason) -> io::Error {
        io::Error::other(Self {
            path: path.to_owned(),
            reason,
        })
    }
}

impl std::error::Error for Refused {}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.reason {
            Reason::Link => write!(f, "`{path}` is a symbolic link, and links are not followed"),
            Reason::NotAFile => write!(f, "`{path}` is not a regular file"),
            Reason::Special => write!(f, "`{path}` is neither a regular file nor a new one"),
            Reason::NotADirectory => write!(f, "`{path}` is not a directory"),
            Reason::HardLink => write!(f, "`{path}` is a hard link: it has another name elsewhere"),
            Reason::Outside => write!(f, "`{path}` leads out of its directory"),
            Reason::TooLarge { limit } => {
                write!(f, "`{path}` is longer than {limit} bytes")
            }
        }
    }
}
