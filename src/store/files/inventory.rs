//! The files of a memory directory and their roles, as one list for export, import and purge.
//!
//! Any other file is reported as unknown and never modified: a user or another program put it
//! there.

use std::ffi::OsStr;

use crate::model::Kind;
use crate::store::error::Error;
use memctl_files::{Directory, FoundKind, is_temporary};

use super::counters;
use super::data_files::DataFile;
use super::directory::{
    AUDIT_ANCHOR, AUDIT_LOG, DISABLED, DISABLED_USERS, EXECUTION_LOGS, HINTS, JOURNAL, MOVING,
    PRIMARY, PROBE, RECOVERED, REMOTE, REPLICA, TRUST_MARKER,
};
use super::directory::{DERIVED, IDENTITY, LOCK};
use super::tombstones;

/// Role of a file in a memory directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Records of a kind.
    Records(Kind),
    /// Log lines that belong to the memory and are imported with it.
    Log,
    /// Tombstones of removed records.
    Tombstones,
    /// Log of actions in this workspace: exported to a user who requests their data, never
    /// imported.
    Account,
    /// The undo journal: contains removed data, and is never exported.
    Journal,
    /// Proof that no line of a log is missing.
    Seal,
    /// Remote records, pulled from other workspaces.
    Remote,
    /// Counters of this machine.
    Counters,
    /// Derived from the records, and rebuilt on demand.
    Derived,
    /// Copies saved by a repair, or after a crash or a full disk.
    Copies,
    /// Files of an interrupted write.
    Leftover,
    /// Settings and prompts of the user.
    Settings,
    /// Identity of the workspace.
    Identity,
    /// The lock.
    Lock,
    /// The marker that disables the memory.
    Switch,
    /// Unknown file.
    Unknown,
}

impl Role {
    /// Returns `true` if the file holds memory content.
    pub const fn is_memory(self) -> bool {
        !matches!(
            self,
            Self::Settings | Self::Identity | Self::Lock | Self::Switch | Self::Unknown
        )
    }
}

/// Files with fixed names, in the order of an export.
const NAMED: &[(&str, Role)] = &[
    (tombstones::FILE, Role::Tombstones),
    (HINTS, Role::Log),
    (EXECUTION_LOGS, Role::Log),
    (JOURNAL, Role::Journal),
    (AUDIT_LOG, Role::Account),
    (AUDIT_ANCHOR, Role::Seal),
    (counters::FILE, Role::Counters),
    (MOVING, Role::Leftover),
    (REMOTE, Role::Remote),
    (DERIVED, Role::Derived),
    (RECOVERED, Role::Copies),
    ("config.toml", Role::Settings),
    ("prompts", Role::Settings),
    (".gitignore", Role::Settings),
    (IDENTITY, Role::Identity),
    (REPLICA, Role::Identity),
    (PRIMARY, Role::Identity),
    (TRUST_MARKER, Role::Identity),
    (LOCK, Role::Lock),
    (DISABLED, Role::Switch),
    (DISABLED_USERS, Role::Switch),
];

/// Returns the names and roles of all line-based files.
pub fn lined() -> impl Iterator<Item = (&'static str, Role)> {
    let journal = NAMED.iter().copied();
    logs().chain(journal.filter(|(_, role)| *role == Role::Journal))
}

/// Returns the names and roles of the line-based files in an export.
pub fn logs() -> impl Iterator<Item = (&'static str, Role)> {
    let lines = |role| matches!(role, Role::Tombstones | Role::Log | Role::Account);
    NAMED.iter().copied().filter(move |(_, role)| lines(*role))
}

/// Returns the role of a file directly below the memory directory.
pub fn role(name: &str) -> Role {
    if let Some(file) = DataFile::named(name) {
        return Role::Records(file.kind);
    }
    if let Some((_, role)) = NAMED.iter().find(|(known, _)| *known == name) {
        return *role;
    }
    // Temporary names of known files, and the probe for a writable directory.
    let inner = name.strip_prefix('.').unwrap_or_default();
    let target = is_temporary(name).unwrap_or(inner);
    if name.starts_with('.')
        && (name == PROBE || target == PROBE || (inner != target && role(target) != Role::Unknown))
    {
        return Role::Leftover;
    }
    Role::Unknown
}

/// An entry of a memory directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Name in the directory.
    pub name: String,
    /// Role of the entry.
    pub role: Role,
    /// Number of files.
    pub files: u64,
    /// Total size in bytes.
    pub bytes: u64,
}

/// Returns everything in a memory directory, sorted by name; empty if the directory does not exist.
pub fn inventory(directory: &Directory) -> Result<Vec<Item>, Error> {
    let found = directory.list().map_err(Error::io("read", directory))?;
    let items = found.into_iter().map(|found| {
        let (files, bytes) = size(directory, &found.name, found.kind);
        let name = found.name.to_string_lossy().into_owned();
        Item {
            role: role(&name),
            name,
            files,
            bytes,
        }
    });
    Ok(items.collect())
}

/// Returns the number and total size of the files at and below a name. Links and devices count as
/// one empty file and are not opened.
fn size(directory: &Directory, name: &OsStr, kind: FoundKind) -> (u64, u64) {
    let (mut files, mut bytes) = (0, 0);
    let mut waiting = vec![(directory.clone(), name.to_owned(), kind)];
    while let Some((directory, name, kind)) = waiting.pop() {
        if kind == FoundKind::Directory {
            let below = directory.below(&name);
            let found = below.list().unwrap_or_default();
            waiting.extend(found.into_iter().map(|f| (below.clone(), f.name, f.kind)));
            continue;
        }
        files += 1;
        let file = directory.open(&name).ok().flatten();
        bytes += file
            .and_then(|file| Some(file.metadata().ok()?.len()))
            .unwrap_or(0);
    }
    (files, bytes)
}

#[cfg(test)]
mod tests {
    use super::super::inventory::*;

    #[test]
    fn a_file_is_what_its_name_says() {
        for kind in Kind::ALL {
            assert_eq!(role(kind.file()), Role::Records(kind));
        }
        for (name, expected) in [
            ("tombstones.jsonl", Role::Tombstones),
            ("hints.jsonl", Role::Log),
            (
                ".procedural_memory.json.0123456789abcdef0123456789abcdef.tmp",
                Role::Leftover,
            ),
            (
                ".notes.txt.0123456789abcdef0123456789abcdef.tmp",
                Role::Unknown,
            ),
            (".writable", Role::Leftover),
            ("failure_cases.json", Role::Unknown),
            (".index", Role::Derived),
            ("disabled", Role::Switch),
            (".gitignore", Role::Settings),
            ("", Role::Unknown),
        ] {
            assert_eq!(role(name), expected, "{name}");
        }
    }
}
