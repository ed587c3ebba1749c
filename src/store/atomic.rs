//! Writing to the workspace, with the errors of the store.
//!
//! A replaced file is never seen half-written, a link is never followed, and what is written is for
//! its owner alone: `platform` sees to that. A name may be given relative to the directory, or as
//! the path that `join` makes of both.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::platform::Directory;

use super::error::Error;

/// Makes a directory and those above it, as far as they are missing.
pub(crate) fn create_dir(directory: &Directory) -> Result<(), Error> {
    match directory.create() {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::io("create", directory)(error)),
    }
}

/// Replaces the whole file by what `write` writes, or leaves it as it was.
pub(crate) fn replace_with(
    directory: &Directory,
    name: impl AsRef<Path>,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), Error> {
    let name = name.as_ref();
    let replaced = directory.replace_file_with(name, write);
    replaced.map_err(Error::io("write", &directory.join(name)))
}

/// Replaces the whole file by what `write` writes, if it still is what `read` says; see
/// [`Directory::replace_unchanged`].
pub(super) fn replace_unchanged(
    directory: &Directory,
    path: &Path,
    read: Option<&std::fs::Metadata>,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<bool, Error> {
    let replaced = directory.replace_unchanged(path, read, write);
    replaced.map_err(Error::io("write", path))
}

/// Replaces the whole file by these bytes, or leaves it as it was.
pub(crate) fn replace(
    directory: &Directory,
    name: impl AsRef<Path>,
    bytes: &[u8],
) -> Result<(), Error> {
    replace_with(directory, name, |file| io::Write::write_all(file, bytes))
}

/// Removes a file, if it is there, and waits until its name is gone from the disk.
pub(crate) fn remove(directory: &Directory, name: impl AsRef<Path>) -> Result<(), Error> {
    let path = directory.join(name);
    let removed = directory.remove(&path).and_then(|was_there| {
        let above = path.parent().filter(|_| was_there);
        above.map_or(Ok(()), |above| directory.below(above).sync())
    });
    removed.map_err(Error::io("remove", &path))
}

/// Gives a file another name, if it is there.
pub(super) fn set_aside(
    directory: &Directory,
    name: impl AsRef<Path>,
    to: impl AsRef<Path>,
) -> Result<(), Error> {
    let path = directory.join(name);
    let moved = directory.rename(&path, to);
    moved.map(drop).map_err(Error::io("move", &path))
}

/// Appends one line, or some, and waits until they are on the disk. `lines` ends with a line break.
pub(super) fn append_line(
    directory: &Directory,
    name: impl AsRef<Path>,
    lines: &str,
) -> Result<(), Error> {
    append(directory, name.as_ref(), lines, true)
}

/// Appends without waiting for the disk.
pub(super) fn append_line_unsynced(
    directory: &Directory,
    name: impl AsRef<Path>,
    lines: &str,
) -> Result<(), Error> {
    append(directory, name.as_ref(), lines, false)
}

fn append(directory: &Directory, name: &Path, lines: &str, sync: bool) -> Result<(), Error> {
    let appended = directory.append(name, lines.as_bytes(), sync);
    appended.map_err(Error::io("append to", &directory.join(name)))
}

/// Opens a file that may be missing for reading and writing in place, creating nothing.
pub(super) fn open_for_update(
    directory: &Directory,
    name: impl AsRef<Path>,
) -> Result<Option<File>, Error> {
    let path = directory.join(name);
    let opened = directory.open_for_update(&path);
    opened.map_err(Error::io("write", &path))
}

/// Opens a file for reading and writing in place, or for locks; an empty one is made where there is
/// none.
pub(super) fn open_or_create(directory: &Directory, name: impl AsRef<Path>) -> Result<File, Error> {
    let path = directory.join(name);
    let opened = directory.open_or_create(&path);
    opened.map_err(Error::io("open", &path))
}

/// Waits until what was removed from a directory is gone from the disk.
pub(super) fn sync(directory: &Directory) -> Result<(), Error> {
    directory.sync().map_err(Error::io("write", directory))
}
