//! Documents to ranked hits: words, vectors, index segments, and embedders.
//!
//! - `lexical`: words of texts, BM25 over segments, correction of mistyped query words, frequent names.
//! - `vector`: quantized vectors of a segment, searched in place.
//! - `fusion`: fusion of the two rankings, scores per document, top-k selection.
//! - `attributes`, `filter`: document attributes, and the filter over them.
//! - `segment`, `segment_builder`: index segments that are searched in place, and their construction.
//! - `rank`: the ranker, the only ranking of the program. `part`: its input.
//! - `corpus`: temporary ranking of a few texts.
//! - `evaluate`: retrieval metrics.
//!
//! - `embedder`: text in, vector out: the built-in model, or one behind a URL.
//!
//! Pure except for `embedder`: no files, no clock, no async code. Callers supply the bytes.
//!
//! Deliberately absent: what a document is. It has text, and [`Attributes`] that are numbers; the program knows what
//! they stand for, and where segments are saved.

pub mod embedder;

mod attributes;
mod corpus;
mod evaluate;
mod filter;
mod fusion;
mod lexical;
mod part;
mod rank;
mod segment;
mod segment_builder;
mod vector;

pub use attributes::{Attributes, KINDS, name_hash, seconds};
pub use corpus::Corpus;
pub use evaluate::{Metrics, percentile};
pub use filter::{Admission, UserFilter};
pub use fusion::fuse::{Fusion, Rrf};
pub use fusion::top_k::Hit;
pub use lexical::frequent_names::has_names;
pub use lexical::text::{snippet, words};
pub use part::Part;
pub use rank::{ByWords, Question, Ranked, Ranker};
pub use segment::{ANALYSIS, Damaged, Segment};
pub use segment_builder::{Builder, merge};
pub use vector::binary_vectors::{BinaryVectors, binary_vectors};
pub use vector::quantized_vectors::{
    Nearness, QueryVector, ReadAt, SLOTS_HEADER, SlotSource, Slots, slot, slot_width, slots_header,
};
pub use vector::windows::{SlotLayout, texts_of, vectors_of};
