//! The two files of the log: opening, locking, reading and writing.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::store::atomic;
use crate::store::error::Error;
use crate::store::files::directory;
use crate::store::files::file_names::{AUDIT_ANCHOR, AUDIT_LOG};
use memctl_files::{Directory, PositionedFile as _};

use super::hash::Anchor;

/// Maximum wait for the lock. This program holds it for one line only; a longer hold is another
/// program's.
pub(super) const LOCK_LIMIT: Duration = Duration::from_secs(5);

/// Opens and locks the lock file of the log, within a time limit.
pub(super) fn lock(directory: &Directory, limit: Duration) -> Result<File, Error> {
    let file = atomic::open_or_create(directory, AUDIT_ANCHOR)?;
    let path = directory.join(AUDIT_ANCHOR);
    directory::wait_for(&path, limit.min(LOCK_LIMIT), || file.try_lock())?;
    Ok(file)
}

pub(super) fn read_anchor(file: &File, path: &Path) -> Result<Option<Anchor>, Error> {
    let mut bytes = Vec::new();
    let mut source = file;
    source
        .seek(SeekFrom::Start(0))
        .and_then(|_| source.take(4096).read_to_end(&mut bytes))
        .map_err(Error::io("read", path))?;
    Ok(serde_json::from_slice(&bytes).ok())
}

pub(super) fn write_anchor(file: &File, path: &Path, anchor: &Anchor) -> Result<(), Error> {
    // One short write at the start; padding keeps the length constant.
    let text = anchor.render()?;
    file.write_all_at(text.as_bytes(), 0)
        .and_then(|()| file.set_len(text.len() as u64))
        .map_err(Error::io("write", path))
}

pub(super) fn open_log(directory: &Directory) -> Result<File, Error> {
    atomic::open_or_create(directory, AUDIT_LOG)
}

pub(super) fn write_line(mut file: &File, path: &Path, at: u64, line: &str) -> Result<(), Error> {
    file.seek(SeekFrom::Start(at))
        .and_then(|_| file.write_all(line.as_bytes()))
        .map_err(Error::io("append to", path))
}

pub(super) fn log_path(directory: &Path) -> PathBuf {
    directory.join(AUDIT_LOG)
}
