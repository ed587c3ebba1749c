//! The `.agentura` directory: its location, its identity and its lock.
//!
//! Every change to records happens under a [`Lock`]. The lock is advisory and belongs to the open
//! file: it is released when the process ends, however that happens.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::model::Kind;
use crate::store::atomic;
use crate::store::error::Error;
use memctl_files::{Directory, named};

use super::file_names::REMOTE;

/// Name of the memory directory in a workspace.
pub const DIRECTORY: &str = ".agentura";
/// Name of the directory for derived files in the memory directory.
pub(crate) const DERIVED: &str = ".index";
pub(crate) const IDENTITY: &str = "workspace.json";
pub(crate) const LOCK: &str = ".lock";
/// Maximum size of small metadata files in bytes.
pub(crate) const SMALL_FILE: u64 = 1 << 20;

/// Searches `start` and its parents for `.agentura`, but not above `home`.
pub fn find(start: &Path, home: Option<&Path>) -> Option<PathBuf> {
    for directory in start.ancestors() {
        let candidate = directory.join(DIRECTORY);
        // A link counts as found: searching further up or creating a new memory here would hide it.
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

/// Identity of a workspace, as seen by other workspaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// A random UUID, created once: the origin of every record created here.
    pub origin: String,
    /// Key of the hashes in tombstones: random for every workspace.
    pub tombstone_key: String,
}

/// Reads the identity of the workspace, if it has one.
pub(crate) fn identity(directory: &Directory) -> Option<Identity> {
    let text = directory.read(IDENTITY, SMALL_FILE).ok()??;
    serde_json::from_slice(&text).ok()
}

/// Exclusive write access to a memory directory.
#[derive(Debug)]
pub(crate) struct Lock {
    directory: Directory,
    // Closing the file releases the lock.
    _file: File,
}

impl Lock {
    /// Waits for the lock, up to the limit. Creates a missing directory.
    pub(crate) fn take(directory: impl Into<Directory>, limit: Duration) -> Result<Self, Error> {
        let directory = directory.into();
        atomic::create_dir(&directory)?;
        let directory = directory.hold().map_err(Error::io("open", &directory))?;
        directory
            .make_private()
            .map_err(Error::io("open", &directory))?;
        let file = atomic::open_or_create(&directory, LOCK)?;
        wait_for(&directory, limit, || file.try_lock())?;
        Ok(Self {
            directory,
            _file: file,
        })
    }

    /// Returns the locked directory.
    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Returns `true` if the directory holds no memory yet: no identity, no records and no remote
    /// records.
    pub(crate) fn is_new(&self) -> bool {
        let names = Kind::ALL.map(Kind::file);
        let names = names.into_iter().chain([IDENTITY, REMOTE]);
        names
            .into_iter()
            .all(|name| matches!(self.directory.kind(name), Ok(None)))
    }

    /// Returns the identity of the workspace, and creates a missing one.
    pub(crate) fn identity(&self, random: &mut dyn FnMut() -> String) -> Result<Identity, Error> {
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

/// Retries a lock until it succeeds or the time limit is over. Every wait has a limit, because any
/// process that can open the file can hold the lock. `path` names the locked object in errors.
pub(crate) fn wait_for(
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
                // Short pauses for a single writer, longer ones for many.
                pause = (pause * 2).min(Duration::from_millis(8));
            }
        }
    }
}

/// Writes the identity of the workspace, replacing any other.
pub(crate) fn name(lock: &Lock, identity: &Identity) -> Result<(), Error> {
    let mut text = serde_json::to_string_pretty(identity)?;
    text.push('\n');
    atomic::replace(&lock.directory, IDENTITY, text.as_bytes())
}

/// Returns `true` if another process holds the write lock.
pub(crate) fn is_being_written(directory: &Directory) -> bool {
    let Ok(Some(file)) = directory.open(LOCK) else {
        return false;
    };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Takes a shared lock that keeps writers out while held; `None` if a writer holds on past the
/// limit.
pub(crate) fn share(directory: &Directory, limit: Duration) -> Option<File> {
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

/// Opens a data file for reading; `None` if it does not exist.
pub(crate) fn open_data(directory: &Directory, name: &str) -> Result<Option<File>, Error> {
    let opened = directory.open(name);
    opened.map_err(Error::io("read", &directory.join(name)))
}

#[cfg(test)]
mod tests {
    use super::super::directory::*;

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
    #[cfg_attr(windows, ignore = "Wine makes no symbolic links")]
    fn a_link_is_refused_wherever_it_leads() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::at(dir.path());
        let outside = tempfile::NamedTempFile::new().unwrap();
        memctl_files::make_link(outside.path(), dir.path().join("a.json")).unwrap();
        assert!(open_data(&directory, "a.json").is_err());
        atomic::replace(&directory, "b.json", b"{}").unwrap();
        memctl_files::make_link("b.json", dir.path().join("c.json")).unwrap();
        assert!(open_data(&directory, "c.json").is_err());
        assert!(open_data(&directory, "b.json").unwrap().is_some());
    }
}
