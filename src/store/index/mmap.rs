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

use memmap2::Mmap;

use crate::platform::Directory;

/// Bytes of a derived file.
#[derive(Debug)]
pub struct Map(Option<Mmap>);

impl Map {
    /// Maps a file; `None` if it does not exist or cannot be read.
    pub(crate) fn open(directory: &Directory, name: &str) -> Option<Self> {
        let file = directory.open(name).ok()??;
        if file.metadata().ok()?.len() == 0 {
            return Some(Self(None));
        }
        // SAFETY: only this program writes derived files. It creates each under a unique name and
        // never shortens it: a file is filled in place, or unlinked, and an unlinked file persists
        // while mapped. Bytes that change during a read are still valid bytes, and every reader
        // expects damage.
        let map = unsafe { Mmap::map(&file) }.ok()?;
        Some(Self(Some(map)))
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}
