//! Files of the memory directory, as bytes: no caller, no access filter.
//!
//! - `directory`: location, identity and lock. `inventory`: the data files, the roles of all files, and what
//!   git ignores.
//! - `data`: one data file. `counters`: fields that each machine counts for itself.
//! - `log`: append-only lines. `tombstones`: removed records.
//! - Here: hashes under a key, and derived files in memory. Only the accessed parts of a file of 400 MB are read.
//!
//! [`Map::open`] has the only unsafe code of the program. A mapping reflects later changes to the file, so its
//! bytes are always treated as possibly damaged. It is exposed only as a slice of bytes, which has no invalid
//! values; readers copy numbers out.

pub(crate) mod counters;
pub(crate) mod data;
pub(crate) mod directory;
pub(crate) mod inventory;
pub(crate) mod log;
pub(crate) mod tombstones;

use std::ops::Deref;
use std::path::Path;

use hmac::{Hmac, KeyInit as _};
use memctl_files::{Directory, FileState};
use memmap2::Mmap;
use sha2::Sha256;

/// Returns the function that hashes under a key.
#[expect(
    clippy::expect_used,
    reason = "HMAC takes keys of every length; the error type cannot occur"
)]
pub(crate) fn keyed_hash(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("a key of any length")
}

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
    #[expect(
        unsafe_code,
        reason = "mapping a file is unsafe by nature; nothing else in the program is"
    )]
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
