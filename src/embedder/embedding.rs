//! Name and shape of vectors.

/// Embedding of a set of vectors. Vectors of different embeddings are never compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Embedding {
    /// Names the model and the shape of its vectors: `<provider>/<model>/<dimensions>`.
    pub(crate) name: String,
    /// Numbers in a vector.
    pub(crate) dimensions: usize,
}
