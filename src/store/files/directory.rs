//! The `.agentura` directory: its location, its identity, its lock, and the names in it.
//!
//! Every change to records happens under a [`Lock`]. The lock is advisory and belongs to the open
//! file: it is released when the process ends, however that happens.
//!
//! File names that more than one room of the store uses are here, and the names of directories below
//! `remote/`. Those stand for origins, whose names other workspaces choose. A name may equal one of our file
//! names, or differ from another only in case, which some file systems ignore. Directory names are therefore
//! escaped: lower-case letters, digits, `-` and `_` stay, and every other byte becomes `%` and two digits. The
//! names that workspaces give themselves (UUIDs) stay unchanged.
//!
//! Invariants: two origins never share a directory, on any file system. No directory name contains
//! a dot, so none equals a file name here, `.` or `..`.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use memctl_files::text::first_conflict;
use memctl_files::{Directory, named};
use serde::{Deserialize, Serialize};

use crate::model::Kind;
use crate::store::{Error, Problem, ProblemKind, atomic};

/// Name of the memory directory in a workspace.
pub const DIRECTORY: &str = ".agentura";
/// Name of the directory for derived files in the memory directory.
pub(crate) const DERIVED: &str = ".index";
pub(crate) const IDENTITY: &str = "workspace.json";
pub(crate) const LOCK: &str = ".lock";
/// Maximum size of small metadata files in bytes.
pub(crate) const SMALL_FILE: u64 = 1 << 20;

/// Returns a directory and those above it that may belong to one project with it: below the user's home.
/// The home itself is only a place to work in.
pub fn up_to_home<'p>(start: &'p Path, home: Option<&Path>) -> impl Iterator<Item = &'p Path> {
    let end = start.ancestors().position(|above| Some(above) == home);
    let count = end.map_or(usize::MAX, |end| end.max(1));
    start.ancestors().take(count)
}

/// Searches a directory, and those above it up to the user's home, for `.agentura`.
pub fn find(start: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let mut candidates = up_to_home(start, home).map(|directory| directory.join(DIRECTORY));
    // A link counts as found: searching further up or creating a new memory here would hide it.
    candidates.find(|candidate| {
        named::is_dir(candidate) || named::link_metadata(candidate).is_ok_and(|m| m.is_symlink())
    })
}

/// Name of a project: that of its directory.
pub(crate) fn project_of(directory: &Path) -> Option<String> {
    Some(directory.file_name()?.to_string_lossy().into_owned())
}

/// Identity of a workspace, as seen by other workspaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// A random UUID, created once: the origin of every record created here.
    pub origin: String,
    /// Key of the hashes in tombstones: random for every workspace.
    pub tombstone_key: String,
    /// Keys of workspaces that git has merged into this one: their tombstones and audit lines are known by them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joined_keys: Vec<String>,
    /// Name of the folder that the memory was created in, and those of the workspaces that git has merged into it:
    /// records of a project that git does not know are found by it in a renamed folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
}

impl Identity {
    /// Returns the keys, that of new hashes first.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let own = std::iter::once(self.tombstone_key.as_str());
        own.chain(self.joined_keys.iter().map(String::as_str))
    }

    /// Returns the identity of two workspaces that are one from now on; both orders give the same.
    pub(crate) fn joined(self, other: Self) -> Self {
        let (first, second) = if other.origin < self.origin {
            (other, self)
        } else {
            (self, other)
        };
        let more = first.joined_keys.into_iter().chain(second.joined_keys);
        let mut keys: Vec<String> = more.chain([second.tombstone_key]).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.retain(|key| *key != first.tombstone_key);
        let mut folders = [first.folders, second.folders].concat();
        folders.sort_unstable();
        folders.dedup();
        Self {
            joined_keys: keys,
            folders,
            ..first
        }
    }
}

/// Reads the identity of the workspace, if it has one.
pub(crate) fn identity(directory: &Directory) -> Option<Identity> {
    atomic::read_json(directory, IDENTITY)
}

/// Way out of an identity that is broken.
const RESTORE: &str = "take the file from git or from a backup; without it, the audit log and removed records are not \
    recognised any more";

