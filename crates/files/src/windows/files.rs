//! Files on Windows: names below a directory that is held open.
//!
//! A handle of a directory does not share deletion, so that the directory keeps its name while the
//! handle exists, and a path through it leads to the same place. A reparse point (a link, a junction)
//! is opened itself and refused.
//!
//! Replacement of a file that others hold open: the standard library renames with the semantics of POSIX, which
//! replaces an open file on NTFS since Windows 10. Older systems, other file systems and Wine refuse it, and so may a
//! virus scanner for a moment. Then the old file goes aside under one fixed name, `.<name>.replaced`, and the new
//! one takes the free name. Between these two steps, and after a crash there, a reader that misses the file finds the
//! old one by [`bring_back`]. It never replaces a newer file.
//!
//! The name of a removed file may stay while others have it open (not on NTFS since Windows 10), and
//! could not be used again. So the old file gets a random temporary name before it is removed.

#![expect(
    clippy::disallowed_methods,
    reason = "names in a directory are used by its path, which it keeps while it is open"
)]

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf, Prefix};
use std::thread;
use std::time::Duration;

use winapi_util::file::information;

use crate::file::{Access, FileState, FoundKind};
use crate::write::{is_temporary, temporary_name};

/// Opens directories too.
const BACKUP_SEMANTICS: u32 = 0x0200_0000;
/// Opens a reparse point itself.
const OPEN_REPARSE_POINT: u32 = 0x0020_0000;
/// Lets others read and write, and not rename or delete.
const SHARE_READ_WRITE: u32 = 3;
/// Error codes: a reparse point in the way, not a directory, and a directory in place of a file.
const CANNOT_ACCESS: i32 = 1920;
const NOT_A_DIRECTORY: i32 = 267;
const ACCESS_DENIED: i32 = 5;
/// Error codes of functions that a file system lacks.
const INVALID_FUNCTION: i32 = 1;
const NOT_SUPPORTED: i32 = 50;
/// Seconds from 1601, where the system's time begins, to 1970, and the system's ticks in a second.
const EPOCH: i64 = 11_644_473_600;
const TICKS: i64 = 10_000_000;

/// An open directory, and the path that leads to it while it is open.
#[derive(Debug)]
pub(crate) struct Handle {
    path: PathBuf,
    #[expect(dead_code, reason = "held, so that the directory keeps its name")]
    file: File,
}

/// Opens a directory by path; the last component must not be a link.
pub(crate) fn open_base(path: &Path) -> io::Result<Handle> {
    let file = OpenOptions::new()
        .read(true)
        .share_mode(SHARE_READ_WRITE)
        .custom_flags(BACKUP_SEMANTICS | OPEN_REPARSE_POINT)
        .open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_symlink() {
        return Err(io::Error::from_raw_os_error(CANNOT_ACCESS));
    }
    if !metadata.is_dir() {
        return Err(io::Error::from_raw_os_error(NOT_A_DIRECTORY));
    }
    let path = std::path::absolute(path)?;
    Ok(Handle { path, file })
}

/// Opens a directory in another one.
pub(crate) fn open_directory(at: &Handle, name: &OsStr) -> io::Result<Handle> {
    open_base(&at.path.join(name))
}

/// Opens a file.
pub(crate) fn open_file(at: &Handle, name: &OsStr, access: Access) -> io::Result<File> {
    let path = at.path.join(name);
    // A file that is just being replaced is not created in its place.
    let found = match access {
        Access::UpdateOrCreate | Access::Append if kind(at, name)?.is_none() => None,
        _ => Some(open_path(&path, access)),
    };
    match found {
        Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            if bring_back(&path) {
                open_path(&path, access)
            } else {
                Err(error)
            }
        }
        Some(opened) => opened,
        None => open_path(&path, access),
    }
}

fn open_path(path: &Path, access: Access) -> io::Result<File> {
    let mut options = OpenOptions::new();
    match access {
        Access::Read => options.read(true),
        Access::Update => options.read(true).write(true),
        Access::UpdateOrCreate => options.read(true).write(true).create(true).truncate(false),
        Access::Append => options.append(true).create(true),
        Access::Create => options.write(true).create_new(true),
    };
    let file = options.custom_flags(OPEN_REPARSE_POINT).open(path)?;
    if file.metadata()?.is_symlink() {
        return Err(io::Error::from_raw_os_error(CANNOT_ACCESS));
    }
    Ok(file)
}

