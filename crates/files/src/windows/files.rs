//! Files on Windows: names below a directory that is held open.
//!
//! A handle of a directory does not share deletion, so that the directory keeps its name while the
//! handle exists, and a path through it leads to the same place. A reparse point (a link, a junction)
//! is opened itself and refused.

#![expect(
    clippy::disallowed_methods,
    reason = "names in a directory are used by its path, which it keeps while it is open"
)]

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Seek as _};
use std::os::windows::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf, Prefix};

use winapi_util::file::information;

use crate::file::{Access, FileState, FoundKind};

use super::replace;

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
            if replace::bring_back(&path) {
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
        None if replace::bring_back(&path) => kind_of_path(&path),
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
pub(crate) fn make_base(path: &Path) -> io::Result<bool> {
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
    if replace::discard(&path) {
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
            replace::move_out(&path, &at.path);
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
    replace::rename_over(&from.path.join(name), &to.path.join(new))
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

/// Returns `false`: files have the rights of their directory.
pub(crate) const fn is_own(_: &Path) -> bool {
    false
}

/// Does nothing: files have the rights of their directory, which only a write can try.
#[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
pub(crate) const fn check_writable(_: &Handle) -> io::Result<()> {
    Ok(())
}

/// Returns `None`; see [`is_own`].
pub(crate) const fn owner_of_path(_: &Path) -> Option<String> {
    None
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
    /// Reads some bytes at an offset; 0 at the end of the file.
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize>;

    /// Fills the buffer with the bytes at an offset.
    fn read_exact_at(&self, into: &mut [u8], at: u64) -> io::Result<()>;

    /// Writes all bytes at an offset.
    fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;
}

/// Reads or writes at an offset, and lets the position of the file be as it was: here, both move it.
fn keeping_position<T>(mut file: &File, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let position = file.stream_position()?;
    let done = act();
    file.seek(io::SeekFrom::Start(position))?;
    done
}

impl PositionedFile for File {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        keeping_position(self, || self.seek_read(into, at))
    }

    fn read_exact_at(&self, mut into: &mut [u8], mut at: u64) -> io::Result<()> {
        while !into.is_empty() {
            match self.read_at(into, at) {
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
            match keeping_position(self, || self.seek_write(bytes, at)) {
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
