//! Place of an installation, and the stored state of its changed settings file: original text and
//! additions.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::store;
use memctl_files::{SharedFile, hex, named};

use super::error::Error;
use super::settings_file::{LONGEST, store_state};

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
pub(super) struct Known {
    pub(super) path: PathBuf,
    /// Original text; `None` if there was no file.
    pub(super) original: Option<String>,
    /// Digest of the text after the change.
    pub(super) after: String,
    /// Inserted pieces, in order.
    pub(super) pieces: Vec<String>,
    /// Directories created for the file, innermost first.
    pub(super) made: Vec<PathBuf>,
}

impl Place {
    /// Returns the path of the stored state.
    fn state(&self, path: &Path) -> Option<PathBuf> {
        let name = digest(&path.to_string_lossy());
        let directory = self.state_dir.as_ref()?.join("hooks");
        Some(directory.join(format!("{}.json", &name[..24])))
    }

    /// Returns the state of a settings file; `None` if there is none.
    pub(super) fn known(&self, path: &Path) -> Option<Known> {
        let text = named::read(&self.state(path)?, LONGEST).ok()?;
        let known: Known = serde_json::from_slice(&text).ok()?;
        (known.path == path).then_some(known)
    }

    /// Stores the state. Returns its path if it contains an original text.
    pub(super) fn remember(&self, known: &Known) -> Result<Option<PathBuf>, Error> {
        let Some(state) = self.state(&known.path) else {
            return Ok(None);
        };
        let text = serde_json::to_string_pretty(known).map_err(store::Error::from)?;
        store_state(&state, &text)?;
        Ok(known.original.is_some().then_some(state))
    }

    /// Deletes the stored state of a settings file.
    pub(super) fn forget(&self, path: &Path) {
        if let Some(state) = self.state(path) {
            drop(named::remove(&state));
        }
    }
}

/// Returns a hash that identifies a text.
pub(crate) fn digest(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}