/// Returns the kind of an entry without following links; `None` if it does not exist.
pub(crate) fn kind(at: &Handle, name: &OsStr) -> io::Result<Option<FoundKind>> {
    let path = at.path.join(name);
    match kind_of_path(&path)? {
        None if bring_back(&path) => kind_of_path(&path),
        kind => Ok(kind),
    }
}

/// Returns the kind of a path, following links except in the last component.
pub(crate) fn kind_of_path(path: &Path) -> io::Result<Option<FoundKind>> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(of_type(metadata.file_type()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn of_type(kind: std::fs::FileType) -> FoundKind {
    if kind.is_symlink() {
        FoundKind::Link
    } else if kind.is_dir() {
        FoundKind::Directory
    } else if kind.is_file() {
        FoundKind::File
    } else {
        FoundKind::Other
    }
}

/// Creates a directory; `false` if the name is taken.
pub(crate) fn make_directory(at: &Handle, name: &OsStr) -> io::Result<bool> {
    make_base(&at.path.join(name))
}

/// Creates a directory by path; `false` if the name is taken.
fn make_base(path: &Path) -> io::Result<bool> {
    match std::fs::create_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Creates a directory and its missing parents by path. Follows links.
pub(crate) fn make_directories(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    std::fs::create_dir_all(path)
}

/// Removes a file, or a link itself. The name is free at once, also if the file is open.
pub(crate) fn unlink(at: &Handle, name: &OsStr) -> io::Result<()> {
    let path = at.path.join(name);
    if discard(&path) {
        return Ok(());
    }
    match std::fs::remove_file(&path) {
        // A link to a directory is a directory itself.
        Err(error) if kind_of_path(&path)? == Some(FoundKind::Link) => {
            std::fs::remove_dir(&path).map_err(|_| error)
        }
        done => done,
    }
}

/// Removes a directory with its content, also files that are open: the library's function removes
/// with the semantics of POSIX where the file system has them, and follows no link. Elsewhere, and
/// for locked files under Wine, what is open gets a temporary name beside the directory first.
pub(crate) fn remove_open_tree(at: &Handle, name: &OsStr) -> io::Result<()> {
    let path = at.path.join(name);
    let remove = || match std::fs::remove_dir_all(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    };
    match remove() {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            move_out(&path, &at.path);
            remove()
        }
        done => done,
    }
}

/// Removes an empty directory.
pub(crate) fn remove_directory(at: &Handle, name: &OsStr) -> io::Result<()> {
    std::fs::remove_dir(at.path.join(name))
}

/// Renames an entry, replacing the target.
pub(crate) fn rename(from: &Handle, name: &OsStr, to: &Handle, new: &OsStr) -> io::Result<()> {
    rename_over(&from.path.join(name), &to.path.join(new))
}

/// Resolves all links of a path. The system's answer, `\\?\C:\a`, is given as `C:\a` where both name
/// the same, so that a path is the same one whether it was resolved or not.
pub(crate) fn real(path: &Path) -> io::Result<PathBuf> {
    let real = std::fs::canonicalize(path)?;
    let mut parts = real.components();
    let Some(Component::Prefix(prefix)) = parts.next() else {
        return Ok(real);
    };
    let mut plain = match prefix.kind() {
        Prefix::VerbatimDisk(letter) => OsString::from(format!("{}:", char::from(letter))),
        Prefix::VerbatimUNC(server, share) => {
            let mut start = OsString::from(r"\\");
            start.push(server);
            start.push(r"\");
            start.push(share);
            start
        }
        _ => return Ok(real),
    };
    plain.push(parts.as_path());
    // Names of devices, and names that end in a dot or a blank, mean something else there.
    let plain = PathBuf::from(plain);
    let is_same = std::path::absolute(&plain).is_ok_and(|there| there.as_os_str() == plain);
    Ok(if is_same { plain } else { real })
}

/// Fails: the system cannot swap two names.
pub(crate) fn exchange(_: &Handle, _: &OsStr, _: &OsStr) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(NOT_SUPPORTED))
}

/// Fails: a rename of the standard library always replaces. The caller links and unlinks.
pub(crate) fn rename_to_free(_: &Handle, _: &OsStr, _: &OsStr) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(NOT_SUPPORTED))
}

