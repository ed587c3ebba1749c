//! System calls relative to an open directory. Porting to another operating system replaces this
//! file.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::kind::FoundKind;

/// Mode of new directories.
const DIRECTORY_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::from_raw_mode(0o600);

/// Modes of opening a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// For reading.
    Read,
    /// For reading and writing in place.
    Update,
    /// For reading and writing in place; created if missing.
    UpdateOrCreate,
    /// For appending; created if missing.
    Append,
    /// For writing a new file; fails if it exists.
    Create,
}

/// Opens a directory by path; the last component must not be a link.
pub(super) fn open_base(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(
        CWD,
        path,
        directory_flags(),
        Mode::empty(),
    )?)
}

/// Opens a directory in another one.
pub(super) fn open_directory(at: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(
        at,
        name,
        directory_flags(),
        Mode::empty(),
    )?)
}

fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// Opens a file. The caller must check its kind: a pipe or a device opens without blocking.
pub(super) fn open_file(at: BorrowedFd<'_>, name: &OsStr, access: Access) -> io::Result<File> {
    let how = match access {
        Access::Read => OFlags::RDONLY,
        Access::Update => OFlags::RDWR,
        Access::UpdateOrCreate => OFlags::RDWR | OFlags::CREATE,
        Access::Append => OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE,
        Access::Create => OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
    };
    let always = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(at, name, how | always, FILE_MODE)?.into())
}

/// Returns the kind of an entry without following links; `None` if it does not exist.
pub(super) fn kind(at: BorrowedFd<'_>, name: &OsStr) -> io::Result<Option<FoundKind>> {
    match rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(of_type(FileType::from_raw_mode(stat.st_mode)))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the kind of a path, following links except in the last component.
pub(super) fn kind_of_path(path: &Path) -> io::Result<Option<FoundKind>> {
    kind(CWD, path.as_os_str())
}

fn of_type(kind: FileType) -> FoundKind {
    match kind {
        FileType::RegularFile => FoundKind::File,
        FileType::Directory => FoundKind::Directory,
        FileType::Symlink => FoundKind::Link,
        _ => FoundKind::Other,
    }
}

/// Creates a directory; `false` if the name is taken.
pub(super) fn make_directory(at: BorrowedFd<'_>, name: &OsStr) -> io::Result<bool> {
    match rustix::fs::mkdirat(at, name, DIRECTORY_MODE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Creates a directory by path; `false` if the name is taken.
pub(super) fn make_base(path: &Path) -> io::Result<bool> {
    make_directory(CWD, path.as_os_str())
}

/// Creates a directory and its missing parents by path, private to the user. Follows links.
#[expect(
    clippy::disallowed_methods,
    reason = "the parents of a base are opened by their path"
)]
pub(super) fn make_directories(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// Removes a file, or a link itself.
pub(super) fn unlink(at: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::unlinkat(at, name, AtFlags::empty())?)
}

/// Removes an empty directory.
pub(super) fn remove_directory(at: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::unlinkat(at, name, AtFlags::REMOVEDIR)?)
}

/// Renames an entry, replacing the target.
pub(super) fn rename(
    from: BorrowedFd<'_>,
    name: &OsStr,
    to: BorrowedFd<'_>,
    new: &OsStr,
) -> io::Result<()> {
    Ok(rustix::fs::renameat(from, name, to, new)?)
}

/// Swaps two names in a directory atomically.
pub(super) fn exchange(at: BorrowedFd<'_>, a: &OsStr, b: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::renameat_with(
        at,
        a,
        at,
        b,
        RenameFlags::EXCHANGE,
    )?)
}

/// Renames an entry; fails if the target exists.
pub(super) fn rename_to_free(at: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::renameat_with(
        at,
        from,
        at,
        to,
        RenameFlags::NOREPLACE,
    )?)
}

/// Gives a file a second name; fails if that exists.
pub(super) fn link(at: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::linkat(at, from, at, to, AtFlags::empty())?)
}

/// Returns `true` if the file system or the kernel lacks a system call or one of its flags.
pub(super) fn is_unsupported(error: &io::Error) -> bool {
    let number = error.raw_os_error();
    let lacks = [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP];
    lacks.iter().any(|lack| number == Some(lack.raw_os_error()))
}

/// Syncs the names in a directory to disk.
pub(super) fn sync(directory: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::fs::fsync(directory)?)
}

/// Removes the permissions of group and others from an open directory. Ignores failure, because
/// only the owner may change them.
pub(super) fn make_private(directory: BorrowedFd<'_>) {
    if let Ok(stat) = rustix::fs::fstat(directory) {
        let mode = Mode::from_raw_mode(stat.st_mode);
        if mode.intersects(Mode::RWXG | Mode::RWXO) {
            let _owned: rustix::io::Result<()> = rustix::fs::fchmod(directory, mode & Mode::RWXU);
        }
    }
}

/// Returns the entries of an open directory with their kinds, unsorted.
pub(super) fn list(directory: BorrowedFd<'_>) -> io::Result<Vec<(std::ffi::OsString, FoundKind)>> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut found = Vec::new();
    for entry in rustix::fs::Dir::read_from(directory)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => kind(directory.as_fd(), name)?,
            known => Some(of_type(known)),
        };
        // Skips a name that has disappeared meanwhile.
        found.extend(kind.map(|kind| (name.to_owned(), kind)));
    }
    Ok(found)
}

/// Returns `true` if an error is due to the kind of the object: a link, a device, a directory, and
/// so on.
pub(super) fn is_of_kind(error: &io::Error) -> bool {
    let number = error.raw_os_error();
    let kinds = [
        Errno::LOOP,
        Errno::MLINK,
        Errno::NOTDIR,
        Errno::ISDIR,
        Errno::NXIO,
        Errno::NODEV,
    ];
    kinds.iter().any(|kind| number == Some(kind.raw_os_error()))
}
