//! Ranking over [`Document`](crate::model::Document)s. Knows no store and no network.
//!
//! - `text`: how words are taken from text, the same for documents and queries.
//! - `embed`, `export`: the built-in sentence transformer; one in a folder of the user's.
//! - `transformer`, `operators`, `wordpiece`: how one is run, what of, and its tokenizer.
//! - `attributes`, `filter`: what a document is besides its words, and which may be found.
//! - `segment`, `build`: documents as bytes that are searched where they lie, and how they are made.
//! - `slots`: their vectors, likewise.
//! - `keyword`: BM25 over segments.
//! - `kin`: what a mistyped word of a query may have meant.
//! - `fuse`, `best`: two rankings made one; the best of many.
//! - `view`: what both rankings say, document by document.
//! - `rank`: all of that behind one type, the only ranking that the program uses.
//! - `corpus`: a few texts, ranked by words and forgotten.
//! - `parallel`: work on all processors.
//! - `evaluate`: how good a ranking is.
//!
//! Pure: no files, no clock, nothing asynchronous. Bytes come from whoever keeps them.

mod attributes;
mod best;
mod build;
mod corpus;
mod embed;
mod evaluate;
mod export;
mod filter;
mod fuse;
mod keyword;
mod kin;
mod operators;
mod parallel;
mod rank;
mod segment;
mod slots;
mod text;
mod transformer;
mod view;
mod wordpiece;

pub use attributes::{Attributes, seconds};
pub use best::Hit;
pub use build::{Builder, merge};
pub use corpus::Corpus;
pub use embed::{DIMENSIONS, EMBEDDER, built_in};
pub use evaluate::{Metrics, percentile};
pub use export::Export;
pub use filter::Filter;
pub use fuse::{Fusion, Rrf};
pub use rank::{ByWords, Part, Question, Ranked, Ranker};
pub use segment::{ANALYSIS, Damaged, Segment};
pub use slots::{QueryVector, SLOTS_HEADER, Slots, slot, slot_width, slots_header};
pub use text::{snippet, words};
pub use transformer::{EmbedError, Transformer, Vector};
