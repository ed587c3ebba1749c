//! Semantic half of the search: quantized vectors.

pub(crate) mod quantized_vectors;
