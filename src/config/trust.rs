//! Which workspaces the user trusts, as they were when that was said.
//!
//! Kept outside of any workspace, among the user's own data: a directory's canonical path with a
//! hash over its settings and prompts. A changed file is a file that nobody has trusted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::store::atomic;

use super::{Environment, Error, FILE};

/// The user's list of trusted workspaces.
#[derive(Debug)]
pub struct Trust {
    file: Option<PathBuf>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Entries(BTreeMap<String, Entry>);

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    digest: String,
    at: String,
}

impl Trust {
    /// The list of this user.
    pub fn new(environment: &Environment) -> Self {
        Self {
            file: environment
                .state_dir
                .as_ref()
                .map(|dir| dir.join("trusted.json")),
        }
    }

    /// Whether the user has trusted this memory directory as it is now.
    pub fn is_trusted(&self, directory: &Path) -> bool {
        let entries = self.read();
        let name = canonical(directory);
        entries
            .0
            .get(&name)
            .is_some_and(|entry| entry.digest == digest(directory))
    }

    /// Remembers that the user trusts this memory directory as it is now.
    pub fn trust(&self, directory: &Path, at: &str) -> Result<(), Error> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let mut entries = self.read();
        let entry = Entry {
            digest: digest(directory),
            at: at.to_owned(),
        };
        entries.0.insert(canonical(directory), entry);
        if let Some(parent) = file.parent() {
            atomic::create_dir(parent)?;
        }
        let text = serde_json::to_vec_pretty(&entries).map_err(crate::store::Error::from)?;
        atomic::replace(file, &text)?;
        Ok(())
    }

    /// What cannot be read trusts nobody.
    fn read(&self) -> Entries {
        let text = self.file.as_ref().and_then(|file| std::fs::read(file).ok());
        text.and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default()
    }
}

fn canonical(directory: &Path) -> String {
    let real = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_owned());
    real.to_string_lossy().into_owned()
}

/// A hash over everything in a memory directory that decides what is executed, where data goes and
/// what a model is told: its settings and its prompts.
pub fn digest(directory: &Path) -> String {
    let mut files = vec![directory.join(FILE)];
    if let Ok(prompts) = std::fs::read_dir(directory.join("prompts")) {
        files.extend(prompts.flatten().map(|entry| entry.path()));
    }
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let content = std::fs::read(&file).unwrap_or_default();
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
