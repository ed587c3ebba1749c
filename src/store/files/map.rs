//! Memory-mapped derived files: only the accessed parts of a 400 MB file are read.
//!
//! The only module with unsafe code. A mapping reflects later changes to the file, so its bytes are
//! always treated as possibly damaged. It is exposed only as a slice of bytes, which has no invalid
//! values; readers copy numbers out.
#![expect(
    unsafe_code,
    reason = "mapping a file is unsafe by nature; nothing else in the program is"
)]

use std::fs::File;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use memctl_files::{Directory, FileState};
use memmap2::Mmap;

/// Bytes of a derived file, or of one that could not be saved.
#[derive(Debug)]
pub struct Map {
    bytes: Bytes,
    /// The file, and its state when it was mapped.
    file: Option<(Directory, PathBuf, FileState)>,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Map {
    /// Maps a file; `None` if it does not exist or cannot be read.
    pub(crate) fn open(directory: &Directory, name: impl AsRef<Path>) -> Option<Self> {
        let name = name.as_ref();
        let file = directory.open(name).ok()??;
        let state = FileState::of(&file).ok()?;
        let bytes = if state.size == 0 {
            Bytes::Owned(Vec::new())
        } else {
            // SAFETY: only this program writes derived files. It creates each under a unique name and
            // never shortens it: a file is filled in place, or unlinked, and an unlinked file persists
            // while mapped. Bytes that change during a read are still valid bytes, and every reader
            // expects damage.
            Bytes::Mapped(unsafe { Mmap::map(&file) }.ok()?)
        };
        let file = Some((directory.clone(), name.to_owned(), state));
        Some(Self { bytes, file })
    }

    /// Returns `true` if the bytes are those of a file.
    pub(crate) fn is_saved(&self) -> bool {
        self.file.is_some()
    }

    /// Opens the mapped file again; `None` if it was unlinked. A mapping keeps no file open.
    pub(crate) fn reopen(&self) -> Option<File> {
        let (directory, name, mapped) = self.file.as_ref()?;
        let file = directory.open(name).ok()??;
        let state = FileState::of(&file).ok()?;
        state.is_same_file(mapped).then_some(file)
    }
}

impl From<Vec<u8>> for Map {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            bytes: Bytes::Owned(bytes),
            file: None,
        }
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(bytes) => bytes,
            Bytes::Owned(bytes) => bytes,
        }
    }
}
