//! Files: kinds and states of directory entries, and opened regular files.
//!
//! A file is checked after opening and before the first read.
//!
//! A command that root runs in a directory of another user leaves files that its owner can use: new
//! files and directories belong to the owner of the directory that they are made in (see
//! `unix::files`).

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::system::files as sys;
use crate::system::files::Handle;

/// Kinds of directory entries; links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FoundKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A pipe, a device or a socket.
    Other,
}

/// Identity, size and times of a file.
///
/// Promise: a file that was replaced, or written to, has another state, unless it was written in
/// place, to the same size, within one tick of the file system's clock. On Windows a writer that
/// sets the time of modification back is not detected, since `changed` is that time too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct FileState {
    /// Number of the file system.
    pub device: u64,
    /// Number of the file in it: constant under renames, and reused only after its removal.
    pub inode: u64,
    /// Length in bytes.
    pub size: u64,
    /// Time of the last write, in seconds and nanoseconds since 1970.
    pub modified: [i64; 2],
    /// Time of the last change of content, name or permissions, in seconds and nanoseconds since
    /// 1970.
    pub changed: [i64; 2],
}

impl FileState {
    /// Returns the state of an open file.
    pub fn of(file: &File) -> io::Result<Self> {
        sys::state(file)
    }

    /// Returns `true` if both are states of the same file.
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Returns `true` if the file has not been written to; a rename does not count.
    pub(super) fn is_unwritten(&self, before: &Self) -> bool {
        self.is_same_file(before) && (self.size, self.modified) == (before.size, before.modified)
    }
}

/// Opens a regular file. `shown` is its path in errors.
pub(super) fn open(at: &Handle, name: &OsStr, shown: &Path, access: Access) -> io::Result<File> {
    let file = sys::open_file(at, name, access).map_err(|error| {
        let is_of_kind = sys::is_of_kind(&error);
        let kind = is_of_kind.then(|| sys::kind(at, name).ok().flatten());
        explain(kind.flatten(), FoundKind::File, shown, error)
    })?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(Refused::error(shown, Reason::NotAFile));
    }
    if access != Access::Read {
        // Another name of the file may lie outside the memory.
        if sys::names(&file, &metadata) > 1 {
            return Err(Refused::error(shown, Reason::HardLink));
        }
        sys::make_file_private(&file, &metadata);
    }
    Ok(file)
}

/// Converts a system error to a [`Refused`], if the kind of the entry explains it: another one than
/// was wanted.
pub(super) fn explain(
    kind: Option<FoundKind>,
    wanted: FoundKind,
    shown: &Path,
    error: io::Error,
) -> io::Error {
    let reason = match (kind, wanted) {
        (Some(FoundKind::Link), _) => Reason::Link,
        (Some(kind), FoundKind::File) if kind != wanted => Reason::NotAFile,
        (Some(kind), _) if kind != wanted => Reason::NotADirectory,
        _ => return error,
    };
    Refused::error(shown, reason)
}

/// Reads at most `limit` bytes; a longer file is an error.
pub(super) fn read(file: File, shown: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // With room for one byte more, a small file is read in one call.
    let size = file.metadata()?.len().min(limit);
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(Refused::error(shown, Reason::TooLarge { limit }));
    }
    Ok(bytes)
}

/// Modes of opening a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// For reading.
    Read,
    /// For reading and writing in place.
    Update,
    /// For reading and writing in place; created if missing.
    UpdateOrCreate,
    /// For appending; created if missing.
    Append,
    /// For writing a new file; fails if it exists.
    Create,
}

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

/// Returns a path, or the nearest directory above it that exists, and whether it belongs to the user of this process;
/// `None` where that says nothing about their rights.
pub fn owned(path: &Path) -> Option<(&Path, bool)> {
    let mut above = path.ancestors();
    above.find_map(|path| Some((path, sys::is_own(path)?)))
}
