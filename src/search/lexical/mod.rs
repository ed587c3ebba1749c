//! Keyword half of the search: words of text, BM25, passages of long documents, and spelling.

pub(crate) mod keyword;
pub(crate) mod passages;
pub(crate) mod term_expansion;
pub(crate) mod text;
