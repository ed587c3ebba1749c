//! Ranking over [`Document`](crate::model::Document)s. Knows no store and no network.
//!
//! - `text`: how words are taken from text, the same for documents and queries.
//! - `keyword`: BM25 over those words.
//! - `embed`, `wordpiece`: the built-in sentence transformer and its tokenizer.
//!
//! Pure: no files, no clock, nothing asynchronous.

mod embed;
mod keyword;
mod text;
mod wordpiece;

pub use embed::{BuiltIn, DIMENSIONS, EMBEDDER, EmbedError, Vector, cosine};
pub use keyword::{Corpus, Hit};
pub use text::{snippet, words};
