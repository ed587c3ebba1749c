//! List of the processed session files: an unchanged file need not be read again. Without it, files are read
//! again, and recorded origins prevent double counting.

use std::collections::BTreeMap;

use memctl_files::Directory;
use serde::{Deserialize, Serialize};

use crate::store::files::directory;
use crate::store::{DERIVED, Scoped, atomic};

/// Name of the list of processed files.
const FILE: &str = "sources.json";

/// State of a session file when it was processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProcessedFile {
    /// Size in bytes.
    pub size: u64,
    /// Modification time, in nanoseconds since 1970.
    pub mtime: i64,
    /// Number of steps in the file.
    pub steps: u64,
}

/// The list of processed files.
#[derive(Debug)]
pub struct ProcessedFiles {
    directory: Directory,
    entries: BTreeMap<String, ProcessedFile>,
    changed: bool,
}

impl Scoped {
    /// Reads the list of processed files; empty if it is missing or damaged.
    pub fn processed_files(&self) -> ProcessedFiles {
        let directory = self.directory().clone();
        let entries = atomic::read_json(&directory.below(DERIVED), FILE);
        ProcessedFiles {
            directory,
            entries: entries.unwrap_or_default(),
            changed: false,
        }
    }
}

impl ProcessedFiles {
    /// Returns `true` if a file with this size and time was processed.
    pub fn contains(&self, path: &str, size: u64, mtime: i64) -> bool {
        let entry = self.entries.get(path);
        entry.is_some_and(|entry| entry.size == size && entry.mtime == mtime)
    }

    /// Records a processed file.
    pub fn insert(&mut self, path: String, file: ProcessedFile) {
        self.changed |= self.entries.insert(path, file) != Some(file);
    }

    /// Saves the list, if it changed and the memory directory exists. Ignores failure, because the
    /// next run is only slower.
    pub fn save(&mut self) {
        let text = serde_json::to_vec(&self.entries).unwrap_or_default();
        if self.changed && directory::keep_derived(&self.directory, FILE, &[&text]) {
            self.changed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;
    use memctl_files::named;

    #[test]
    fn a_file_is_known_as_long_as_it_does_not_change() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let mut files = store.processed_files();
        let file = ProcessedFile {
            size: 3,
            mtime: 1_795_220_415_123_456_789,
            steps: 2,
        };
        files.insert("/a b\n".to_owned(), file);
        files.save();
        let files = store.processed_files();
        assert!(files.contains("/a b\n", 3, file.mtime));
        assert!(!files.contains("/a b\n", 4, file.mtime));
        assert!(!files.contains("/a b\n", 3, file.mtime + 1));
        assert!(!files.contains("/c", 3, file.mtime));
        named::replace(&dir.path().join(".index/sources.json"), b"junk").unwrap();
        assert!(!store.processed_files().contains("/a b\n", 3, file.mtime));
    }
}
