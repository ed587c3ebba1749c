//! The `.agentura` directory: where it is, who it is, and the lock on it.
//!
//! Mutating methods exist only on what a [`Lock`] has opened, so nothing is written without it. The
//! lock is advisory and belongs to the open file: it goes away with the process, however that ends.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::model::Kind;
use crate::platform::{Directory, named};

use super::atomic;
use super::error::Error;

/// The name of the memory directory inside a workspace.
pub const DIRECTORY: &str = ".agentura";
/// The name of the directory for files that can be made again, inside the memory directory.
pub(super) const DERIVED: &str = ".index";
pub(super) const IDENTITY: &str = "workspace.json";
pub(super) const LOCK: &str = ".lock";
/// The most bytes of a file that says a few words.
pub(super) const SMALL_FILE: u64 = 1 << 20;

/// Looks for `.agentura` in `start` and the directories above it, but never above `home`.
pub fn find(start: &Path, home: Option<&Path>) -> Option<PathBuf> {
    for directory in start.ancestors() {
        let candidate = directory.join(DIRECTORY);
        // A link counts as found: to look further up, or to begin a memory here, would hide it.
        if named::is_dir(&candidate)
            || named::link_metadata(&candidate).is_ok_and(|m| m.is_symlink())
        {
            return Some(candidate);
        }
        if Some(directory) == home {
            break;
        }
    }
    None
}

/// Who a workspace is to other workspaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// A random UUID, made once: the origin of every record that is born here.
    pub origin: String,
    /// The key of the hashes in tombstones: random, and different in every workspace.
    pub tombstone_key: String,
}

/// Reads who the workspace is, if it has been said.
pub(super) fn identity(directory: &Directory) -> Option<Identity> {
    let text = directory.read(IDENTITY, SMALL_FILE).ok()??;
    serde_json::from_slice(&text).ok()
}

/// The right to write to a memory directory.
#[derive(Debug)]
pub(super) struct Lock {
    directory: Directory,
    // Closing the file gives the lock back.
    _file: File,
}

impl Lock {
    /// Waits for the lock, at most so long. Creates the directory where it is missing.
    pub(super) fn take(directory: impl Into<Directory>, limit: Duration) -> Result<Self, Error> {
        let directory = directory.into();
        atomic::create_dir(&directory)?;
        let directory = directory.hold().map_err(Error::io("open", &directory))?;
        directory
            .make_private()
            .map_err(Error::io("open", &directory))?;
        let file = directory.open_or_create(LOCK);
        let file = file.map_err(Error::io("lock", &directory.join(LOCK)))?;
        wait_for(&directory, limit, || file.try_lock())?;
        Ok(Self {
            directory,
            _file: file,
        })
    }

    /// The directory that is locked.
    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Whether nobody has begun a memory in the directory: there is no identity, and no record.
    pub(super) fn is_new(&self) -> bool {
        let names = Kind::ALL.map(Kind::file);
        let names = names.into_iter().chain([IDENTITY, super::pulled::PULLED]);
        names
            .into_iter()
            .all(|name| matches!(self.directory.kind(name), Ok(None)))
    }

    /// Who the workspace is; decided now where it was not.
    pub(super) fn identity(&self, random: &mut dyn FnMut() -> String) -> Result<Identity, Error> {
        if let Some(identity) = identity(&self.directory) {
            return Ok(identity);
        }
        let identity = Identity {
            origin: random(),
            tombstone_key: random(),
        };
        name(self, &identity)?;
        Ok(identity)
    }
}

/// Tries to get a lock until it is there, at most so long: no lock is ever waited for without an end, since
/// whoever may open the file may keep it. `path` is what is locked, for the error.
pub(super) fn wait_for(
    path: &Path,
    limit: Duration,
    mut attempt: impl FnMut() -> Result<(), TryLockError>,
) -> Result<(), Error> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        match attempt() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(source)) => return Err(Error::io("lock", path)(source)),
            Err(TryLockError::WouldBlock) if start.elapsed() >= limit => {
                return Err(Error::Locked {
                    path: path.to_owned(),
                    waited_ms: start.elapsed().as_millis(),
                });
            }
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(pause);
                // Short pauses while a single write is in the way, longer ones in a crowd.
                pause = (pause * 2).min(Duration::from_millis(8));
            }
        }
    }
}

/// Says who the workspace is, whatever was said before.
pub(super) fn name(lock: &Lock, identity: &Identity) -> Result<(), Error> {
    let mut text = serde_json::to_string_pretty(identity)?;
    text.push('\n');
    atomic::replace(&lock.directory, IDENTITY, text.as_bytes())
}

/// Whether another process is writing to the directory at this moment.
pub(super) fn is_being_written(directory: &Directory) -> bool {
    let Ok(Some(file)) = directory.open(LOCK) else {
        return false;
    };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Keeps writers out for as long as the answer lives; `None` where they did not let go in time.
pub(super) fn share(directory: &Directory, limit: Duration) -> Option<File> {
    let file = directory.open(LOCK).ok()??;
    let start = Instant::now();
    while start.elapsed() < limit {
        if file.try_lock_shared().is_ok() {
            return Some(file);
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    None
}

/// A data file, opened for reading; `None` where it is missing.
pub(super) fn open_data(directory: &Directory, name: &str) -> Result<Option<File>, Error> {
    let opened = directory.open(name);
    opened.map_err(Error::io("read", &directory.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_found_from_below_but_not_above_home() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        let project = home.join("work/project");
        let below = project.join("src/deep");
        std::fs::create_dir_all(&below).unwrap();
        assert_eq!(find(&below, Some(&home)), None);
        std::fs::create_dir(root.path().join(DIRECTORY)).unwrap();
        assert_eq!(find(&below, Some(&home)), None);
        assert_eq!(find(&below, None), Some(root.path().join(DIRECTORY)));
        std::fs::create_dir(project.join(DIRECTORY)).unwrap();
        assert_eq!(find(&below, Some(&home)), Some(project.join(DIRECTORY)));
    }

    #[test]
    fn a_held_lock_is_waited_for_and_then_reported() {
        let dir = tempfile::tempdir().unwrap();
        let held = Lock::take(dir.path(), Duration::ZERO).unwrap();
        assert!(is_being_written(&dir.path().into()));
        let refused = Lock::take(dir.path(), Duration::from_millis(20));
        assert!(matches!(
            refused,
            Err(Error::Locked {
                waited_ms: 20..,
                ..
            })
        ));
        drop(held);
        assert!(!is_being_written(&dir.path().into()));
        Lock::take(dir.path(), Duration::ZERO).unwrap();
    }

    #[test]
    fn a_workspace_keeps_its_identity() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path(), Duration::ZERO).unwrap();
        let mut n = 0;
        let mut random = || {
            n += 1;
            n.to_string()
        };
        let first = lock.identity(&mut random).unwrap();
        assert_ne!(first.origin, first.tombstone_key);
        assert_eq!(lock.identity(&mut random).unwrap(), first);
    }

    #[test]
    fn a_link_is_refused_wherever_it_leads() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::at(dir.path());
        let outside = tempfile::NamedTempFile::new().unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("a.json")).unwrap();
        assert!(open_data(&directory, "a.json").is_err());
        atomic::replace(&directory, "b.json", b"{}").unwrap();
        std::os::unix::fs::symlink("b.json", dir.path().join("c.json")).unwrap();
        assert!(open_data(&directory, "c.json").is_err());
        assert!(open_data(&directory, "b.json").unwrap().is_some());
    }
}
