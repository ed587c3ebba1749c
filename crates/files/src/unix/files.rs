//! Files on Unix: system calls relative to an open directory.

#![expect(
    clippy::disallowed_methods,
    reason = "the one place that asks the system for files by path"
)]

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
pub use std::os::unix::fs::FileExt as PositionedFile;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;

use crate::file::{Access, FileState, FoundKind};

/// Mode of new directories.
const DIRECTORY_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::from_raw_mode(0o600);

/// An open directory.
#[derive(Debug)]
pub(crate) struct Handle(OwnedFd);

/// Opens a directory by path; the last component must not be a link.
pub(crate) fn open_base(path: &Path) -> io::Result<Handle> {
    let opened = rustix::fs::openat(CWD, path, directory_flags(), Mode::empty());
    Ok(Handle(opened?))
}

/// Opens a directory in another one.
pub(crate) fn open_directory(at: &Handle, name: &OsStr) -> io::Result<Handle> {
    let opened = rustix::fs::openat(&at.0, name, directory_flags(), Mode::empty());
    Ok(Handle(opened?))
}

fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// Opens a file. The caller must check its kind: a pipe or a device opens without blocking.
pub(crate) fn open_file(at: &Handle, name: &OsStr, access: Access) -> io::Result<File> {
    let how = match access {
        Access::Read => OFlags::RDONLY,
        Access::Update => OFlags::RDWR,
        Access::UpdateOrCreate => OFlags::RDWR | OFlags::CREATE,
        Access::Append => OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE,
        Access::Create => OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
    };
    let always = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if how.contains(OFlags::CREATE) && rustix::process::geteuid().is_root() {
        // Only a file that is new for certain changes its owner: another name of one may lead anywhere.
        match rustix::fs::openat(&at.0, name, how | OFlags::EXCL | always, FILE_MODE) {
            Ok(file) => {
                keep_owner(at, file.as_fd());
                return Ok(file.into());
            }
            Err(Errno::EXIST) if access != Access::Create => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(rustix::fs::openat(&at.0, name, how | always, FILE_MODE)?.into())
}

/// Gives what root has made to the owner of its directory, who could not use it otherwise.
fn keep_owner(at: &Handle, new: BorrowedFd<'_>) {
    if let Ok(above) = rustix::fs::fstat(&at.0)
        && above.st_uid != 0
    {
        let (user, group) = (Uid::from_raw(above.st_uid), Gid::from_raw(above.st_gid));
        let _kept: rustix::io::Result<()> = rustix::fs::fchown(new, Some(user), Some(group));
    }
}

/// Returns `true` if a path, not following a link, belongs to the user of this process; `None` if it does not exist.
pub(crate) fn is_own(path: &Path) -> Option<bool> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    Some(metadata.uid() == rustix::process::geteuid().as_raw())
}

/// Fails if no entry of an open directory can be made or replaced.
pub(crate) fn check_writable(directory: &Handle) -> io::Result<()> {
    let access = rustix::fs::Access::WRITE_OK;
    let granted = rustix::fs::accessat(&directory.0, ".", access, AtFlags::EACCESS);
    Ok(granted?)
}

/// Returns the kind of an entry without following links; `None` if it does not exist.
pub(crate) fn kind(at: &Handle, name: &OsStr) -> io::Result<Option<FoundKind>> {
    kind_at(at.0.as_fd(), name)
}

fn kind_at(at: BorrowedFd<'_>, name: &OsStr) -> io::Result<Option<FoundKind>> {
    match rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(of_type(FileType::from_raw_mode(stat.st_mode)))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the kind of a path, following links except in the last component.
pub(crate) fn kind_of_path(path: &Path) -> io::Result<Option<FoundKind>> {
    kind_at(CWD, path.as_os_str())
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
pub(crate) fn make_directory(at: &Handle, name: &OsStr) -> io::Result<bool> {
    let is_new = make_directory_at(at.0.as_fd(), name)?;
    if is_new
        && rustix::process::geteuid().is_root()
        && let Ok(new) = open_directory(at, name)
    {
        keep_owner(at, new.0.as_fd());
    }
    Ok(is_new)
}

fn make_directory_at(at: BorrowedFd<'_>, name: &OsStr) -> io::Result<bool> {
    match rustix::fs::mkdirat(at, name, DIRECTORY_MODE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Creates a directory by path; `false` if the name is taken.
fn make_base(path: &Path) -> io::Result<bool> {
    // What is above may be a link: the user named it.
    if let (Ok(above), Some(name)) = (real(crate::named::above(path)), path.file_name())
        && let Ok(above) = open_base(&above)
    {
        return make_directory(&above, name);
    }
    make_directory_at(CWD, path.as_os_str())
}

/// Creates a directory and its missing parents by path, private to the user. Follows links.
pub(crate) fn make_directories(path: &Path) -> io::Result<()> {
    let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.is_dir();
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    for new in missing.iter().rev() {
        if !make_base(new)? && !new.is_dir() {
            return Err(Errno::EXIST.into());
        }
    }
    Ok(())
}

/// Removes a file, or a link itself.
pub(crate) fn unlink(at: &Handle, name: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::unlinkat(&at.0, name, AtFlags::empty())?)
}

/// Does nothing: files that are open are removed one by one.
#[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
pub(crate) const fn remove_open_tree(_: &Handle, _: &OsStr) -> io::Result<()> {
    Ok(())
}

/// Removes an empty directory.
pub(crate) fn remove_directory(at: &Handle, name: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::unlinkat(&at.0, name, AtFlags::REMOVEDIR)?)
}

/// Renames an entry, replacing the target.
pub(crate) fn rename(from: &Handle, name: &OsStr, to: &Handle, new: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::renameat(&from.0, name, &to.0, new)?)
}

/// Resolves all links of a path.
pub(crate) fn real(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

/// Swaps two names in a directory atomically.
pub(crate) fn exchange(at: &Handle, a: &OsStr, b: &OsStr) -> io::Result<()> {
    let swapped = rustix::fs::renameat_with(&at.0, a, &at.0, b, RenameFlags::EXCHANGE);
    Ok(swapped?)
}

/// Renames an entry; fails if the target exists.
pub(crate) fn rename_to_free(at: &Handle, from: &OsStr, to: &OsStr) -> io::Result<()> {
    let renamed = rustix::fs::renameat_with(&at.0, from, &at.0, to, RenameFlags::NOREPLACE);
    Ok(renamed?)
}

/// Gives a file a second name; fails if that exists.
pub(crate) fn link(at: &Handle, from: &OsStr, to: &OsStr) -> io::Result<()> {
    let linked = rustix::fs::linkat(&at.0, from, &at.0, to, AtFlags::empty());
    Ok(linked?)
}

/// Returns `true` if the file system or the kernel lacks a system call or one of its flags.
pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    let number = error.raw_os_error();
    let lacks = [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP];
    lacks.iter().any(|lack| number == Some(lack.raw_os_error()))
}

/// Syncs the names in a directory to disk.
pub(crate) fn sync(directory: &Handle) -> io::Result<()> {
    Ok(rustix::fs::fsync(&directory.0)?)
}

/// Removes the permissions of group and others from an open directory of this user. Root leaves the
/// mode of others' directories as it is.
pub(crate) fn make_private(directory: &Handle) {
    if let Ok(stat) = rustix::fs::fstat(&directory.0)
        && stat.st_uid == rustix::process::geteuid().as_raw()
    {
        let mode = Mode::from_raw_mode(stat.st_mode);
        if mode.intersects(Mode::RWXG | Mode::RWXO) {
            let _owned: rustix::io::Result<()> =
                rustix::fs::fchmod(&directory.0, mode & Mode::RWXU);
        }
    }
}

/// Returns the entries of an open directory with their kinds, unsorted.
pub(crate) fn list(directory: &Handle) -> io::Result<Vec<(OsString, FoundKind)>> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut found = Vec::new();
    for entry in rustix::fs::Dir::read_from(&directory.0)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => kind(directory, name)?,
            other => Some(of_type(other)),
        };
        // Skips a name that has disappeared meanwhile.
        found.extend(kind.map(|kind| (name.to_owned(), kind)));
    }
    Ok(found)
}

