//! Embedders: text in, vector out.
//!
//! - `config`: which embedder is configured, and how it is opened. `opened`: an embedder in use.
//!   `cache`: a loaded model, kept.
//! - `local`: the built-in model.
//! - `transformer`, `operators`, `wordpiece`: inference and tokenization.
//! - `embedding`: name and shape of vectors.
//!
//! Deliberately absent: storage of vectors (`search`, `indexing`).

pub mod cache;
pub mod config;
pub mod embedding;
pub mod error;
pub mod local;
mod opened;
pub mod operators;
pub(crate) mod transformer;
pub(crate) mod wordpiece;

pub use cache::EmbedderCache;
pub use config::{Destination, EmbedderConfig, EmbedderName, RemoteEmbedderConfig};
pub use embedding::Embedding;
pub use error::Error;
pub use local::{DIMENSIONS, EMBEDDER, built_in};
pub use opened::Embedder;
pub use transformer::{EmbedError, Transformer, Vector};
