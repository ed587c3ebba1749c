//! What is remembered of a settings file that was changed: how it was before, and what was added.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::platform::named;
use crate::store;

use super::{Error, Place};

/// What is known of a file that was changed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) path: PathBuf,
    /// The text before; `None` where there was no file.
    pub(super) original: Option<String>,
    /// The digest of the text after.
    pub(super) after: String,
    /// The pieces that were added, in their order.
    pub(super) pieces: Vec<String>,
    /// The directories that were made for the file, the innermost first.
    pub(super) made: Vec<PathBuf>,
}

impl Place {
    /// Where that is kept.
    fn state(&self, path: &Path) -> Option<PathBuf> {
        let name = digest(&path.to_string_lossy());
        let directory = self.state_dir.as_ref()?.join("hooks");
        Some(directory.join(format!("{}.json", &name[..24])))
    }

    /// What is known of a settings file.
    pub(super) fn known(&self, path: &Path) -> Option<Known> {
        let text = named::read(&self.state(path)?, super::LONGEST).ok()?;
        let known: Known = serde_json::from_slice(&text).ok()?;
        (known.path == path).then_some(known)
    }

    /// Keeps the file as it was; answers where, if there was one.
    pub(super) fn remember(&self, known: &Known) -> Result<Option<PathBuf>, Error> {
        let Some(state) = self.state(&known.path) else {
            return Ok(None);
        };
        if let Some(directory) = state.parent() {
            super::create_dir(directory)?;
        }
        let text = serde_json::to_string_pretty(known).map_err(store::Error::from)?;
        super::replace(&state, &text)?;
        Ok(known.original.is_some().then_some(state))
    }

    /// Nothing is known of it any more.
    pub(super) fn forget(&self, path: &Path) {
        if let Some(state) = self.state(path) {
            drop(named::remove(&state));
        }
    }
}

/// By which a text is known again.
pub(in crate::host) fn digest(text: &str) -> String {
    format!("{:x}", Sha256::digest(text.as_bytes()))
}
