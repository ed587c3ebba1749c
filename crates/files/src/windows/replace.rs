//! Replacement of a file that others hold open.
//!
//! The standard library renames with the semantics of POSIX, which replaces an open file on NTFS
//! since Windows 10. Older systems, other file systems and Wine refuse it, and so may a virus scanner
//! for a moment. Then the old file goes aside under one fixed name, `.<name>.replaced`, and the new
//! one takes the free name.
//!
//! Between these two steps, and after a crash there, a reader that misses the file finds the old one
//! by [`bring_back`]. It never replaces a newer file.
//!
//! The name of a removed file may stay while others have it open (not on NTFS since Windows 10), and
//! could not be used again. So the old file gets a random temporary name before it is removed.

#![expect(
    clippy::disallowed_methods,
    reason = "names in a directory are used by its path, which it keeps while it is open"
)]

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::write::{is_temporary, temporary_name};

/// Error codes: the target is open, open without sharing, or mapped into memory.
const ACCESS_DENIED: i32 = 5;
const SHARING_VIOLATION: i32 = 32;
const USER_MAPPED_FILE: i32 = 1224;
/// Attempts, and the time before the next one. Another process may look at the file just now.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// Renames a file over another one, which may be open.
pub(super) fn rename_over(from: &Path, to: &Path) -> io::Result<()> {
    let aside = aside(to);
    for attempt in 1.. {
        match std::fs::rename(from, to) {
            Err(error) if is_held(&error) && is_file(to) => {}
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
pub(super) fn discard(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_else(|| OsStr::new(""));
    if !is_file(path)
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
pub(super) fn move_out(directory: &Path, to: &Path) {
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
pub(super) fn bring_back(path: &Path) -> bool {
    // A link fails if a new file has come meanwhile; a rename would replace it.
    match std::fs::hard_link(aside(path), path) {
        Ok(()) => {
            drop(std::fs::remove_file(aside(path)));
            true
        }
        Err(error) => error.kind() == io::ErrorKind::AlreadyExists,
    }
}

fn aside(path: &Path) -> std::path::PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_else(|| OsStr::new("")));
    name.push(".replaced");
    path.with_file_name(name)
}

fn is_file(path: &Path) -> bool {
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
            open.push(fs::File::open(&to).unwrap());
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
