//! Objects that are not opened, and the way out for a person.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An object below a workspace that is no plain file or directory of its own. It travels inside an
/// [`io::Error`], so that every layer above can pass it on as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The object that was met: the link itself, never its target.
    pub path: PathBuf,
    /// The reason.
    pub reason: Reason,
}

/// Reasons to leave an object alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A symbolic link.
    Link,
    /// A directory, pipe, device or socket in the place of a file.
    NotAFile,
    /// A device, a pipe or a directory where the user has asked for a file to be written.
    Special,
    /// Something else in the place of a directory.
    NotADirectory,
    /// A file with a second name, which would be changed under that name too.
    HardLink,
    /// A path that leaves its directory.
    Outside,
    /// More bytes than any sensible file of this name has.
    TooLarge {
        /// The most bytes that are read.
        limit: u64,
    },
}

impl Refused {
    /// The refusal inside an error, if it is one.
    pub fn in_error(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// The command that gets the object out of the way.
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
