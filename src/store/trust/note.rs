//! What the user has decided about one workspace: a small JSON file outside of it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::platform::{Directory, named};
use crate::store::error::Error;

use super::approved::hex;
use super::{Approvals, MARKER};

const DIRECTORY: &str = "workspaces";
/// Longest note and longest marker that are read, in bytes.
const LONGEST: u64 = 64 << 10;
const LONGEST_MARKER: u64 = 256;

/// Why a workspace's own approvals count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// This user began it on this machine.
    Began,
    /// This user trusts it as a source.
    Trusted,
}

/// One user's note about one workspace.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Note {
    /// The canonical path of the memory directory.
    pub path: String,
    /// The random word that the directory's marker file holds.
    #[serde(default)]
    pub marker: String,
    /// Why its own approvals count; `None` where they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
    /// When that was decided: RFC 3339.
    #[serde(default)]
    pub at: String,
    /// Digest of the settings and prompts that the user trusts; `None` where they trust none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
    /// Other workspaces whose pulled records are trusted, by origin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    /// The origin of the workspace whose audit has begun here: a log that is missing then was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audited: Option<String>,
}

impl Approvals {
    /// The note about this workspace, as far as it is about this very directory.
    pub fn note(&self) -> Option<Note> {
        let note = self.stored()?;
        (!note.marker.is_empty() && self.marker().as_ref() == Some(&note.marker)).then_some(note)
    }

    /// Digest of the settings that the user trusts. Where they trust none, nothing of the workspace is read.
    pub fn settings(&self) -> Option<String> {
        let settings = self.stored()?.settings?;
        self.note().map(|_| settings)
    }

    /// The note about the path, whichever directory is there now.
    pub(super) fn stored(&self) -> Option<Note> {
        let (file, path) = self.place()?;
        let note: Note = serde_json::from_slice(&named::read(&file, LONGEST).ok()?).ok()?;
        (note.path == path).then_some(note)
    }

    /// Writes the note; without a state directory nothing is kept.
    pub(super) fn keep(&self, note: Note) -> Result<(), Error> {
        let Some((file, path)) = self.place() else {
            return Ok(());
        };
        if let Some(parent) = file.parent() {
            named::create_dir(parent).map_err(Error::io("create", parent))?;
        }
        let mut text = serde_json::to_vec_pretty(&Note { path, ..note })?;
        text.push(b'\n');
        named::replace(&file, &text).map_err(Error::io("write", &file))
    }

    /// The marker in the memory directory.
    pub(super) fn marker(&self) -> Option<String> {
        let directory = Directory::at(&self.directory);
        let text = directory.read_text(MARKER, LONGEST_MARKER).ok()??;
        Some(text.trim().to_owned()).filter(|marker| !marker.is_empty())
    }

    /// The file of the note, and the path that it is about.
    fn place(&self) -> Option<(PathBuf, String)> {
        let state = self.state.as_deref()?;
        let path = canonical(&self.directory)?;
        let name = Sha256::digest(path.as_bytes()).into();
        let name = hex(&name);
        let file = state.join(DIRECTORY).join(format!("{}.json", &name[..32]));
        Some((file, path))
    }
}

fn canonical(directory: &Path) -> Option<String> {
    Some(named::real(directory).ok()?.to_string_lossy().into_owned())
}
