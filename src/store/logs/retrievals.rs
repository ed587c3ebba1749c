//! How often a record was put into a prompt or an answer.
//!
//! Reads must neither wait nor fail because they are counted. So a count is one line that is
//! appended without a lock, and a failed append is ignored. A large file is folded to one line a
//! record by a process that gets its lock at once; a line appended at that moment may be lost.
//!
//! The file is derived: it is in no export, no sync and no merge. Without it the counts start at
//! zero, and nothing else is lost.

use std::collections::BTreeMap;

use memctl_files::Directory;
use serde::{Deserialize, Serialize};

use crate::store::{DERIVED, Error, Scoped, atomic};

const RETRIEVALS: &str = "retrievals.jsonl";
const LOCK: &str = "retrievals.lock";
/// Size in bytes from which the file is folded.
const FOLDED: u64 = 256 << 10;
/// Maximum size in bytes; a larger file is not ours.
const LARGEST: u64 = 16 << 20;

/// Use of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Retrieved {
    /// Number of retrievals.
    #[serde(rename = "retrieved", default)]
    pub times: u64,
    /// Time of the last one: RFC 3339, UTC; empty if unknown.
    #[serde(rename = "last_retrieved", default, skip_serializing_if = "String::is_empty")]
    pub last: String,
}

#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
struct Retrieval {
    id: String,
    #[serde(flatten)]
    use_: Retrieved,
}

impl Scoped {
    /// Counts one retrieval of each record. Creates no memory, takes no lock and never fails.
    pub fn count_retrievals<'a>(&self, ids: impl IntoIterator<Item = &'a str>) {
        let now = self.access().now;
        let last = now.map(|now| now.to_rfc3339_opts(chrono::SecondsFormat::Secs, true));
        let lines = ids.into_iter().map(|id| Retrieval {
            id: id.to_owned(),
            use_: Retrieved {
                times: 1,
                last: last.clone().unwrap_or_default(),
            },
        });
        let lines: Vec<Retrieval> = lines.collect();
        if !lines.is_empty() {
            drop(self.append_retrievals(&lines));
        }
    }

    fn append_retrievals(&self, lines: &[Retrieval]) -> Result<(), Error> {
        let directory = self.directory();
        if !directory.check().map_err(Error::io("read", directory))? {
            return Ok(());
        }
        self.must_be_enabled()?;
        let derived = directory.below(DERIVED);
        atomic::create_dir(&derived)?;
        atomic::append(&derived, RETRIEVALS.as_ref(), &text(lines)?, false)?;
        fold(&derived)
    }

    /// Returns the use of every record that was retrieved, by id.
    pub fn retrievals(&self) -> BTreeMap<String, Retrieved> {
        read(&self.directory().below(DERIVED))
    }
}

fn text(lines: &[Retrieval]) -> Result<String, Error> {
    let mut text = String::new();
    for line in lines {
        text.push_str(&serde_json::to_string(line)?);
        text.push('\n');
    }
    Ok(text)
}

fn read(derived: &Directory) -> BTreeMap<String, Retrieved> {
    let mut found: BTreeMap<String, Retrieved> = BTreeMap::new();
    let bytes = derived.read(RETRIEVALS, LARGEST).ok().flatten();
    for line in bytes.unwrap_or_default().split(|byte| *byte == b'\n') {
        let Ok(Retrieval { id, use_ }) = serde_json::from_slice(line) else {
            continue;
        };
        let known = found.entry(id).or_default();
        known.times = known.times.saturating_add(use_.times);
        known.last = std::mem::take(&mut known.last).max(use_.last);
    }
    found
}

/// Folds a large file to one line a record.
fn fold(derived: &Directory) -> Result<(), Error> {
    let path = derived.join(RETRIEVALS);
    let file = derived.open(RETRIEVALS).map_err(Error::io("read", &path))?;
    let length = file.and_then(|file| Some(file.metadata().ok()?.len()));
    if length.is_none_or(|length| length <= FOLDED) {
        return Ok(());
    }
    let lock = atomic::open_or_create(derived, LOCK)?;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    let lines = read(derived).into_iter();
    let lines: Vec<Retrieval> = lines.map(|(id, use_)| Retrieval { id, use_ }).collect();
    let folded = text(&lines)?;
    let done = derived.replace_derived(RETRIEVALS, &[folded.as_bytes()]);
    done.map_err(Error::io("write", &path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;

    fn store(directory: &std::path::Path) -> Scoped {
        Scoped::new(directory, Scope::All).at(chrono::DateTime::UNIX_EPOCH)
    }

    #[test]
    fn retrievals_are_counted_by_record() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        store.count_retrievals(["PROC-001", "PROC-002@3f2a"]);
        store.count_retrievals(["PROC-001"]);
        store.count_retrievals([]);
        let found = store.retrievals();
        let of = |id: &str| (found[id].times, found[id].last.as_str());
        assert_eq!(of("PROC-001"), (2, "1970-01-01T00:00:00Z"));
        assert_eq!((of("PROC-002@3f2a").0, found.len()), (1, 2));
    }

    #[test]
    fn counting_creates_no_memory_and_ignores_what_it_cannot_read() {
        let dir = tempfile::tempdir().unwrap();
        let missing = store(&dir.path().join("none"));
        missing.count_retrievals(["PROC-001"]);
        assert!(missing.retrievals().is_empty());
        assert!(!missing.directory().check().unwrap());
        let store = store(dir.path());
        store.count_retrievals(["PROC-001"]);
        let derived = store.directory().below(DERIVED);
        derived.append(RETRIEVALS, b"broken\n{}\n", false).unwrap();
        store.count_retrievals(["PROC-001"]);
        assert_eq!(store.retrievals()["PROC-001"].times, 2);
    }

    #[test]
    fn large_file_is_folded_without_a_loss() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let ids = vec!["PROC-001"; 4_000];
        store.count_retrievals(ids.iter().copied());
        let length = || {
            let derived = store.directory().below(DERIVED);
            derived.read(RETRIEVALS, LARGEST).unwrap().unwrap().len()
        };
        assert!(length() < 200, "{}", length());
        store.count_retrievals(["PROC-001"]);
        assert_eq!(store.retrievals()["PROC-001"].times, 4_001);
    }
}
