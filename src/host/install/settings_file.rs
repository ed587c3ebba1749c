//! Settings file of an agent host: reading, replacing, and the size limit.

use std::io;
use std::path::{Path, PathBuf};

use crate::platform::named;
use crate::store;

use super::error::Error;

/// Resolves a link to its file. The path is the same before and after the file has been made.
pub(in super::super) fn real_path(path: &Path) -> Result<PathBuf, Error> {
    let is_link = named::link_metadata(path).is_ok_and(|m| m.is_symlink());
    if !is_link && !named::exists(path) {
        return Ok(named::real_or_new(path));
    }
    named::real(path).map_err(|source| Error::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// Maximum size of a settings file: 64 MiB.
pub(in super::super) const LONGEST: u64 = 64 << 20;

/// Replaces a settings file, or the stored state of one.
pub(in super::super) fn replace(path: &Path, text: &str) -> Result<(), store::Error> {
    named::replace(path, text.as_bytes()).map_err(store::Error::io("write", path))
}

pub(in super::super) fn create_dir(path: &Path) -> Result<(), store::Error> {
    named::create_dir(path).map_err(store::Error::io("create", path))
}

pub(in super::super) fn read(path: &Path) -> Result<Option<String>, Error> {
    match named::read_text(path, LONGEST) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Unreadable {
            path: path.to_owned(),
            source,
        }),
    }
}
