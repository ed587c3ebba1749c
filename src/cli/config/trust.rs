//! Trust in the settings and prompts of a workspace, as they were at the user's decision.
//!
//! They decide which programs are executed and where data goes, so that each change needs a new
//! decision, even in the user's own workspace. The decision is stored in the user's state directory
//! (`store::trust`).

use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::store::Approvals;
use memctl_files::{Directory, hex};

use super::{Environment, FILE, LONGEST};

/// Trusts everything in a workspace, settings included: for build servers.
const ALL: &str = "MEMCTL_TRUST";

impl Environment {
    /// Returns the user's trust decisions for a memory directory.
    pub fn approvals(&self, directory: &Path) -> Approvals {
        Approvals::of(self.state_dir.as_deref(), directory, self.trusts_all())
    }

    /// Returns `true` if the current settings and prompts of a memory directory are trusted.
    pub fn trusts_settings(&self, directory: &Path) -> bool {
        let noted = || self.approvals(directory).settings();
        self.trusts_all() || noted().is_some_and(|noted| noted == digest(directory))
    }

    fn trusts_all(&self) -> bool {
        self.var(ALL)
            .is_some_and(|value| value == "1" || value == "true")
    }
}

/// Returns a hash of the settings and prompts in a memory directory. They decide which programs are
/// executed, where data goes and what a model reads.
pub fn digest(directory: &Path) -> String {
    let directory = Directory::at(directory);
    let prompts = directory.below("prompts");
    let mut files = vec![(directory.join(FILE), directory)];
    let found = prompts.list().unwrap_or_default();
    files.extend(
        found
            .into_iter()
            .map(|f| (prompts.join(f.name), prompts.clone())),
    );
    files.sort_by(|a, b| a.0.cmp(&b.0));
    let mut hash = Sha256::new();
    for (file, directory) in files {
        // A file that cannot be read here cannot be read where it is used.
        let content = directory.read(&file, LONGEST).ok().flatten();
        let content = content.unwrap_or_default();
        hash.update(file.file_name().unwrap_or_default().as_encoded_bytes());
        hash.update(content.len().to_le_bytes());
        hash.update(&content);
    }
    hex(&hash.finalize())
}
