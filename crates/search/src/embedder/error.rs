//! Errors of embedders.

use std::io;

use super::EmbedError;

/// Reason why texts were not embedded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A model on this machine failed.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// A model behind a URL failed.
    #[error(transparent)]
    Llm(#[from] memctl_llm::Error),
    /// The embedder returned vectors of another size than configured or than before.
    #[error("`{embedder}` returned vectors of {found} dimensions, but {expected} are expected")]
    VectorSize {
        /// Name of the embedder.
        embedder: String,
        /// Number of dimensions returned.
        found: usize,
        /// Number of dimensions expected.
        expected: usize,
    },
    /// The async runtime does not start.
    #[error("cannot start the async runtime")]
    Runtime {
        /// Error of the system.
        source: io::Error,
    },
}
