//! Documents to ranked hits: words, vectors, index segments, and embedders.
//!
//! - `text`: words of texts. `keyword`: BM25 over segments, and the best passage of long documents.
//! - `vectors`: quantized vectors of a segment, searched in place, several for a long document.
//! - `segment`, `segment_builder`: index segments that are searched in place, with the attributes of their documents
//!   and the filter over them; and their construction.
//! - `rank`: the ranker, the only ranking of the program, and a temporary one of a few texts; names that tell the
//!   semantic half nothing. `fusion`: scores of
//!   the two rankings, as one, and the best of many.
//! - `embedder`: text in, vector out: the built-in model, or one behind a URL.
//!
//! Pure except for `embedder`: no files, no clock, no async code. Callers supply the bytes.
//!
//! Deliberately absent: what a document is. It has text, and [`Attributes`] that are numbers; the program knows what
//! they stand for, and where segments are saved.

pub mod embedder;

mod fusion;
mod keyword;
mod rank;
mod segment;
mod segment_builder;
mod text;
mod vectors;

pub use fusion::{Fusion, Hit, Rrf};
pub use keyword::ByWords;
pub use rank::{Question, Ranked, Ranker, has_names, search};
pub use segment::{
    ANALYSIS, Admission, Attributes, Damaged, KINDS, Part, Segment, UserFilter, name_hash, seconds,
};
pub use segment_builder::{Builder, merge};
pub use text::{each_word, snippet, words};
pub use vectors::{
    Nearness, SLOTS_HEADER, SlotLayout, Slots, slot, slot_width, slots_header, texts_of,
};
