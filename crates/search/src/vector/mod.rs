//! Semantic half of the search: quantized vectors, and windows of long texts.

pub(crate) mod binary_vectors;
pub(crate) mod quantized_vectors;
pub(crate) mod windows;
