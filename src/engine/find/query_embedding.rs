//! Query embedding: the query's vector, computed here or given by the caller, and the embedder.

use std::sync::Arc;

use crate::embedder::Vector;

use crate::embedder::Embedder;
use crate::embedder::Embedding;
use crate::workspace::{Error, Providers};

/// Query vector, and the embedder for records that have no vector yet.
pub(crate) struct QueryEmbedding {
    pub(crate) embedder: Arc<Embedder>,
    pub(crate) vector: Vector,
}

impl QueryEmbedding {
    pub(crate) fn new(
        providers: &Providers,
        query: &str,
        given: Option<&[f32]>,
        many_texts: bool,
    ) -> Result<Self, Error> {
        let embedder = providers.open_embedder(many_texts)?;
        if let Some(given) = given {
            let vector = fitted(
                given,
                embedder.embedding().map(|embedding| embedding.dimensions),
            )?;
            return Ok(Self { embedder, vector });
        }
        let vector = embedder.embed(&[query])?.pop().unwrap_or_default();
        match embedder.embedding() {
            Some(embedding) if embedding.dimensions != vector.len() => Err(embedder
                .other_size(vector.len(), embedding.dimensions)
                .into()),
            _ => Ok(Self { embedder, vector }),
        }
    }

    pub(crate) fn embedding(&self) -> Embedding {
        self.embedder.embedding_of(self.vector.len())
    }
}

/// Removes the zero padding of a vector from the caller, and normalizes it.
fn fitted(given: &[f32], dimensions: Option<usize>) -> Result<Vector, Error> {
    let expected = dimensions.unwrap_or(given.len());
    let (vector, rest) = given.split_at(expected.min(given.len()));
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    let is_sound = norm.is_finite() && norm > 0.0;
    if vector.len() != expected || rest.iter().any(|x| *x != 0.0) || !is_sound {
        return Err(Error::BadVector {
            found: given.len(),
            expected,
        });
    }
    Ok(vector.iter().map(|x| x / norm).collect())
}
