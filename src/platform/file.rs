//! Opened files: regular files only, checked after opening and before the first read.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use super::kind::FoundKind;
use super::refused::{Reason, Refused};
use super::sys::{self, Access};

/// Opens a regular file. `shown` is its path in errors.
pub(super) fn open(
    at: BorrowedFd<'_>,
    name: &OsStr,
    shown: &Path,
    access: Access,
) -> io::Result<File> {
    let file = sys::open_file(at, name, access).map_err(|error| explain(at, name, shown, error))?;
    let metadata = file.metadata()?;
    if !is_plain(&metadata) {
        return Err(Refused::error(shown, Reason::NotAFile));
    }
    if access != Access::Read {
        // Another name of the file may lie outside the memory.
        if metadata.nlink() > 1 {
            return Err(Refused::error(shown, Reason::HardLink));
        }
        if metadata.permissions().mode() & 0o7777 != 0o600 {
            // Fails unless the user owns the file.
            drop(file.set_permissions(std::fs::Permissions::from_mode(0o600)));
        }
    }
    Ok(file)
}

pub(super) fn is_plain(metadata: &Metadata) -> bool {
    metadata.is_file()
}

/// Converts a system error to a [`Refused`] if the kind of the entry explains it.
fn explain(at: BorrowedFd<'_>, name: &OsStr, shown: &Path, error: io::Error) -> io::Error {
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