/// Gives a file a second name; fails if that exists.
pub(crate) fn link(at: &Handle, from: &OsStr, to: &OsStr) -> io::Result<()> {
    std::fs::hard_link(at.path.join(from), at.path.join(to))
}

/// Returns `true` if the file system or the system lacks a function.
pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(INVALID_FUNCTION | NOT_SUPPORTED))
}

/// Does nothing: the file system logs changes of names, and directories cannot be synced.
#[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
pub(crate) const fn sync(_: &Handle) -> io::Result<()> {
    Ok(())
}

/// Does nothing: a directory has the permissions of the one that it was made in.
pub(crate) const fn make_private(_: &Handle) {}

/// Returns `None`: files have the rights of their directory.
pub(crate) const fn is_own(_: &Path) -> Option<bool> {
    None
}

/// Does nothing: files have the rights of their directory, which only a write can try.
#[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
pub(crate) const fn check_writable(_: &Handle) -> io::Result<()> {
    Ok(())
}

/// Returns the entries of an open directory with their kinds, unsorted.
pub(crate) fn list(directory: &Handle) -> io::Result<Vec<(OsString, FoundKind)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&directory.path)? {
        let entry = entry?;
        found.push((entry.file_name(), of_type(entry.file_type()?)));
    }
    Ok(found)
}

/// Returns `true` if an error is due to the kind of the object: a link, a directory, and so on.
pub(crate) fn is_of_kind(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(CANNOT_ACCESS | NOT_A_DIRECTORY | ACCESS_DENIED)
    )
}

/// Returns the state of an open file.
pub(crate) fn state(file: &File) -> io::Result<FileState> {
    let about = information(file)?;
    let ticks = i64::try_from(about.last_write_time().unwrap_or_default()).unwrap_or(i64::MAX);
    let written = [ticks / TICKS - EPOCH, ticks % TICKS * 100];
    Ok(FileState {
        device: about.volume_serial_number(),
        inode: about.file_index(),
        size: about.file_size(),
        modified: written,
        changed: written,
    })
}

/// Returns the state of the file at a path, following links.
pub(crate) fn state_of_path(path: &Path) -> io::Result<FileState> {
    let file = OpenOptions::new()
        .access_mode(0)
        .custom_flags(BACKUP_SEMANTICS)
        .open(path)?;
    state(&file)
}

/// Returns the number of names of a file; 1 if the file system does not count them.
pub(crate) fn names(file: &File, _: &Metadata) -> u64 {
    information(file).map_or(1, |about| about.number_of_links())
}

/// Does nothing: a file has the permissions of its directory.
pub(crate) const fn make_file_private(_: &File, _: &Metadata) {}

/// Changes nothing; see [`make_file_private`].
pub(crate) const fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Changes nothing: no name of a file system leads to a pipe that waits.
pub(crate) const fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Does nothing: there is no such permission.
#[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
pub(crate) const fn make_open_executable(_: &File) -> io::Result<()> {
    Ok(())
}

/// Reads and writes at an offset.
///
/// Promise: they do not wait for each other, and threads may share the file. The position of the
/// file's cursor is unspecified afterwards: seek before using it.
pub trait PositionedFile {
    /// Fills the buffer with the bytes at an offset.
    fn read_exact_at(&self, into: &mut [u8], at: u64) -> io::Result<()>;

    /// Writes all bytes at an offset.
    fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;
}

