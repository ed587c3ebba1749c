//! Memory-mapped derived files: only the accessed parts of a 400 MB file are read.
//!
//! The only module with unsafe code. A mapping reflects later changes to the file, so its bytes are
//! always treated as possibly damaged. It is exposed only as a slice of bytes, which has no invalid
//! values; readers copy numbers out.
#![expect(
    unsafe_code,
    reason = "mapping a file is unsafe by nature; nothing else in the program is"
)]

use std::ops::Deref;
use std::path::Path;

use memctl_files::{Directory, FileState};
use memmap2::Mmap;

/// Bytes of a derived file, or of one that could not be saved.
#[derive(Debug)]
pub enum Map {
    /// A file.
    Saved(Mmap),
    /// Bytes in memory; none for an empty file.
    Memory(Vec<u8>),
}

impl Map {
    /// Maps a file; `None` if it does not exist or cannot be read.
    pub(crate) fn open(directory: &Directory, name: impl AsRef<Path>) -> Option<Self> {
        let file = directory.open(name).ok()??;
        if FileState::of(&file).ok()?.size == 0 {
            return Some(Self::Memory(Vec::new()));
        }
        // SAFETY: only this program writes derived files. It creates each under a unique name and
        // never shortens it: a file is filled in place, or unlinked, and an unlinked file persists
        // while mapped. Bytes that change during a read are still valid bytes, and every reader
        // expects damage.
        let map = unsafe { Mmap::map(&file) }.ok()?;
        Some(Self::Saved(map))
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Saved(bytes) => bytes,
            Self::Memory(bytes) => bytes,
        }
    }
}
