//! Ignored files of a memory directory: all that a session, a hook or a look changes.
//!
//! Git sees what people share: approved rules, lessons, memories and corrections, removals, settings
//! and the identity. Everything else is of this machine: what nobody has approved, runs, sessions,
//! logs with their proofs, counters, and derived files. A pull of the code is never refused because
//! an agent worked here.
//!
//! A file that git tracks already stays tracked. Lines from a person stay.

use crate::store::atomic;
use crate::store::error::Error;
use memctl_files::Directory;

use super::data_files::{DataFile, LOCAL_PATTERN};
use super::file_names::{
    AUDIT_ANCHOR, AUDIT_LOG, DISABLED, DISABLED_USERS, EXECUTION_LOGS, HINTS, JOURNAL, PRIMARY,
    RECOVERED, REMOTE, REPLICA, TRUST_MARKER,
};
use super::tombstones;

/// Name of the file with the patterns.
pub(crate) const FILE: &str = ".gitignore";
/// Maximum size of that file in bytes.
const LONGEST: u64 = 16 << 20;

/// Patterns for git to ignore.
const PATTERNS: [&str; 19] = [
    ".index/", ".lock", ".*.tmp", ".writable", LOCAL_PATTERN, "episodic_memory.json",
    "sessions.json", EXECUTION_LOGS, HINTS, AUDIT_LOG, AUDIT_ANCHOR, JOURNAL, RECOVERED, REMOTE,
    REPLICA, PRIMARY, TRUST_MARKER, DISABLED, DISABLED_USERS,
];

/// Returns `true` if git ignores a file directly below the memory directory.
fn is_ignored(name: &str) -> bool {
    let matches = |pattern: &str| match pattern.split_once('*') {
        Some((start, end)) => name.starts_with(start) && name.ends_with(end),
        None => name == pattern.trim_end_matches('/'),
    };
    PATTERNS.into_iter().any(matches)
}

/// Returns the names of the files with records that git sees.
pub fn shared_files() -> impl Iterator<Item = &'static str> {
    let records = DataFile::ALL.into_iter().map(DataFile::name);
    records
        .chain([tombstones::FILE])
        .filter(|name| !is_ignored(name))
}

/// Adds missing patterns to the file for git, and creates it. Returns `false` if none were missing.
/// A file that cannot be read is left to a person.
pub fn complete(directory: &Directory) -> Result<bool, Error> {
    let Ok(text) = directory.read_text(FILE, LONGEST) else {
        return Ok(false);
    };
    let Some(text) = completed(&text.unwrap_or_default()) else {
        return Ok(false);
    };
    atomic::replace(directory, FILE, text.as_bytes())?;
    Ok(true)
}

/// Returns the text with the missing patterns; `None` if none are missing.
fn completed(text: &str) -> Option<String> {
    let mut new = text.to_owned();
    if !new.is_empty() && !new.ends_with('\n') {
        new.push('\n');
    }
    for pattern in PATTERNS {
        if !text.lines().any(|line| line.trim() == pattern) {
            new.push_str(pattern);
            new.push('\n');
        }
    }
    (new.len() > text.len() + 1 || text.is_empty()).then_some(new)
}

#[cfg(test)]
mod tests {
    use super::super::inventory::{Role, inventory, lined};
    use super::*;

    #[test]
    fn a_persons_lines_stay_and_missing_patterns_are_added() {
        let all = completed("").unwrap();
        assert_eq!(completed(&all), None);
        assert_eq!(completed(&format!("mine\n{all}")), None);
        let some = completed("mine\n.lock").unwrap();
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
        for (name, role) in lined() {
            assert_eq!(is_ignored(name), role != Role::Tombstones, "{name}");
        }
        for name in ["workspace.json", "config.toml", "prompts", ".gitignore"] {
            assert!(!is_ignored(name), "{name}");
        }
        assert!(is_ignored(super::super::counters::FILE));
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::at(dir.path());
        assert!(complete(&directory).unwrap() && !complete(&directory).unwrap());
        assert_eq!(inventory(&directory).unwrap()[0].role, Role::Settings);
    }
}
