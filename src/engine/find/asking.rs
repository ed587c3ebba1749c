//! A query by meaning: its vector, made here or brought along, and the model that makes those of
//! records.

use std::sync::Arc;

use crate::search::Vector;

use super::super::embedder::Maker;
use super::super::index::Embedding;
use super::super::{Error, Providers};

/// The query's vector, and the model for those of records that have none yet.
pub(super) struct Asking {
    pub(super) maker: Arc<Maker>,
    pub(super) vector: Vector,
}

impl Asking {
    pub(super) fn new(
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
                Err(maker.other_size(vector.len(), embedding.dimensions))
            }
            _ => Ok(Self { maker, vector }),
        }
    }

    pub(super) fn embedding(&self) -> Embedding {
        self.maker.embedding_of(self.vector.len())
    }
}

/// A vector from outside, without the zeros that fill it up, of length 1.
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
