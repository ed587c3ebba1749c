//! Ranking over [`Document`](crate::model::Document)s. Knows no store and no network.
//!
//! - `text`: how words are taken from text, the same for documents and queries.
//! - `keyword`: BM25 over those words.
//!
//! Pure: no files, no clock, nothing asynchronous.

mod keyword;
mod text;

pub use keyword::{Corpus, Hit};
pub use text::{snippet, words};
