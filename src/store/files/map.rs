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

/// Bytes of a derived file.
#[derive(Debug)]
pub struct Map {
    bytes: Option<Mmap>,
    directory: Directory,
    name: PathBuf,
    /// State of the file when it was mapped.
    mapped: FileState,
}

impl Map {
    /// Maps a file; `None` if it does not exist or cannot be read.
    pub(crate) fn open(directory: &Directory, name: impl AsRef<Path>) -> Option<Self> {
        let name = name.as_ref();
        let file = directory.open(name).ok()??;
        let mapped = FileState::of(&file).ok()?;
        let of_map = |bytes| Self {
            bytes,
            directory: directory.clone(),
            name: name.to_owned(),
            mapped,
        };
        if mapped.size == 0 {
            return Some(of_map(None));
        }
        // SAFETY: only this program writes derived files. It creates each under a unique name and
        // never shortens it: a file is filled in place, or unlinked, and an unlinked file persists
        // while mapped. Bytes that change during a read are still valid bytes, and every reader
        // expects damage.
        let map = unsafe { Mmap::map(&file) }.ok()?;
        Some(of_map(Some(map)))
    }

    /// Opens the mapped file again; `None` if it was unlinked. A mapping keeps no file open.
    pub(crate) fn reopen(&self) -> Option<File> {
        let file = self.directory.open(&self.name).ok()??;
        let state = FileState::of(&file).ok()?;
        state.is_same_file(&self.mapped).then_some(file)
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or_default()
    }
}