impl PositionedFile for File {
    fn read_exact_at(&self, mut into: &mut [u8], mut at: u64) -> io::Result<()> {
        while !into.is_empty() {
            match self.seek_read(into, at) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    into = &mut into[read..];
                    at += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write_all_at(&self, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.seek_write(bytes, at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = &bytes[written..];
                    at += written as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Makes a symbolic link, for tests.
pub(crate) fn make_link(target: &Path, link: &Path) -> io::Result<()> {
    if target.is_dir() {
        std::os::windows::fs::symlink_dir(target, link)
    } else {
        std::os::windows::fs::symlink_file(target, link)
    }
}

/// Error codes: the target is open, open without sharing, or mapped into memory.
const SHARING_VIOLATION: i32 = 32;
const USER_MAPPED_FILE: i32 = 1224;
/// Attempts, and the time before the next one. Another process may look at the file just now.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// Renames a file over another one, which may be open.
fn rename_over(from: &Path, to: &Path) -> io::Result<()> {
    let aside = aside(to);
    for attempt in 1.. {
        match std::fs::rename(from, to) {
            Err(error) if is_held(&error) && is_plain_file(to) => {}
            done => return done,
        }
        // A crash may have left it.
        discard(&aside);
        let moved = std::fs::rename(to, &aside).and_then(|()| std::fs::rename(from, to));
        if moved.is_err() {
            bring_back(to);
        }
        match moved {
            Err(error) if is_held(&error) && attempt < ATTEMPTS => thread::sleep(PAUSE),
            Err(error) => return Err(error),
            Ok(()) => break,
        }
    }
    discard(&aside);
    Ok(())
}

/// Removes a file that may be open, so that its name is free at once. A file that cannot be removed
/// before others have closed it is swept like any temporary file. Returns `false` if it did nothing: the
/// file is missing, or open without shared deletion, or it is a temporary one itself.
fn discard(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_else(|| OsStr::new(""));
    if !is_plain_file(path)
        || name
            .to_str()
            .is_some_and(|name| is_temporary(name).is_some())
    {
        return false;
    }
    let doomed = path.with_file_name(temporary_name(name));
    let is_moved = std::fs::rename(path, &doomed).is_ok();
    if is_moved {
        drop(std::fs::remove_file(&doomed));
    }
    is_moved
}

/// Moves all files of a directory and its directories to temporary names in another one, and removes
/// them there as soon as nobody has them open.
fn move_out(directory: &Path, to: &Path) {
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(entry.path()),
                Ok(kind) if kind.is_file() => {
                    let doomed = to.join(temporary_name(&entry.file_name()));
                    if std::fs::rename(entry.path(), &doomed).is_ok() {
                        drop(std::fs::remove_file(&doomed));
                    }
                }
                _ => {}
            }
        }
    }
}

/// Gives a missing file the old one back that was set aside for it. Returns `true` if a file may be
/// there now.
fn bring_back(path: &Path) -> bool {
    // A link fails if a new file has come meanwhile; a rename would replace it.
    match std::fs::hard_link(aside(path), path) {
        Ok(()) => {
            drop(std::fs::remove_file(aside(path)));
            true
        }
        Err(error) => error.kind() == io::ErrorKind::AlreadyExists,
    }
}

fn aside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_else(|| OsStr::new("")));
    name.push(".replaced");
    path.with_file_name(name)
}

fn is_plain_file(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

fn is_held(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(ACCESS_DENIED | SHARING_VIOLATION | USER_MAPPED_FILE)
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn open_file_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::write(&to, "0").unwrap();
        let mut open = Vec::new();
        for round in 1..4 {
            open.push(File::open(&to).unwrap());
            fs::write(&from, round.to_string()).unwrap();
            rename_over(&from, &to).unwrap();
            assert_eq!(fs::read_to_string(&to).unwrap(), round.to_string());
            assert!(!from.exists());
        }
        let read = open
            .into_iter()
            .map(|file| io::read_to_string(file).unwrap());
        assert_eq!(read.collect::<Vec<_>>(), ["0", "1", "2"]);
    }

    #[test]
    fn file_set_aside_comes_back_and_replaces_no_newer_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        assert!(!bring_back(&path));
        fs::write(aside(&path), "old").unwrap();
        assert!(bring_back(&path));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        fs::write(aside(&path), "older").unwrap();
        assert!(bring_back(&path));
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    #[test]
    fn directory_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("from"), "new").unwrap();
        fs::create_dir(dir.path().join("to")).unwrap();
        assert!(rename_over(&dir.path().join("from"), &dir.path().join("to")).is_err());
        assert!(dir.path().join("to").is_dir());
    }
}
