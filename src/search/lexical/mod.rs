//! Keyword half of the search: words of text, BM25, and spelling.

pub(crate) mod keyword;
pub(crate) mod term_expansion;
pub(crate) mod text;
