//! Writes to the workspace, with store errors.
//!
//! Readers never see a partially written file, links are not followed, and new files are private:
//! `memctl_files` ensures all three. A name may be relative to the directory, or the joined path.

use std::fs::File;
use std::io;
use std::path::Path;

use memctl_files::Directory;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::store::Error;

/// Maximum size in bytes of a JSON file that is read as a whole.
const LONGEST_JSON: u64 = 64 << 20;

/// Creates a directory and its missing parents.
pub(crate) fn create_dir(directory: &Directory) -> Result<(), Error> {
    let created = directory.create().map(drop);
    created.map_err(Error::io("create", directory))
}

/// Replaces the file by these bytes, or leaves it unchanged.
pub(crate) fn replace(
    directory: &Directory,
    name: impl AsRef<Path>,
    bytes: &[u8],
) -> Result<(), Error> {
    let name = name.as_ref();
    let replaced = directory.replace_file(name, bytes);
    replaced.map_err(Error::io("write", &directory.join(name)))
}

/// Removes a file, if it exists, and syncs the directory.
pub(crate) fn remove(directory: &Directory, name: impl AsRef<Path>) -> Result<(), Error> {
    let path = directory.join(name);
    let removed = directory.remove(&path).and_then(|was_there| {
        let above = path.parent().filter(|_| was_there);
        above.map_or(Ok(()), |above| directory.below(above).sync())
    });
    removed.map_err(Error::io("remove", &path))
}

/// Reads a small JSON file; `None` if it is missing or cannot be read.
pub(super) fn read_json<T: DeserializeOwned>(directory: &Directory, name: &str) -> Option<T> {
    serde_json::from_slice(&directory.read(name, LONGEST_JSON).ok()??).ok()
}

/// Replaces a JSON file, laid out for people.
pub(super) fn replace_json(
    directory: &Directory,
    name: &str,
    value: &impl Serialize,
) -> Result<(), Error> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    replace(directory, name, &text)
}

/// Opens an existing file for reading and writing in place; `None` if it does not exist.
pub(super) fn open_for_update(
    directory: &Directory,
    name: impl AsRef<Path>,
) -> Result<Option<File>, Error> {
    let path = directory.join(name);
    let opened = directory.open_for_update(&path);
    opened.map_err(Error::io("write", &path))
}

/// Opens a file for reading and writing in place, or for locking; creates an empty one if missing.
pub(super) fn open_or_create(directory: &Directory, name: impl AsRef<Path>) -> Result<File, Error> {
    let path = directory.join(name);
    let opened = directory.open_or_create(&path);
    opened.map_err(|error| {
        // A file that does not exist is not what a user can look at.
        let is_missing = matches!(directory.kind(&path), Ok(None));
        let denied = is_missing && error.kind() == io::ErrorKind::PermissionDenied;
        match path.parent().filter(|_| denied) {
            Some(above) => Error::io("write", above)(error),
            None => Error::io("open", &path)(error),
        }
    })
}
