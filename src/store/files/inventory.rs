//! The files of a memory directory and their roles, as one list for export, import, purge and git.
//!
//! Each kind of record has one or two data files. The shared file of a kind is tracked by git. Records that
//! nobody has approved are in a second file, `*.local.json`, which git ignores: procedures observed in this
//! person's sessions, candidate rules, and corrections that agents passed on. Approval moves a record to the
//! shared file.
//!
//! Invariants:
//! - A record is in one file. Ids in the local file have a form that no clone gives, see
//!   [`crate::model::local`].
//! - The file says nothing about trust: a record in the shared file may come from anybody.
//! - A record moves only when its approval changes.
//! - An unknown file is reported and never modified: a user or another program put it there.
//!
//! Git sees what people share: approved rules, lessons, memories and corrections, removals, settings and the
//! identity. Everything else is of this machine: unapproved records, runs, sessions, logs with their proofs,
//! counters, and derived files. So of an agent's work here only a note (`remember`) changes a file that git sees. A
//! file that git tracks already stays tracked. Lines from a person stay.

use std::ffi::OsStr;
use std::fmt;

use memctl_files::{Directory, FoundKind, is_temporary, json};

use crate::model::{AGENT, CANDIDATE, Kind};
use crate::store::files::directory::{
    AUDIT_ANCHOR, AUDIT_LOG, DISABLED, DISABLED_USERS, EVIDENCE, EXECUTION_LOGS, HINTS, IDENTITY,
    JOURNAL, LOCAL_TOMBSTONES, LOCK, MOVING, PRIMARY, RECOVERED, REMOTE, REPLICA, TOMBSTONES,
    TRUST_MARKER,
};
use crate::store::{DERIVED, Error, atomic};

/// Pattern for git to ignore the local files.
pub const LOCAL_PATTERN: &str = "*.local.json";

/// A data file of a memory directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataFile {
    /// Kind of its records.
    pub kind: Kind,
    /// `true` for records that stay on this machine.
    pub is_local: bool,
}

impl DataFile {
    /// All data files, by kind in the order of [`Kind::ALL`], the shared file first.
    pub const ALL: [Self; 9] = [
        Self::shared(Kind::Execution),
        Self::shared(Kind::Correction),
        Self::local(Kind::Correction),
        Self::shared(Kind::Reflexion),
        Self::local(Kind::Reflexion),
        Self::shared(Kind::Procedure),
        Self::local(Kind::Procedure),
        Self::shared(Kind::Memory),
        Self::shared(Kind::Session),
    ];

    /// Returns the file of a kind that is shared.
    pub const fn shared(kind: Kind) -> Self {
        Self {
            kind,
            is_local: false,
        }
    }

    const fn local(kind: Kind) -> Self {
        Self {
            kind,
            is_local: true,
        }
    }

    /// Returns the files of a kind, the shared one first.
    pub fn of(kind: Kind) -> impl DoubleEndedIterator<Item = Self> + Clone {
        Self::ALL.into_iter().filter(move |file| file.kind == kind)
    }

    /// Returns the file of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|file| file.name() == name)
    }

    /// Returns the file in which a record with this JSON text is placed when it is added, or when
    /// its approval changes.
    pub fn for_record(kind: Kind, text: &[u8]) -> Self {
        let field = |name| json::string_field(text, name);
        let is_local = match kind {
            Kind::Reflexion => field("status").is_some_and(|status| status == CANDIDATE),
            Kind::Correction => {
                let is = |name, value| field(name).is_some_and(|field| field == value);
                is("source", AGENT) && !is("trust", "approved")
            }
            Kind::Procedure => {
                // A procedure without origins was not observed here: a program or a person wrote it.
                let trust = field("trust");
                let trust = trust.as_deref().unwrap_or_default();
                !matches!(trust, "approved" | "user")
                    && (!trust.is_empty() || json::field(text, "origins").is_some())
            }
            _ => false,
        };
        Self { kind, is_local }
    }

    /// Returns the file of a record of this file that now has this JSON text. A record that was
    /// approved is shared, and stays so.
    #[must_use]
    pub fn after_change(self, text: &[u8]) -> Self {
        let is_rejected = || {
            let status = json::string_field(text, "status");
            self.kind == Kind::Reflexion && status.is_some_and(|status| status == "retired")
        };
        if self.is_local && !is_rejected() {
            return Self::for_record(self.kind, text);
        }
        self
    }

    /// Returns the name of the file in the memory directory.
    pub const fn name(self) -> &'static str {
        match (self.kind, self.is_local) {
            (Kind::Correction, true) => "corrections.local.json",
            (Kind::Reflexion, true) => "reflexion_entries.local.json",
            (Kind::Procedure, true) => "procedural_memory.local.json",
            (kind, _) => kind.file(),
        }
    }

    /// Returns the name of its derived files, without their extension.
    pub fn derived_name(self) -> String {
        let suffix = if self.is_local { ".local" } else { "" };
        format!("{}{suffix}", self.kind.plural())
    }
}

