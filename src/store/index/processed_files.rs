//! Derived list of the processed session files: an unchanged file need not be read again.
//!
//! ```text
//! memctl sources 1\n
//! {"path": …, "size": …, "mtime": …, "steps": …}\n  …
//! ```
//!
//! It may be deleted at any time. Files are then read again, and known origins prevent double
//! counting.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::store::access::scoped::Scoped;
use crate::store::files::directory::DERIVED;
use memctl_files::Directory;

const FILE: &str = "sources";
const HEADER: &str = "memctl sources 1\n";

/// State of a session file when it was processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Source {
    /// Size in bytes.
    pub size: u64,
    /// Modification time, in nanoseconds since 1970.
    pub mtime: i64,
    /// Number of steps in the file.
    pub steps: u64,
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct Line {
    path: String,
    #[serde(flatten)]
    source: Source,
}

/// The list of processed files.
#[derive(Debug)]
pub struct Sources {
    directory: Directory,
    entries: BTreeMap<String, Source>,
    changed: bool,
}

impl Scoped {
    /// Reads the list of processed files; empty if it is missing or damaged.
    pub fn sources(&self) -> Sources {
        let directory = self.directory().clone();
        let derived = directory.below(DERIVED);
        let text = derived.read_text(FILE, u64::MAX).ok().flatten();
        let text = text.unwrap_or_default();
        let lines = text.strip_prefix(HEADER).unwrap_or_default().lines();
        let entries = lines
            .filter_map(|line| serde_json::from_str::<Line>(line).ok())
            .map(|line| (line.path, line.source))
            .collect();
        Sources {
            directory,
            entries,
            changed: false,
        }
    }
}

impl Sources {
    /// Returns `true` if a file with this size and time was processed.
    pub fn knows(&self, path: &str, size: u64, mtime: i64) -> bool {
        let known = self.entries.get(path);
        known.is_some_and(|known| known.size == size && known.mtime == mtime)
    }

    /// Records a processed file.
    pub fn insert(&mut self, path: String, source: Source) {
        self.changed |= self.entries.insert(path, source) != Some(source);
    }

    /// Saves the list, if it changed and the memory directory exists. Ignores failure, because the
    /// next run is only slower.
    pub fn save(&mut self) {
        let derived = self.directory.below(DERIVED);
        if !self.changed || !self.directory.is_there() || derived.create().is_err() {
            return;
        }
        let mut text = HEADER.to_owned();
        for (path, source) in &self.entries {
            let line = Line {
                path: path.clone(),
                source: *source,
            };
            text.extend(serde_json::to_string(&line));
            text.push('\n');
        }
        if derived.replace_derived(FILE, &[text.as_bytes()]).is_ok() {
            self.changed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::processed_files::*;
    use crate::model::Scope;
    use memctl_files::named;

    #[test]
    fn a_file_is_known_as_long_as_it_does_not_change() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let mut sources = store.sources();
        let source = Source {
            size: 3,
            mtime: 1_795_220_415_123_456_789,
            steps: 2,
        };
        sources.insert("/a b\n".to_owned(), source);
        sources.save();
        let sources = store.sources();
        assert!(sources.knows("/a b\n", 3, source.mtime));
        assert!(!sources.knows("/a b\n", 4, source.mtime));
        assert!(!sources.knows("/a b\n", 3, source.mtime + 1));
        assert!(!sources.knows("/c", 3, source.mtime));
        named::replace(&dir.path().join(".index/sources"), b"junk").unwrap();
        assert!(!store.sources().knows("/a b\n", 3, source.mtime));
    }
}
