//! A piece of text that was inserted into a settings file, kept outside of it so that its removal
//! restores every byte.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::store;
use memctl_files::named;

use super::install::{Error, LONGEST, digest, store_state};
use super::jsonc::{self, Node};

/// Stored state of an insertion.
#[derive(Debug, Serialize, Deserialize)]
struct Added {
    path: PathBuf,
    piece: String,
}

/// Returns the file that keeps the piece of a settings file; `None` keeps nothing.
pub(super) fn state_of(state_dir: Option<&Path>, name: &str, path: &Path) -> Option<PathBuf> {
    let file = digest(&path.to_string_lossy());
    let directory = state_dir?.join(name);
    Some(directory.join(format!("{}.json", &file[..24])))
}

/// Keeps an inserted piece.
pub(super) fn keep(state: Option<&Path>, path: &Path, piece: String) -> Result<(), Error> {
    let Some(state) = state else {
        return Ok(());
    };
    let added = Added {
        path: path.to_owned(),
        piece,
    };
    let json = serde_json::to_string_pretty(&added).map_err(store::Error::from)?;
    Ok(store_state(state, &json)?)
}

/// Returns the piece that was inserted into a settings file.
pub(super) fn kept(state: &Path, path: &Path) -> Option<String> {
    let text = named::read(state, LONGEST).ok()?;
    let added: Added = serde_json::from_slice(&text).ok()?;
    (added.path == path).then_some(added.piece)
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