impl fmt::Display for DataFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Role of a file in a memory directory. A purge removes the files with memory content in this order, in which a crash
/// never restores removed data: while records remain, their ids must not be reused. Derived files come late,
/// because a concurrent search may write them from old reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Log of actions in this workspace: exported to a user who requests their data, never
    /// imported.
    Account,
    /// The undo journal: contains removed data, and is never exported.
    Journal,
    /// Proof that the end of a log is there.
    Seal,
    /// Log lines that belong to the memory and are imported with it.
    Log,
    /// Records of a kind.
    Records(Kind),
    /// Remote records, pulled from other workspaces.
    Remote,
    /// Counters of this machine.
    Counters,
    /// Tombstones of removed records.
    Tombstones,
    /// Copies saved by a repair, or after a crash or a full disk.
    Copies,
    /// Files of an interrupted write.
    Leftover,
    /// Derived from the records, and rebuilt on demand.
    Derived,
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
    (TOMBSTONES, Role::Tombstones),
    (LOCAL_TOMBSTONES, Role::Tombstones),
    (HINTS, Role::Log),
    (EXECUTION_LOGS, Role::Log),
    (JOURNAL, Role::Journal),
    (AUDIT_LOG, Role::Account),
    (AUDIT_ANCHOR, Role::Seal),
    (EVIDENCE, Role::Counters),
    (MOVING, Role::Leftover),
    (REMOTE, Role::Remote),
    (DERIVED, Role::Derived),
    (RECOVERED, Role::Copies),
    ("config.toml", Role::Settings),
    ("prompts", Role::Settings),
    (GITIGNORE, Role::Settings),
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
    if let Some((_, role)) = NAMED.iter().find(|(named, _)| *named == name) {
        return *role;
    }
    match is_temporary(name) {
        Some(target) if role(target) != Role::Unknown => Role::Leftover,
        _ => Role::Unknown,
    }
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

/// Name of the file with the patterns for git.
const GITIGNORE: &str = ".gitignore";
/// Maximum size of that file in bytes.
const LONGEST: u64 = 16 << 20;

/// Patterns for git to ignore.
const PATTERNS: [&str; 18] = [
    ".index/", ".lock", ".*.tmp", LOCAL_PATTERN, "episodic_memory.json", "sessions.json",
    EXECUTION_LOGS, HINTS, AUDIT_LOG, AUDIT_ANCHOR, JOURNAL, RECOVERED, REMOTE, REPLICA, PRIMARY,
    TRUST_MARKER, DISABLED, DISABLED_USERS,
];

/// Returns `true` if git ignores a file directly below the memory directory.
pub(crate) fn is_ignored(name: &str) -> bool {
    let matches = |pattern: &str| match pattern.split_once('*') {
        Some((start, end)) => name.starts_with(start) && name.ends_with(end),
        None => name == pattern.trim_end_matches('/'),
    };
    PATTERNS.into_iter().any(matches)
}

/// Returns the names of the files with records that git sees.
pub fn shared_files() -> impl Iterator<Item = &'static str> {
    let records = DataFile::ALL.into_iter().map(DataFile::name);
    records.chain([TOMBSTONES]).filter(|name| !is_ignored(name))
}

/// Adds missing patterns to the file for git, and creates it. Returns `false` if none were missing.
/// A file that cannot be read is left to a person.
pub fn ignore_local_files(directory: &Directory) -> Result<bool, Error> {
    let Ok(text) = directory.read_text(GITIGNORE, LONGEST) else {
        return Ok(false);
    };
    let Some(text) = with_missing_lines(&text.unwrap_or_default(), PATTERNS) else {
        return Ok(false);
    };
    atomic::replace(directory, GITIGNORE, text.as_bytes())?;
    Ok(true)
}

