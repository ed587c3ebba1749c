//! Opened files: regular files only, checked after opening and before the first read.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::Path;

use super::kind::FoundKind;
use super::refused::{Reason, Refused};
use super::system::files::Handle;
use super::system::{Access, files as sys};

/// Opens a regular file. `shown` is its path in errors.
pub(super) fn open(at: &Handle, name: &OsStr, shown: &Path, access: Access) -> io::Result<File> {
    let file = sys::open_file(at, name, access).map_err(|error| explain(at, name, shown, error))?;
    let metadata = file.metadata()?;
    if !is_plain(&metadata) {
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

pub(super) fn is_plain(metadata: &Metadata) -> bool {
    metadata.is_file()
}

/// Converts a system error to a [`Refused`] if the kind of the entry explains it.
fn explain(at: &Handle, name: &OsStr, shown: &Path, error: io::Error) -> io::Error {
    if !sys::is_of_kind(&error) {
        return error;
    }
    match sys::kind(at, name) {
        Ok(Some(FoundKind::Link)) => Refused::error(shown, Reason::Link),
        Ok(Some(FoundKind::Directory | FoundKind::Other)) => {
            Refused::error(shown, Reason::NotAFile)
        }
        _ => error,
    }
}

/// Reads at most `limit` bytes; a longer file is an error.
pub(super) fn read(file: File, shown: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(Refused::error(shown, Reason::TooLarge { limit }));
    }
    Ok(bytes)
}
