//! Decisions of a user about one workspace: one file in the state directory, bound to the directory by a marker.

use std::path::{Path, PathBuf};

use memctl_files::{Directory, hex, named};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Approvals;
use crate::store::Error;
use crate::store::files::directory::TRUST_MARKER as MARKER;

/// Directory of the notes.
const DIRECTORY: &str = "workspaces";
/// Maximum size of a note, in bytes.
const LONGEST_NOTE: u64 = 64 << 10;
/// Maximum size of a marker, in bytes.
const LONGEST_MARKER: u64 = 256;

/// Reason why a workspace's own approvals count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// This user created it on this machine.
    Began,
    /// This user trusts it as a source.
    Trusted,
}

/// One user's note about one workspace.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Note {
    /// Canonical path of the memory directory.
    pub path: String,
    /// Random word in the marker file of the directory.
    #[serde(default)]
    pub marker: String,
    /// Reason why its own approvals count; `None` if they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
    /// Time of that decision: RFC 3339.
    #[serde(default)]
    pub at: String,
    /// Digest of the trusted settings and prompts; `None` if the user trusts none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
    /// Origins of other workspaces whose remote records are trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    /// Origin of the workspace whose audit log exists: if it is missing, it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audited: Option<String>,
}

impl Approvals {
    /// Returns the note about this workspace, if its marker matches this directory.
    pub fn note(&self) -> Option<Note> {
        let note = self.stored()?;
        (!note.marker.is_empty() && self.marker().as_ref() == Some(&note.marker)).then_some(note)
    }

    /// Returns the digest of the trusted settings; `None` if no settings of the workspace may be
    /// read.
    pub fn settings(&self) -> Option<String> {
        self.note()?.settings
    }

    /// Returns the note about the path, regardless of the directory there now.
    pub(super) fn stored(&self) -> Option<Note> {
        let (file, path) = self.place()?;
        let note: Note = serde_json::from_slice(&named::read(&file, LONGEST_NOTE).ok()?).ok()?;
        (note.path == path).then_some(note)
    }

    /// Writes the note; does nothing without a state directory.
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

    /// Reads the marker in the memory directory.
    fn marker(&self) -> Option<String> {
        let directory = Directory::at(&self.directory);
        let text = directory.read_text(MARKER, LONGEST_MARKER).ok()??;
        Some(text.trim().to_owned()).filter(|marker| !marker.is_empty())
    }

    /// Returns the file of the note, and the path that it describes.
    fn place(&self) -> Option<(PathBuf, String)> {
        let state = self.state.as_deref()?;
        let path = canonical(&self.directory)?;
        let name = hex(&Sha256::digest(path.as_bytes()));
        let file = state.join(DIRECTORY).join(format!("{}.json", &name[..32]));
        Some((file, path))
    }

    /// Records that the workspace with this origin has an audit log.
    pub(crate) fn remember_audit(&self, origin: &str) -> Result<(), Error> {
        if self.remembers_audit(origin) {
            return Ok(());
        }
        self.keep(Note {
            audited: Some(origin.to_owned()),
            ..self.stored().unwrap_or_default()
        })
    }

    /// Returns `true` if the workspace with this origin is known to have an audit log.
    pub(crate) fn remembers_audit(&self, origin: &str) -> bool {
        let audited = self.stored().and_then(|note| note.audited);
        audited.is_some_and(|audited_origin| audited_origin == origin)
    }

    /// Changes the note about the directory, and binds it by a marker if needed. Does nothing
    /// without a state directory.
    pub(super) fn change(
        &self,
        random: &mut dyn FnMut() -> String,
        change: impl FnOnce(&mut Note),
    ) -> Result<(), Error> {
        if self.state.is_none() {
            return Ok(());
        }
        let mut note = match self.note() {
            Some(note) => note,
            None => self.marked(random())?,
        };
        change(&mut note);
        self.keep(note)
    }

    /// Creates a note that is bound to the directory by this marker. Decisions about another
    /// directory at the same path do not apply.
    fn marked(&self, marker: String) -> Result<Note, Error> {
        let directory = Directory::at(&self.directory);
        let text = format!("{marker}\n");
        let written = directory.replace_file(MARKER, text.as_bytes());
        written.map_err(Error::io("write", &directory.join(MARKER)))?;
        Ok(Note {
            marker,
            audited: self.stored().and_then(|note| note.audited),
            ..Note::default()
        })
    }
}

fn canonical(directory: &Path) -> Option<String> {
    Some(named::real(directory).ok()?.to_string_lossy().into_owned())
}
