//! Trust in the settings and prompts of a workspace, as they were when the user said so.
//!
//! They decide which programs are executed and where data goes, so each change asks again, whoever began
//! the workspace. The note lies in the user's state directory (`store::trust`).

use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::platform::Directory;
use crate::store::Approvals;

use super::{Environment, FILE, LONGEST};

/// Makes everything in a workspace count, settings included: for machines that build what they have just
/// checked out.
const ALL: &str = "MEMCTL_TRUST";

impl Environment {
    /// The user's notes about trust in a memory directory.
    pub fn approvals(&self, directory: &Path) -> Approvals {
        Approvals::of(self.state_dir.as_deref(), directory, self.trusts_all())
    }

    /// Whether the settings and prompts of a memory directory count as they are now.
    pub fn trusts_settings(&self, directory: &Path) -> bool {
        let noted = || self.approvals(directory).settings();
        self.trusts_all() || noted().is_some_and(|noted| noted == digest(directory))
    }

    fn trusts_all(&self) -> bool {
        self.var(ALL)
            .is_some_and(|value| value == "1" || value == "true")
    }
}

/// A hash over everything in a memory directory that decides what is executed, where data goes and
/// what a model is told: its settings and its prompts.
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
        // A file that is refused here is refused where it would count, too.
        let content = directory.read(&file, LONGEST).ok().flatten();
        let content = content.unwrap_or_default();
        hash.update(file.file_name().unwrap_or_default().as_encoded_bytes());
        hash.update(content.len().to_le_bytes());
        hash.update(&content);
    }
    hash.finalize()
        .iter()
        .fold(String::new(), |mut text, byte| {
            text.extend(
                [byte >> 4, byte & 15].map(|n| char::from_digit(n.into(), 16).unwrap_or('0')),
            );
            text
        })
}
