//! What lies in a memory directory, and what each file is to those who take everything out of it or
//! put it back: one list, so that an export, an import and a purge speak of the same files.
//!
//! Whatever is not in the list is named as unknown, and nobody touches it: a person, or another
//! program, has put it there.

use std::ffi::OsStr;

use crate::model::Kind;
use crate::platform::{Directory, FoundKind, is_temporary};

use super::directory::{DERIVED, IDENTITY, LOCK};
use super::error::Error;
use super::json_write::{PROBE, RECOVERED};
use super::primary::PRIMARY;
use super::replica::REPLICA;
use super::{changes, pulled, switch, tombstones};

/// What a file of a memory directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The records of a kind.
    Records(Kind),
    /// Lines that belong to what is remembered, and come back with it.
    Log,
    /// What was removed on purpose.
    Tombstones,
    /// Lines about what was done here: shown to whoever asks for their data, true of no other place.
    Account,
    /// The way back of what was changed here: it holds what was removed, and goes nowhere.
    Journal,
    /// What says that no line of an account is missing.
    Seal,
    /// Records that were pulled from other workspaces.
    Remote,
    /// Made from the records, and made again.
    Derived,
    /// What a crash, a repair or a full disk has put aside.
    Copies,
    /// What a killed process has left of a write.
    Leftover,
    /// Settings and prompts of a person.
    Settings,
    /// Who the workspace is.
    Identity,
    /// The lock.
    Lock,
    /// The switch that turns the memory off.
    Switch,
    /// Nobody here knows.
    Unknown,
}

impl Role {
    /// Whether it holds something of what is remembered.
    pub const fn is_memory(self) -> bool {
        !matches!(
            self,
            Self::Settings | Self::Identity | Self::Lock | Self::Switch | Self::Unknown
        )
    }
}

/// What a merge leaves to be done.
pub const PENDING: &str = "merge.json";

/// The logs and accounts, and what seals them. The order is that of an export.
const NAMED: &[(&str, Role)] = &[
    (tombstones::FILE, Role::Tombstones),
    ("hints.jsonl", Role::Log),
    ("execution_logs.jsonl", Role::Log),
    (changes::FILE, Role::Journal),
    ("audit.jsonl", Role::Account),
    ("audit.anchor", Role::Seal),
    (pulled::PULLED, Role::Remote),
    (DERIVED, Role::Derived),
    (RECOVERED, Role::Copies),
    (PENDING, Role::Copies),
    ("config.toml", Role::Settings),
    ("prompts", Role::Settings),
    (".gitignore", Role::Settings),
    (IDENTITY, Role::Identity),
    (REPLICA, Role::Identity),
    (PRIMARY, Role::Identity),
    (super::trust::MARKER, Role::Identity),
    (LOCK, Role::Lock),
    (switch::MARKER, Role::Switch),
];

/// The names of all files with lines, and what they are.
pub fn lined() -> impl Iterator<Item = (&'static str, Role)> {
    let journal = NAMED.iter().copied();
    logs().chain(journal.filter(|(_, role)| *role == Role::Journal))
}

/// The names of the files with lines that an export holds, and what they are.
pub fn logs() -> impl Iterator<Item = (&'static str, Role)> {
    let lines = |role| matches!(role, Role::Tombstones | Role::Log | Role::Account);
    NAMED.iter().copied().filter(move |(_, role)| lines(*role))
}

/// What a file of this name is, directly below the memory directory.
pub fn role(name: &str) -> Role {
    let of_kind = Kind::ALL.into_iter().find(|kind| kind.file() == name);
    if let Some(kind) = of_kind {
        return Role::Records(kind);
    }
    if let Some((_, role)) = NAMED.iter().find(|(known, _)| *known == name) {
        return *role;
    }
    // The temporary name of a known file, and the probe for a writable directory.
    let inner = name.strip_prefix('.').unwrap_or_default();
    // Older programs had a fixed temporary name for each file.
    let target = is_temporary(name).or_else(|| inner.strip_suffix(".tmp"));
    let target = target.unwrap_or(inner);
    if name.starts_with('.')
        && (name == PROBE || target == PROBE || (inner != target && role(target) != Role::Unknown))
    {
        return Role::Leftover;
    }
    Role::Unknown
}

/// Something in a memory directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its name in the directory.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// How many files it is.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
}

/// Everything in a memory directory, in the order of names; nothing where there is none.
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

/// The number and the size of the files at and below a name. Links and devices count as one file
/// without bytes: they are not opened.
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
    use super::*;

    #[test]
    fn a_file_is_what_its_name_says() {
        for kind in Kind::ALL {
            assert_eq!(role(kind.file()), Role::Records(kind));
        }
        for (name, expected) in [
            ("tombstones.jsonl", Role::Tombstones),
            ("hints.jsonl", Role::Log),
            (".memories.json.tmp", Role::Leftover),
            (".notes.txt.tmp", Role::Unknown),
            (
                ".fixes.json.0123456789abcdef0123456789abcdef.tmp",
                Role::Leftover,
            ),
            (
                ".notes.txt.0123456789abcdef0123456789abcdef.tmp",
                Role::Unknown,
            ),
            (".writable", Role::Leftover),
            ("..writable.tmp", Role::Leftover),
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
