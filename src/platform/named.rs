//! Files that a person names, or that belong to other programs: transcripts, what goes out by
//! `--output`, the settings of agent hosts, keys, the user's own settings. They are opened by path,
//! and links in it are followed as everywhere: the user has chosen them.
//!
//! Nothing below `.agentura` or `skills` goes through here.
#![expect(
    clippy::disallowed_methods,
    reason = "files that a user names are opened by their path"
)]

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::directory::Directory;
use super::refused::{Reason, Refused};
use super::{file, temporary};

/// Opens a file for reading, whatever kind it is of.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Reads a regular file of at most `limit` bytes.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open_plain(path)?;
    file::read(file, path, limit)
}

/// Opens a regular file; a pipe or a device is refused at once.
pub(crate) fn open_plain(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(Refused::error(path, Reason::NotAFile))
    }
}

/// Reads a text of at most `limit` bytes from a regular file.
pub(crate) fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let bytes = read(path, limit)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads a text, whatever kind of file it comes from.
pub(crate) fn read_any_text(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Size, kind and times of what a path leads to.
pub(crate) fn metadata(path: &Path) -> io::Result<Metadata> {
    fs::metadata(path)
}

/// The same of a link itself.
pub(crate) fn link_metadata(path: &Path) -> io::Result<Metadata> {
    fs::symlink_metadata(path)
}

pub(crate) fn exists(path: &Path) -> bool {
    path.exists()
}

pub(crate) fn is_file(path: &Path) -> bool {
    path.is_file()
}

pub(crate) fn is_dir(path: &Path) -> bool {
    path.is_dir()
}

/// Entries of a directory, in the order of names.
pub(crate) fn list(path: &Path) -> io::Result<Vec<fs::DirEntry>> {
    let mut entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    Ok(entries)
}

/// Makes a directory and those above it, each new one for its owner alone.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// Replaces a regular file, or makes a new one: private, or with the mode that the old one had. What
/// is neither stays: a device or a pipe is no place for a file.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    refuse_special(path)?;
    let temporary = beside(path);
    let written = (|| {
        let mut file = create(&temporary)?;
        file.write_all(bytes)?;
        if let Ok(old) = fs::metadata(path) {
            file.set_permissions(old.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        sync_above(path)
    })();
    if written.is_err() {
        drop(fs::remove_file(&temporary));
    }
    written
}

/// Refuses what is neither a regular file nor absent, a link being what it leads to.
pub(crate) fn refuse_special(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(Refused::error(path, Reason::Special)),
        _ => Ok(()),
    }
}

/// Makes a file with these bytes where there is none: of several who do so at once, one does, and
/// nobody ever reads half of it.
pub(crate) fn create_once(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = beside(path);
    let made = (|| {
        let mut file = create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        match fs::hard_link(&temporary, path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    })();
    drop(fs::remove_file(&temporary));
    made.and_then(|()| sync_above(path))
}

/// Adds bytes at the end of a file and waits until they are on the disk.
pub(crate) fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_data()
}

/// Removes a file; `false` where there was none.
pub(crate) fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => sync_above(path).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// A directory that a person names, with the links on the way to it resolved: what lies in it is
/// opened without links all the same.
pub(crate) fn directory(path: &Path) -> Directory {
    Directory::at(resolved(path))
}

/// Where a path leads after all links.
pub(crate) fn real(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

/// Where a path leads after all links; itself where it leads nowhere.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    real(path).unwrap_or_else(|_| path.to_owned())
}

/// Removes a directory that is empty.
pub(crate) fn remove_empty_dir(path: &Path) -> io::Result<()> {
    fs::remove_dir(path)
}

/// Lets a file be started as a program.
pub(crate) fn make_executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(path)
}

fn beside(path: &Path) -> PathBuf {
    let name: OsString = temporary::name(path.file_name().unwrap_or_default());
    path.with_file_name(name)
}

/// A rename is durable only when the directory is.
fn sync_above(path: &Path) -> io::Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let directory = File::open(above.unwrap_or(Path::new(".")))?;
    super::sys::sync(directory.as_fd())
}
