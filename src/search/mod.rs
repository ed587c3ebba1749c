//! Ranking over [`Document`](crate::model::Document)s. Knows no store and no network.
//!
//! - `text`: how words are taken from text, the same for documents and queries.
//! - `keyword`: BM25 over those words.
//! - `embed`, `wordpiece`: the built-in sentence transformer and its tokenizer.
//! - `compact`: its vectors in few bytes.
//! - `fuse`: two rankings made one.
//! - `rank`: all of that behind one type, the only ranking that the program uses.
//! - `evaluate`: how good a ranking is.
//!
//! Pure: no files, no clock, nothing asynchronous.

mod compact;
mod embed;
mod evaluate;
mod fuse;
mod keyword;
mod rank;
mod text;
mod wordpiece;

pub use compact::{COMPACT, compact, restore};
pub use embed::{BuiltIn, DIMENSIONS, EMBEDDER, EmbedError, Vector, cosine};
pub use evaluate::{Metrics, percentile};
pub use fuse::{Fusion, Rrf};
pub use keyword::{Corpus, Hit};
pub use rank::{Ranked, Ranker};
pub use text::{snippet, words};
