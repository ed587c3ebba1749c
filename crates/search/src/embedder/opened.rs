//! Embedder that is open: texts in, vectors of one size and of length 1 out.

use std::thread;

use tokio::runtime::Runtime;

use super::embedding::Embedding;
use super::error::Error;
use super::transformer::{EmbedError, Transformer, Vector};
use memctl_llm::Embeddings;

/// Embedder that is ready for use.
#[derive(Debug)]
pub struct Embedder {
    pub(super) stamp: String,
    pub(super) dimensions: Option<usize>,
    pub(super) batch: usize,
    pub(super) model: Model,
}

/// Model that answers: loaded here, or behind a URL.
#[derive(Debug)]
pub(super) enum Model {
    Here(Box<Transformer>),
    There(Box<Embeddings>, Driver),
}

/// Runtime for the requests. It may be dropped on any thread, even one that drives another async
/// runtime; a bare `Runtime` may not.
#[derive(Debug)]
pub(super) struct Driver(Option<Runtime>);

impl Driver {
    pub(super) fn start() -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| Error::Runtime { source })?;
        Ok(Self(Some(runtime)))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Embedder {
    /// Name of the embedder, without the vector size.
    pub fn stamp(&self) -> &str {
        &self.stamp
    }

    /// Stamp of the vectors; `None` if their size is unknown until the first vector.
    pub fn embedding(&self) -> Option<Embedding> {
        let dimensions = self.dimensions?;
        Some(self.embedding_of(dimensions))
    }

    /// Stamp of vectors of this size.
    pub fn embedding_of(&self, dimensions: usize) -> Embedding {
        Embedding {
            name: format!("{}/{dimensions}", self.stamp),
            dimensions,
        }
    }

    /// Best number of texts per call.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Embeds texts, in their order. All vectors are normalized and of one size.
    pub fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>, Error> {
        let vectors = self.ask(texts)?;
        // A zero vector would be requested again by every search.
        let is_sound = |vector: &Vector| {
            vector.iter().all(|x| x.is_finite()) && vector.iter().any(|x| *x != 0.0)
        };
        if vectors.len() != texts.len() || !vectors.iter().all(is_sound) {
            return Err(EmbedError::NoVector.into());
        }
        Ok(vectors)
    }

    fn ask(&self, texts: &[&str]) -> Result<Vec<Vector>, Error> {
        match &self.model {
            Model::Here(transformer) => Ok(transformer.embed(texts)?),
            Model::There(embeddings, driver) => {
                let runtime = driver.0.as_ref().ok_or(EmbedError::NoVector)?;
                let mut vectors = Vec::with_capacity(texts.len());
                for texts in texts.chunks(self.batch) {
                    // A separate thread, since the caller may run inside an async runtime.
                    let answer = thread::scope(|scope| {
                        let ask = || runtime.block_on(embeddings.embed(texts));
                        scope.spawn(ask).join()
                    });
                    vectors.extend(answer.map_err(|_| EmbedError::NoVector)??);
                }
                let size = vectors.first().map_or(0, Vec::len);
                if let Some(other) = vectors.iter().find(|vector| vector.len() != size) {
                    return Err(self.other_size(other.len(), size));
                }
                vectors.iter_mut().for_each(normalise);
                Ok(vectors)
            }
        }
    }

    /// Error for vectors of the wrong size.
    pub fn other_size(&self, found: usize, expected: usize) -> Error {
        Error::VectorSize {
            embedder: self.stamp.clone(),
            found,
            expected,
        }
    }
}

fn normalise(vector: &mut Vector) {
    // The square of a 32-bit number may overflow 32 bits.
    let squares: f64 = vector.iter().map(|x| f64::from(*x).powi(2)).sum();
    let length = squares.sqrt().max(f64::MIN_POSITIVE);
    for number in vector {
        #[expect(clippy::cast_possible_truncation, reason = "a share of 1 is small enough")]
        let share = (f64::from(*number) / length) as f32;
        *number = share;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_the_length_one_whatever_came() {
        let check = |mut vector: Vector| {
            normalise(&mut vector);
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            assert!((length - 1.0).abs() < 1e-5, "{vector:?}");
        };
        check(vec![3.0, 4.0]);
        check(vec![1e-30, 0.0]);
        check(vec![1e30, -1e30]);
    }
}
