//! Settings file of an agent host, and stored state of a changed one: reading and replacing.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::error::Error;
use crate::store;
use memctl_files::{SharedFile, hex, named};

/// Maximum size of a settings file: 64 MiB.
pub(in super::super) const LONGEST: u64 = 64 << 20;

/// Replaces a settings file, and creates its directories.
pub(in super::super) fn replace(file: &SharedFile, text: &str) -> Result<(), store::Error> {
    let replaced = file.replace(text.as_bytes());
    replaced.map_err(store::Error::io("write", file.path()))
}

/// Replaces the stored state of a settings file, and creates its directories.
pub(in super::super) fn store_state(path: &Path, text: &str) -> Result<(), store::Error> {
    if let Some(above) = path.parent() {
        named::create_dir(above).map_err(store::Error::io("create", above))?;
    }
    named::replace(path, text.as_bytes()).map_err(store::Error::io("write", path))
}

/// Reads a settings file; `None` if it does not exist.
pub(in super::super) fn read(file: &SharedFile) -> Result<Option<String>, Error> {
    file.read_text(LONGEST)
        .map_err(|source| unreadable(file, source))
}

/// Removes a settings file.
pub(in super::super) fn remove(file: &SharedFile) -> Result<(), Error> {
    let removed = file.remove().map(drop);
    removed.map_err(|source| unreadable(file, source))
}

pub(in super::super) fn unreadable(file: &SharedFile, source: std::io::Error) -> Error {
    Error::Unreadable {
        path: file.path().to_owned(),
        source,
    }
}

/// Settings file of an agent host, and the data for an installation in it.
#[derive(Debug, Clone)]
pub struct Place {
    /// Settings file; it may not exist.
    pub settings: SharedFile,
    /// Directory for the original file; `None` keeps no copy.
    pub state_dir: Option<PathBuf>,
    /// Program that the hooks start.
    pub program: String,
    /// `true` if the hooks write nothing to the memory.
    pub read_only: bool,
}

/// State of a changed file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) path: PathBuf,
    /// Original text; `None` if there was no file.
    pub(crate) original: Option<String>,
    /// Digest of the text after the change.
    pub(crate) after: String,
    /// Inserted pieces, in order.
    pub(crate) pieces: Vec<String>,
    /// Directories created for the file, innermost first.
    pub(crate) made: Vec<PathBuf>,
}

impl Place {
    /// Returns the path of the stored state.
    fn state(&self, path: &Path) -> Option<PathBuf> {
        let name = digest(&path.to_string_lossy());
        let directory = self.state_dir.as_ref()?.join("hooks");
        Some(directory.join(format!("{}.json", &name[..24])))
    }

    /// Returns the state of a settings file; `None` if there is none.
    pub(crate) fn known(&self, path: &Path) -> Option<Known> {
        let text = named::read(&self.state(path)?, LONGEST).ok()?;
        let known: Known = serde_json::from_slice(&text).ok()?;
        (known.path == path).then_some(known)
    }

    /// Stores the state. Returns its path if it contains an original text.
    pub(crate) fn remember(&self, known: &Known) -> Result<Option<PathBuf>, Error> {
        let Some(state) = self.state(&known.path) else {
            return Ok(None);
        };
        let text = serde_json::to_string_pretty(known).map_err(store::Error::from)?;
        store_state(&state, &text)?;
        Ok(known.original.is_some().then_some(state))
    }

    /// Deletes the stored state of a settings file.
    pub(crate) fn forget(&self, path: &Path) {
        if let Some(state) = self.state(path) {
            drop(named::remove(&state));
        }
    }
}

/// Returns a hash that identifies a text.
pub(crate) fn digest(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}
