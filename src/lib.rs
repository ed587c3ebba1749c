//! The memory that agents learn with.

pub mod model;
