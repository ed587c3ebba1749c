//! The only code that creates, replaces or appends to files of the workspace.
//!
//! A replaced file is never seen half-written: it is written beside its place, synced, and renamed
//! over it. The temporary name is fixed for each target, so that whatever a killed process left
//! behind is overwritten by the next writer, which holds the lock. Files are made readable by
//! their owner only; a file that exists keeps its mode.
#![expect(
    clippy::disallowed_methods,
    reason = "this module is the one that writes files for all the others"
)]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::Error;

/// Creates a directory and its parents, each new one for its owner alone.
pub(crate) fn create_dir(path: &Path) -> Result<(), Error> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path).map_err(Error::io("create", path))
}

/// Replaces the whole file by what `write` writes, or leaves it as it was.
pub(crate) fn replace_with(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), Error> {
    let temporary = temporary_name(path);
    let written = (|| {
        let mut file =
            private(OpenOptions::new().create(true).write(true).truncate(true)).open(&temporary)?;
        write(&mut file)?;
        if let Ok(old) = fs::metadata(path) {
            file.set_permissions(old.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        sync_directory(path)
    })();
    written.map_err(|source| {
        // What matters is the first error; a temporary file that stays is overwritten next time.
        drop(fs::remove_file(&temporary));
        Error::io("write", path)(source)
    })
}

/// Replaces the whole file by these bytes, or leaves it as it was.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace_with(path, |file| file.write_all(bytes))
}

/// Makes a file with these bytes where there is none: of several who do so at once, one does, and
/// nobody ever reads half of it. `unique` names what is written before it has its place.
pub(crate) fn create_once(path: &Path, bytes: &[u8], unique: &str) -> Result<(), Error> {
    let temporary = path.with_file_name(format!(".{unique}.tmp"));
    let made = (|| {
        let mut file = private(OpenOptions::new().create_new(true).write(true)).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        match fs::hard_link(&temporary, path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    })();
    drop(fs::remove_file(&temporary));
    made.and_then(|()| sync_directory(path))
        .map_err(Error::io("write", path))
}

/// Removes a file, if it is there.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path).and_then(|()| sync_directory(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Gives a file another name, if it is there.
pub(super) fn set_aside(path: &Path, to: &Path) -> Result<(), Error> {
    match fs::rename(path, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("move", path)(error))
        }
        _ => Ok(()),
    }
}

/// Replaces a file that can be made again at any time: atomically, but without waiting for the
/// disk.
pub(super) fn replace_derived(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let temporary = temporary_name(path);
    let mut file =
        private(OpenOptions::new().create(true).write(true).truncate(true)).open(&temporary)?;
    for part in parts {
        file.write_all(part)?;
    }
    fs::rename(&temporary, path)
}

/// Appends one line, or some, and waits until they are on the disk. `lines` ends with a line break.
pub(crate) fn append_line(path: &Path, lines: &str) -> Result<(), Error> {
    append(path, lines, File::sync_data)
}

/// The same without waiting for the disk.
pub(super) fn append_line_unsynced(path: &Path, lines: &str) -> Result<(), Error> {
    append(path, lines, |_| Ok(()))
}

fn append(path: &Path, lines: &str, sync: fn(&File) -> io::Result<()>) -> Result<(), Error> {
    let written = (|| {
        let mut file = private(OpenOptions::new().create(true).append(true)).open(path)?;
        file.write_all(lines.as_bytes())?;
        sync(&file)
    })();
    written.map_err(Error::io("append to", path))
}

/// Opens a file that may be missing for reading and writing in place, creating nothing.
pub(super) fn open_for_update(path: &Path) -> Result<Option<File>, Error> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("write", path)(error)),
    }
}

/// Opens a file for reading and writing in place; an empty one is made where there is none.
pub(super) fn open_or_create(path: &Path) -> Result<File, Error> {
    private(
        OpenOptions::new()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false),
    )
    .open(path)
    .map_err(Error::io("open", path))
}

/// Opens or creates the file that locks are taken on.
pub(super) fn open_lock(path: &Path) -> Result<File, Error> {
    private(OpenOptions::new().create(true).write(true).truncate(false))
        .open(path)
        .map_err(Error::io("lock", path))
}

/// Waits until what was removed from a directory is gone from the disk.
pub(super) fn sync(directory: &Path) -> Result<(), Error> {
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(Error::io("write", directory))
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}

fn temporary_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.tmp"))
}

/// A rename is durable only when the directory is.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_replacement_leaves_the_file_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        replace(&path, b"old").unwrap();
        let failed = replace_with(&path, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("no space"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn new_files_are_private_and_old_ones_keep_their_mode() {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/a.json");
        create_dir(path.parent().unwrap()).unwrap();
        replace(&path, b"1").unwrap();
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        replace(&path, b"2").unwrap();
        assert_eq!(mode(&path), 0o640);
    }
}
