//! Name and shape of vectors.

use memctl_llm::EmbeddingsProtocol;

/// Embedding of a set of vectors. Vectors of different embeddings are never compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Embedding {
    /// Names the model and the shape of its vectors: `<provider>/<model>/<dimensions>`.
    pub name: String,
    /// Numbers in a vector.
    pub dimensions: usize,
}

impl Embedding {
    /// Returns `true` if long texts have vectors of their windows. Servers read longer texts at once,
    /// and many of them bill every token.
    pub fn reads_windows(&self) -> bool {
        let is_of = |protocol: EmbeddingsProtocol| {
            let rest = self.name.strip_prefix(protocol.name());
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        !is_of(EmbeddingsProtocol::OpenAi) && !is_of(EmbeddingsProtocol::Ollama)
    }
}
