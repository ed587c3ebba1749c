//! Folder with a model, as exporters write it.

use std::path::{Path, PathBuf};

use super::error::Error;
use super::model_loader::Export;
use crate::platform::{FileState, named};

/// Maximum size of a file in a model folder: 1 GiB. Larger models belong on servers.
const LARGEST: u64 = 1 << 30;

/// Folder of an export that describes the pooling of its token vectors.
const POOLING: &str = "1_Pooling";

/// Reads the files of an export: the network from the folder or its `onnx/`, the rest from the
/// folder.
pub(super) fn export(folder: &Path) -> Result<Export, Error> {
    let places = [folder.join("model.onnx"), folder.join("onnx/model.onnx")];
    let network = places
        .iter()
        .find(|path| named::is_file(path))
        .unwrap_or(&places[0]);
    let text = |name: &str| {
        let path = folder.join(name);
        if !named::is_file(&path) {
            return Ok(None);
        }
        let text = String::from_utf8(bytes(&path)?);
        let text = text.map_err(|_| unreadable(&path, "it is not UTF-8"))?;
        Ok::<_, Error>(Some(text))
    };
    Ok(Export {
        model: bytes(network)?,
        weights: weights(network.parent().unwrap_or(folder))?,
        tokenizer: text("tokenizer.json")?,
        vocabulary: text("vocab.txt")?,
        tokenizer_config: text("tokenizer_config.json")?,
        pooling: text(&format!("{POOLING}/config.json"))?,
        sentence: text("sentence_bert_config.json")?,
        modules: text("modules.json")?,
    })
}

/// Weight files next to a network, as exporters name them: `model.data`, `model.onnx_data`.
fn weights(directory: &Path) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut weights = Vec::new();
    let entries = named::list(directory).map_err(|source| Error::Unreadable {
        path: directory.to_owned(),
        source,
    })?;
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_of_network = name.starts_with("model") && name.ends_with("data");
        if is_of_network && named::is_file(&entry.path()) {
            weights.push((name, bytes(&entry.path())?));
        }
    }
    weights.sort();
    Ok(weights)
}

/// States of all files that [`export`] may open.
pub(super) fn states(folder: &Path) -> Vec<(PathBuf, FileState)> {
    let directories = [folder.to_owned(), folder.join("onnx"), folder.join(POOLING)];
    let mut states = Vec::new();
    for entry in directories
        .iter()
        .filter_map(|directory| named::list(directory).ok())
        .flatten()
    {
        // A link has the state of its target.
        if let Ok(state) = named::state(&entry.path()) {
            states.push((entry.path(), state));
        }
    }
    states.sort();
    states
}

fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    let read = || {
        if named::metadata(path)?.len() > LARGEST {
            return Err(std::io::Error::new(
                std::io::ErrorKind::InvalidData,
                "it is larger than 1 GiB",
            ));
        }
        named::read(path, LARGEST)
    };
    read().map_err(|source| Error::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn unreadable(path: &Path, reason: &'static str) -> Error {
    Error::Unreadable {
        path: path.to_owned(),
        source: std::io::Error::new(std::io::ErrorKind::InvalidData, reason),
    }
}
