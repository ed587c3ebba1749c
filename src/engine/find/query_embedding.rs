//! Query embedding: the query's vector, computed here or given by the caller, and the embedder.

use std::sync::Arc;

use crate::embedder::Vector;

use crate::embedder::Embedder;
use crate::embedder::Embedding;
use crate::workspace::{Error, Providers};

/// Query vector, and the embedder for records that have no vector yet.
pub(crate) struct Asking {
    pub(crate) maker: Arc<Embedder>,
    pub(crate) vector: Vector,
}

impl Asking {
    pub(crate) fn new(
        providers: &Providers,
        query: &str,
        given: Option<&[f32]>,
        many_texts: bool,
    ) -> Result<Self, Error> {
        let maker = providers.maker(many_texts)?;
        if let Some(given) = given {
            let vector = fitted(
                given,
                maker.embedding().map(|embedding| embedding.dimensions),
            )?;
            return Ok(Self { maker, vector });
        }
        let vector = maker.embed(&[query])?.pop().unwrap_or_default();
        match maker.embedding() {
            Some(embedding) if embedding.dimensions != vector.len() => {
                Err(maker.other_size(vector.len(), embedding.dimensions).into())
            }
            _ => Ok(Self { maker, vector }),
        }
    }

    pub(crate) fn embedding(&self) -> Embedding {
        self.maker.embedding_of(self.vector.len())
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
