//! Query embedding: the query's vector, computed here or given by the caller, and the embedder.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;

use crate::model::Kind;
use crate::notes::indexing::Index;
use crate::store::workspace::{Error, Providers, Workspace};
use memctl_search::embedder::{Embedder, Embedding, Vector};

/// Query vector, and the embedder for records that have no vector yet.
pub(crate) struct QueryEmbedding {
    pub(crate) embedder: Arc<Embedder>,
    pub(crate) vector: Vector,
    /// Text that was embedded, if frequent names of the query were left out.
    pub(crate) without_names: Option<String>,
}

impl QueryEmbedding {
    /// Opens the embedder, then waits for `to_embed`, the text of the query or a part of it. A vector that is
    /// `given` needs no text.
    pub(crate) fn new<'q>(
        providers: &Providers,
        query: &str,
        to_embed: impl FnOnce() -> Cow<'q, str>,
        given: Option<&[f32]>,
        many_texts: bool,
    ) -> Result<Self, Error> {
        let embedder = providers.open_embedder(many_texts)?;
        let dimensions = embedder.embedding().map(|embedding| embedding.dimensions);
        if let Some(given) = given {
            return Ok(Self {
                vector: fitted(given, dimensions)?,
                embedder,
                without_names: None,
            });
        }
        let text = to_embed();
        let vector = embedder.embed(&[&*text])?.pop().unwrap_or_default();
        if let Some(expected) = dimensions.filter(|expected| *expected != vector.len()) {
            return Err(embedder.other_size(vector.len(), expected).into());
        }
        Ok(Self {
            embedder,
            vector,
            without_names: (text != query).then(|| text.into_owned()),
        })
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

/// Vector that a client sends with a record: one of this memory's embedder.
#[derive(Debug, Clone)]
pub struct GivenVector {
    embedding: Embedding,
    /// Normalized, without the zeros that padded it.
    pub(crate) vector: Vector,
}

impl GivenVector {
    /// Takes a vector for this memory.
    ///
    /// # Errors
    ///
    /// [`Error::BadVector`] for a vector of the wrong size, or a zero vector.
    pub fn fit(workspace: &Workspace, given: &[f32]) -> Result<Self, Error> {
        let embedder = workspace.providers.open_embedder(false)?;
        let known = || Ok::<_, Error>(Index::open(&workspace.store)?.stamp_of(&embedder));
        let known = embedder.embedding().map_or_else(known, |of| Ok(Some(of)))?;
        let vector = fitted(given, known.map(|embedding| embedding.dimensions))?;
        let embedding = embedder.embedding_of(vector.len());
        Ok(Self { embedding, vector })
    }

    /// Makes it the vector of a new record, for searches here and in the database that holds the records.
    pub fn keep(&self, workspace: &Workspace, kind: Kind, id: &str) -> Result<(), Error> {
        let Self { embedding, vector } = self;
        let mut index = Index::open(&workspace.store)?;
        index.update(true, &mut |_, _| {})?;
        index.set_vector((kind, id), embedding, vector)?;
        if let Some(primary) = workspace.store.primary() {
            let put = primary.put_vector(kind, id, &embedding.name, vector);
            put?;
        }
        Ok(())
    }
}

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
