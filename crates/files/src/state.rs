//! States of files, for comparison without reading them.

use std::fs::File;
use std::io;

use super::system;

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
        system::files::state(file)
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

/// Reads and writes at an offset.
///
/// Promise: they do not wait for each other, and threads may share the file. The position of the
/// file's cursor is unspecified afterwards: seek before using it.
pub trait PositionedFile {
    /// Reads some bytes at an offset; 0 at the end of the file.
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize>;

    /// Fills the buffer with the bytes at an offset.
    fn read_exact_at(&self, into: &mut [u8], at: u64) -> io::Result<()>;

    /// Writes all bytes at an offset.
    fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;
}

impl PositionedFile for File {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        system::files::read_at(self, into, at)
    }

    fn read_exact_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        system::files::read_exact_at(self, into, at)
    }

    fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        system::files::write_all_at(self, bytes, at)
    }
}
