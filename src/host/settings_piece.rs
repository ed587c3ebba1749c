//! One piece of text in the JSON settings of a host: inserted, kept outside of the file, and taken out again
//! so that every other byte stays.
//!
//! A piece that a person wrote themselves is never replaced and never removed.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::store;
use memctl_files::{SharedFile, named};

use super::install::{Error, LONGEST, digest, read, replace, store_state};
use super::jsonc::{self, Insertion, Node};

/// A kind of piece.
pub(super) struct Piece {
    /// Name of the directory with the stored pieces.
    pub(super) name: &'static str,
    /// Returns `true` if the settings have what this program inserts.
    pub(super) is_there: fn(&Node) -> bool,
    /// Place of what this program inserts, to remove it wherever it stands.
    pub(super) place: fn(&str, &Node) -> Option<Range<usize>>,
}

/// Stored state of an insertion.
#[derive(Debug, Serialize, Deserialize)]
struct Added {
    path: PathBuf,
    piece: String,
}

impl Piece {
    /// Inserts the piece.
    pub(super) fn insert(
        &self,
        settings: &SharedFile,
        state_dir: Option<&Path>,
        insertion: impl FnOnce(&str, &Node) -> Insertion,
    ) -> Result<(), Error> {
        let path = settings.path();
        let mut text = read(settings)?.unwrap_or_default();
        if is_blank(&text) {
            "{}\n".clone_into(&mut text);
        }
        let insertion = insertion(&text, &parse(path, &text)?);
        text.insert_str(insertion.at, &insertion.text);
        if !(self.is_there)(&parse(path, &text)?) {
            return Err(Error::Shape {
                path: path.to_owned(),
                what: "a form that cannot be extended".to_owned(),
            });
        }
        if let Some(state) = self.state(state_dir, path) {
            let added = Added {
                path: path.to_owned(),
                piece: insertion.text,
            };
            let json = serde_json::to_string_pretty(&added).map_err(store::Error::from)?;
            store_state(&state, &json)?;
        }
        Ok(replace(settings, &text)?)
    }

    /// Returns `true` if a piece is kept for a settings file.
    pub(super) fn is_kept(&self, settings: &SharedFile, state_dir: Option<&Path>) -> bool {
        self.kept(state_dir, settings.path()).is_some()
    }

    /// Takes the piece out. Returns `false` if the settings do not have it.
    pub(super) fn remove(
        &self,
        settings: &SharedFile,
        state_dir: Option<&Path>,
    ) -> Result<bool, Error> {
        let path = settings.path();
        let (root, mut text) = settings_of(settings)?;
        let is_there = (self.is_there)(&root);
        if is_there {
            let known = self.kept(state_dir, path);
            let is_gone =
                |text: &String| parse(path, text).is_ok_and(|root| !(self.is_there)(&root));
            let by_piece = known
                .and_then(|piece| without(&text, &piece))
                .filter(is_gone);
            if let Some(without) = by_piece {
                text = without;
            } else {
                while let Some(place) = (self.place)(&text, &parse(path, &text)?) {
                    text.replace_range(place, "");
                }
            }
            replace(settings, &text)?;
        }
        if let Some(state) = self.state(state_dir, path) {
            drop(named::remove(&state));
        }
        Ok(is_there)
    }

    fn state(&self, state_dir: Option<&Path>, path: &Path) -> Option<PathBuf> {
        let file = digest(&path.to_string_lossy());
        let directory = state_dir?.join(self.name);
        Some(directory.join(format!("{}.json", &file[..24])))
    }

    fn kept(&self, state_dir: Option<&Path>, path: &Path) -> Option<String> {
        let text = named::read(&self.state(state_dir, path)?, LONGEST).ok()?;
        let added: Added = serde_json::from_slice(&text).ok()?;
        (added.path == path).then_some(added.piece)
    }
}

/// Returns the parsed settings, which are an empty object if there are none, with their text.
pub(super) fn settings_of(settings: &SharedFile) -> Result<(Node, String), Error> {
    let text = read(settings)?.unwrap_or_default();
    let root = parse(settings.path(), if is_blank(&text) { "{}" } else { &text })?;
    Ok((root, text))
}

/// Returns a text without a piece; `None` unless the piece is there once.
pub(super) fn without(text: &str, piece: &str) -> Option<String> {
    let mut places = text.match_indices(piece);
    let (at, _) = places.next().filter(|_| places.next().is_none())?;
    let mut text = text.to_owned();
    text.replace_range(at..at + piece.len(), "");
    Some(text)
}

/// Parses a settings file, which must be an object.
pub(super) fn parse(path: &Path, text: &str) -> Result<Node, Error> {
    let root = jsonc::parse(text).map_err(|fault| Error::Invalid {
        path: path.to_owned(),
        line: fault.line,
        reason: fault.reason,
    })?;
    if root.members().is_none() {
        return Err(Error::Shape {
            path: path.to_owned(),
            what: "a value that is not an object".to_owned(),
        });
    }
    Ok(root)
}

/// Returns `true` for a text without a value.
pub(super) fn is_blank(text: &str) -> bool {
    text.trim_matches(['\u{feff}', ' ', '\n', '\r', '\t'])
        .is_empty()
}
