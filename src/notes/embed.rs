//! Embeds texts with the embedder that the search of this memory uses.

use serde::Serialize;

use memctl_search::embedder::Vector;

use crate::store::workspace::{Error, Workspace};

/// Vectors and their embedder.
#[derive(Debug, Serialize)]
pub struct Embedded {
    /// Name of the embedder, as stored in the index.
    pub model: String,
    /// Vectors in the order of the texts, all normalized and of one size.
    pub vectors: Vec<Vector>,
}

/// Embeds texts. Reads and writes no records.
pub fn embed(workspace: &Workspace, texts: &[&str]) -> Result<Embedded, Error> {
    let embedder = workspace.providers.open_embedder(texts.len() > 1)?;
    let vectors = embedder.embed(texts)?;
    let size = vectors.first().map_or(0, Vec::len);
    Ok(Embedded {
        model: embedder.embedding_of(size).name,
        vectors,
    })
}