/// Returns what is wrong with an identity that is there and cannot be read. Another in its place would disown the
/// audit log and the tombstones.
pub(crate) fn unreadable_identity(directory: &Directory) -> Option<Problem> {
    let bytes = directory.read(IDENTITY, SMALL_FILE).ok().flatten()?;
    let error = serde_json::from_slice::<Identity>(&bytes).err()?;
    let message = match first_conflict(&bytes) {
        Some(_) => "git has left a merge conflict in the file".to_owned(),
        None => format!("the name and the key of this memory cannot be read: {error}; {RESTORE}"),
    };
    Some(Problem {
        path: directory.join(IDENTITY),
        offset: 0,
        line: error.line() as u64,
        kind: ProblemKind::Conflict,
        message,
    })
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
        let names = Kind::ALL.map(Kind::file).into_iter();
        let mut names = names.chain([IDENTITY, REMOTE]);
        names.all(|name| matches!(self.directory.kind(name), Ok(None)))
    }

    /// Returns the identity of the workspace, and creates a missing one. One that cannot be read is not replaced:
    /// nothing that was forgotten would be known without its key.
    pub(crate) fn identity(&self, random: &mut dyn FnMut() -> String) -> Result<Identity, Error> {
        if let Some(identity) = identity(&self.directory) {
            return Ok(identity);
        }
        if let Some(problem) = unreadable_identity(&self.directory) {
            return Err(Error::Damaged(problem));
        }
        let folder = self.directory.parent().and_then(project_of);
        let identity = Identity {
            origin: random(),
            tombstone_key: random(),
            joined_keys: Vec::new(),
            folders: folder.into_iter().collect(),
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
    atomic::replace_json(&lock.directory, IDENTITY, identity)
}

/// Returns `true` if another process holds the write lock.
pub(crate) fn is_being_written(directory: &Directory) -> bool {
    let Ok(Some(file)) = directory.open(LOCK) else {
        return false;
    };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Opens a data file for reading; `None` if it does not exist.
pub(crate) fn open_data(directory: &Directory, name: &str) -> Result<Option<File>, Error> {
    let opened = directory.open(name);
    opened.map_err(Error::io("read", &directory.join(name)))
}

/// Replaces a derived file of a memory that exists. Ignores failure, because what is derived can be made
/// again, and returns `false`.
pub(crate) fn keep_derived(memory: &Directory, name: impl AsRef<Path>, parts: &[&[u8]]) -> bool {
    let derived = memory.below(DERIVED);
    memory.is_there() && derived.create().is_ok() && derived.replace_derived(name, parts).is_ok()
}

/// Directory of remote records.
pub(crate) const REMOTE: &str = "remote";
/// Directory for torn tails and copies.
pub(crate) const RECOVERED: &str = "recovered";
/// Name of this copy of a memory.
pub(crate) const REPLICA: &str = "replica";
/// File that names the primary database.
pub(crate) const PRIMARY: &str = "primary.json";
/// Marker file that binds a memory directory to a user's note about trust.
pub(crate) const TRUST_MARKER: &str = ".trust";
/// Marker file that disables a memory.
pub(crate) const DISABLED: &str = "disabled";
/// List of the users for whom a memory is disabled.
pub(crate) const DISABLED_USERS: &str = "disabled_users.json";
/// Audit log, which is also its lock file.
pub(crate) const AUDIT_LOG: &str = "audit.jsonl";
/// Hash of the last line of the audit log.
pub(crate) const AUDIT_ANCHOR: &str = "audit.anchor";
/// Undo journal.
pub(crate) const JOURNAL: &str = "changes.jsonl";
/// Log of hints of earlier versions.
pub(crate) const HINTS: &str = "hints.jsonl";
/// Execution log of agents.
pub(crate) const EXECUTION_LOGS: &str = "execution_logs.jsonl";
/// Tombstones of the records in files that git has.
pub(crate) const TOMBSTONES: &str = "tombstones.jsonl";
/// Tombstones of records in files that git ignores, line by line as well.
pub(crate) const LOCAL_TOMBSTONES: &str = "tombstones.local.json";
/// Counters of this machine.
pub(crate) const EVIDENCE: &str = "evidence.local.json";
/// Note of a move between the local and the shared file of a kind.
pub(crate) const MOVING: &str = "moving.local.json";

/// Origin of rows that other programs have written to a shared database: its schema. No workspace can
/// have this name.
pub const OTHER_PROGRAMS: &str = "postgres:public";

/// Returns `true` if a name is valid for the origin of pulled records.
pub(crate) fn is_pulled_origin(name: &str) -> bool {
    is_origin(name) || name == OTHER_PROGRAMS
}

/// Returns `true` if a name is valid for a workspace.
pub fn is_origin(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_begun = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    is_begun && name.len() <= 64 && name.chars().all(plain)
}

/// Returns the directory name of an origin.
pub(crate) fn directory_name(origin: &str) -> String {
    let written = origin.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => char::from(byte).to_string(),
        _ => format!("%{byte:02x}"),
    });
    written.collect()
}

/// Returns the origin of a directory; `None` if the directory is not ours.
pub(crate) fn origin_of(name: &str) -> Option<String> {
    let mut parts = name.split('%');
    let mut origin = parts.next()?.to_owned();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        origin.push(char::from(u8::from_str_radix(digits, 16).ok()?));
        origin.push_str(rest);
    }
    // One directory per origin: other names that decode to it are invalid.
    (is_pulled_origin(&origin) && directory_name(&origin) == name).then_some(origin)
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
        let lock = Lock::take(dir.path(), Duration::from_secs(1)).unwrap();
        assert!(is_being_written(&dir.path().into()));
        let refused = Lock::take(dir.path(), Duration::from_millis(20));
        assert!(matches!(
            refused,
            Err(Error::Locked {
                waited_ms: 20..,
                ..
            })
        ));
        drop(lock);
        Lock::take(dir.path(), Duration::from_secs(1)).unwrap();
        assert!(!is_being_written(&dir.path().into()));
    }

    #[test]
    fn a_workspace_keeps_its_identity() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path(), Duration::from_secs(1)).unwrap();
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

#[cfg(test)]
mod tests_of_origin_directory {
    use super::*;

    #[test]
    fn every_origin_has_a_directory_of_its_own() {
        let check = |origin: &str, expected: &str| {
            assert_eq!(directory_name(origin), expected);
            assert_eq!(origin_of(expected).as_deref(), Some(origin));
        };
        check("3f2a9c1b-0000-4000", "3f2a9c1b-0000-4000");
        check("state.json", "state%2ejson");
        check("workspace.json", "workspace%2ejson");
        check("support", "support");
        check("Support", "%53upport");
        check("a_b", "a_b");
        check(OTHER_PROGRAMS, "postgres%3apublic");
        let longest = "A".repeat(64);
        assert_eq!(origin_of(&directory_name(&longest)), Some(longest));
    }

    #[test]
    fn other_directories_belong_to_nobody() {
        for name in [
            "", ".", "..", ".index", ".lock", "%2e%2e", "%2Ex", "%61", "a%", "a%2", "a%zz", "%+1",
            "%00", "a%2fb", "état", "postgres%3aother",
        ] {
            assert_eq!(origin_of(name), None, "{name}");
        }
    }
}
