//! A derived file, mapped into memory: of a file of 400 MB only what is looked at is read.
//!
//! The one place with unsafe code. A mapping shows the file as it is, so whoever changes it changes
//! what is read here; what is read is therefore always treated as bytes that may be damaged. No
//! reference into it has a type with invalid values: it is a slice of bytes, and whoever reads
//! numbers copies them out.
#![expect(
    unsafe_code,
    reason = "mapping a file is unsafe by nature; nothing else in the program is"
)]

use std::ops::Deref;

use memmap2::Mmap;

use crate::platform::Directory;

/// The bytes of a derived file.
#[derive(Debug)]
pub struct Map(Option<Mmap>);

impl Map {
    /// Maps a file; `None` where there is none that can be read.
    pub(super) fn open(directory: &Directory, name: &str) -> Option<Self> {
        let file = directory.open(name).ok()??;
        if file.metadata().ok()?.len() == 0 {
            return Some(Self(None));
        }
        // SAFETY: derived files are written by this program alone, which makes them under a name that
        // is used once and never shortens them afterwards: they are filled in place, or unlinked,
        // and an unlinked file stays for as long as it is mapped. Bytes that change while they are
        // looked at are bytes all the same; everything that reads them expects damage.
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
