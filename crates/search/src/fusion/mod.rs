//! Fusion of the two rankings, and the top k of many.

pub(crate) mod fuse;
pub(crate) mod top_k;
pub(crate) mod view;
