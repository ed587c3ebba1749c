//! Settings file of an agent host, and stored state of a changed one: reading and replacing.

use std::path::Path;

use crate::store;
use memctl_files::{SharedFile, named};

use super::error::Error;

/// Maximum size of a settings file: 64 MiB.
pub(in super::super) const LONGEST: u64 = 64 << 20;

/// Replaces a settings file, and creates its directories.
pub(in super::super) fn replace(file: &SharedFile, text: &str) -> Result<(), store::Error> {
    let replaced = file.replace(text.as_bytes());
    replaced.map_err(store::Error::io("write", file.path()))
}

/// Replaces the stored state of a settings file, and creates its directories.
pub(in super::super) fn store_state(path: &Path, text: &str) -> Result<(), store::Error> {
    if let Some(above) = path.parent() {
        named::create_dir(above).map_err(store::Error::io("create", above))?;
    }
    named::replace(path, text.as_bytes()).map_err(store::Error::io("write", path))
}

/// Reads a settings file; `None` if it does not exist.
pub(in super::super) fn read(file: &SharedFile) -> Result<Option<String>, Error> {
    file.read_text(LONGEST)
        .map_err(|source| unreadable(file, source))
}

/// Removes a settings file.
pub(in super::super) fn remove(file: &SharedFile) -> Result<(), Error> {
    let removed = file.remove().map(drop);
    removed.map_err(|source| unreadable(file, source))
}

pub(in super::super) fn unreadable(file: &SharedFile, source: std::io::Error) -> Error {
    Error::Unreadable {
        path: file.path().to_owned(),
        source,
    }
}