/// Returns `true` if an error is due to the kind of the object: a link, a device, a directory, and
/// so on.
pub(crate) fn is_of_kind(error: &io::Error) -> bool {
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

/// Returns the state of an open file.
pub(crate) fn state(file: &File) -> io::Result<FileState> {
    Ok(state_of(&file.metadata()?))
}

/// Returns the state of the file at a path, following links.
pub(crate) fn state_of_path(path: &Path) -> io::Result<FileState> {
    Ok(state_of(&std::fs::metadata(path)?))
}

fn state_of(metadata: &Metadata) -> FileState {
    FileState {
        device: metadata.dev(),
        inode: metadata.ino(),
        size: metadata.size(),
        modified: [metadata.mtime(), metadata.mtime_nsec()],
        changed: [metadata.ctime(), metadata.ctime_nsec()],
    }
}

/// Returns the number of names of a file.
pub(crate) fn names(_: &File, metadata: &Metadata) -> u64 {
    metadata.nlink()
}

/// Removes the permissions of group and others, and sets those of the owner, if the user owns the
/// file.
pub(crate) fn make_file_private(file: &File, metadata: &Metadata) {
    if metadata.permissions().mode() & 0o7777 != 0o600 {
        drop(file.set_permissions(Permissions::from_mode(0o600)));
    }
}

/// Lets the file be private when it is created.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Lets opening a pipe or a device return at once.
pub(crate) fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    options.custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
}

/// Makes an open file executable.
pub(crate) fn make_open_executable(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o755))
}

/// Makes a symbolic link, for tests.
pub(crate) fn make_link(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}