/// Returns a text with the missing lines of these behind it; `None` if none are missing.
pub fn with_missing_lines<'w>(
    text: &str,
    wanted: impl IntoIterator<Item = &'w str>,
) -> Option<String> {
    let is_missing = |wanted: &&str| !text.lines().any(|line| line.trim() == *wanted);
    let missing: Vec<&str> = wanted.into_iter().filter(is_missing).collect();
    let gap = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    (!missing.is_empty()).then(|| format!("{text}{gap}{}\n", missing.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_one_shared_file_and_no_two_files_have_a_name() {
        for (at, file) in DataFile::ALL.into_iter().enumerate() {
            assert_eq!(DataFile::named(file.name()), Some(file));
            assert!(DataFile::ALL[at + 1..].iter().all(|other| *other > file));
            let is_ignored = file.name().ends_with(LOCAL_PATTERN.trim_start_matches('*'));
            assert_eq!(is_ignored, file.is_local, "{file}");
        }
        for kind in Kind::ALL {
            let files: Vec<_> = DataFile::of(kind).collect();
            assert_eq!(files[0], DataFile::shared(kind));
            assert_eq!(files[0].name(), kind.file());
        }
    }

    #[test]
    fn a_record_leaves_the_local_file_when_it_is_approved() {
        let check = |file: DataFile, text: &str, is_local: bool| {
            assert_eq!(
                file.after_change(text.as_bytes()).is_local,
                is_local,
                "{text}"
            );
        };
        let [learned, rule] = [Kind::Procedure, Kind::Reflexion].map(DataFile::local);
        check(learned, r#"{"trust": "observed"}"#, true);
        check(learned, r#"{"trust": "approved"}"#, false);
        check(rule, r#"{"status": "candidate"}"#, true);
        check(rule, r#"{"status": "retired"}"#, true);
        check(rule, r#"{"status": "active"}"#, false);
        check(DataFile::shared(Kind::Procedure), "{}", false);
        check(
            DataFile::shared(Kind::Reflexion),
            r#"{"status": "candidate"}"#,
            false,
        );
    }

    #[test]
    fn unapproved_record_stays_in_the_local_file() {
        let check = |kind: Kind, text: &str, is_local: bool| {
            let file = DataFile::for_record(kind, text.as_bytes());
            assert_eq!((file.kind, file.is_local), (kind, is_local), "{text}");
        };
        check(Kind::Procedure, r#"{"trust": "appr"}"#, true);
        check(Kind::Procedure, r#"{"origins": [{"path": "a"}]}"#, true);
        check(Kind::Procedure, r#"{"trust": "observed"}"#, true);
        check(
            Kind::Procedure,
            r#"{"trust": "approved", "origins": []}"#,
            false,
        );
        check(Kind::Procedure, r#"{"status": "procedure_learned"}"#, false);
        check(Kind::Reflexion, r#"{"status": "candidate"}"#, true);
        check(
            Kind::Reflexion,
            r#"{"status": "active", "source": "agent"}"#,
            false,
        );
        check(Kind::Reflexion, "{}", false);
        check(Kind::Correction, r#"{"source": "agent"}"#, true);
        check(
            Kind::Correction,
            r#"{"source": "agent", "trust": "approved"}"#,
            false,
        );
        check(Kind::Correction, r#"{"correction_id": "CORR-001"}"#, false);
        check(Kind::Memory, r#"{"trust": "observed"}"#, false);
        check(Kind::Session, r#"{"trust": "observed"}"#, false);
    }
}

#[cfg(test)]
mod tests_of_inventory {
    use super::*;

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

#[cfg(test)]
mod tests_of_ignored {
    use super::*;

    #[test]
    fn a_persons_lines_stay_and_missing_patterns_are_added() {
        let all = with_missing_lines("", PATTERNS).unwrap();
        assert_eq!(with_missing_lines(&all, PATTERNS), None);
        assert_eq!(with_missing_lines(&format!("mine\n{all}"), PATTERNS), None);
        let some = with_missing_lines("mine\n.lock", PATTERNS).unwrap();
        assert!(some.starts_with("mine\n.lock\n.index/\n"), "{some}");
        assert_eq!(some.lines().filter(|line| *line == ".lock").count(), 1);
    }

    #[test]
    fn git_sees_what_people_share() {
        let shared: Vec<_> = shared_files().collect();
        let mut expected = vec!["corrections.json", "reflexion_entries.json"];
        expected.extend([
            "procedural_memory.json", "memories.json", "tombstones.jsonl",
        ]);
        assert_eq!(shared, expected);
        for (name, _) in lined() {
            assert_eq!(is_ignored(name), name != TOMBSTONES, "{name}");
        }
        for name in ["workspace.json", "config.toml", "prompts", ".gitignore"] {
            assert!(!is_ignored(name), "{name}");
        }
        assert!(is_ignored(EVIDENCE));
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::at(dir.path());
        assert!(
            ignore_local_files(&directory).unwrap() && !ignore_local_files(&directory).unwrap()
        );
        assert_eq!(inventory(&directory).unwrap()[0].role, Role::Settings);
    }
}
