//! Name and shape of vectors.

/// What makes the vectors. Vectors of different embeddings are never compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Embedding {
    /// Names the model and the shape of its vectors: `<provider>/<model>/<dimensions>`.
    pub(crate) name: String,
    /// How many numbers a vector has.
    pub(crate) dimensions: usize,
}
