//! Embedders: text in, vector out.
//!
//! - `config`: which embedder is configured, and how it is opened. `opened`: an embedder in use.
//!   `cache`: a loaded model, kept.
//! - `local`: the built-in model. `model_folder`, `model_loader`: models in a folder.
//! - `transformer`, `operators`, `wordpiece`: inference and tokenization.
//! - `embedding`: name and shape of vectors.
//!
//! Deliberately absent: storage of vectors (`search`, `indexing`).

pub(crate) mod cache;
pub(crate) mod config;
pub(crate) mod embedding;
pub(crate) mod error;
pub(crate) mod local;
mod model_folder;
pub(crate) mod model_loader;
mod opened;
pub(crate) mod operators;
pub(crate) mod transformer;
pub(crate) mod wordpiece;

pub use cache::EmbedderCache;
pub use config::{Destination, EmbedderConfig, EmbedderName, RemoteEmbedderConfig};
pub(crate) use embedding::Embedding;
pub use error::Error;
pub use local::{DIMENSIONS, EMBEDDER, built_in};
pub use model_loader::Export;
pub(crate) use opened::Embedder;
pub use transformer::{EmbedError, Transformer, Vector};
