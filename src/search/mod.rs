//! Ranking over [`Document`](crate::model::Document)s, independent of store and network.
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
//! Pure: no files, no clock, no async code. Callers supply the bytes.

pub(crate) mod attributes;
pub(crate) mod corpus;
pub(crate) mod evaluate;
pub(crate) mod filter;
pub(crate) mod fusion;
pub(crate) mod lexical;
pub(crate) mod part;
pub(crate) mod rank;
pub(crate) mod segment;
pub(crate) mod segment_builder;
pub(crate) mod vector;

pub use attributes::{Attributes, seconds};
pub use corpus::Corpus;
pub use evaluate::{Metrics, percentile};
pub use filter::Filter;
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
    QueryVector, ReadAt, SLOTS_HEADER, SlotSource, Slots, slot, slot_width, slots_header,
};
pub use vector::windows::{SlotLayout, texts_of, vectors_of};
