//! Keyword half of the search: words of text, BM25, passages of long documents, spelling, and the names that
//! tell the semantic half nothing.

pub(crate) mod frequent_names;
pub(crate) mod keyword;
pub(crate) mod passages;
pub(crate) mod text;
