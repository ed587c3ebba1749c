//! The derived file of what has been learnt from: a session file that has not changed since need not
//! be read again.
//!
//! ```text
//! memctl sources 1\n
//! {"path": …, "size": …, "mtime": …, "steps": …}\n  …
//! ```
//!
//! It may be deleted at any time: whatever is then read again is known by its origin, and counts
//! nothing twice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Scoped;
use super::directory::DERIVED;
use crate::platform::Directory;

const FILE: &str = "sources";
const HEADER: &str = "memctl sources 1\n";

/// The state of a file when it was learnt from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Its length in bytes.
    pub size: u64,
    /// When it was changed last, in nanoseconds since 1970.
    pub mtime: i64,
    /// How many steps it held.
    pub steps: u64,
}

#[derive(Serialize, Deserialize)]
struct Line {
    path: String,
    #[serde(flatten)]
    source: Source,
}

/// What has been learnt from.
#[derive(Debug)]
pub struct Sources {
    directory: Directory,
    entries: BTreeMap<String, Source>,
    changed: bool,
}

impl Scoped {
    /// What has been learnt from; a file that is missing or damaged is as good as empty.
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
    /// Whether a file of this size and time has been learnt from.
    pub fn knows(&self, path: &str, size: u64, mtime: i64) -> bool {
        let known = self.entries.get(path);
        known.is_some_and(|known| known.size == size && known.mtime == mtime)
    }

    /// Remembers that a file was learnt from.
    pub fn insert(&mut self, path: String, source: Source) {
        self.changed |= self.entries.insert(path, source) != Some(source);
    }

    /// Saves it, if anything changed and the memory directory exists. Failure is no error: it is
    /// only slower next time.
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
    use super::*;
    use crate::model::Scope;
    use crate::platform::named;

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
