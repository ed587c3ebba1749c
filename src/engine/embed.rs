//! Makes vectors, by the embedder that the search of this memory uses.

use serde::Serialize;

use crate::search::Vector;

use super::{Engine, Error};

/// Vectors, and who made them.
#[derive(Debug, Serialize)]
pub struct Embedded {
    /// The embedder, as records of the index are stamped with it.
    pub model: String,
    /// One a text, in their order; of length 1 and of one size.
    pub vectors: Vec<Vector>,
}

impl Engine {
    /// The vectors of texts. Nothing is read from the memory and nothing is written to it.
    pub fn embed(&self, texts: &[&str]) -> Result<Embedded, Error> {
        let maker = self.providers.maker(texts.len() > 1)?;
        let vectors = maker.embed(texts)?;
        let size = vectors.first().map_or(0, Vec::len);
        Ok(Embedded {
            model: maker.embedding_of(size).name,
            vectors,
        })
    }
}
