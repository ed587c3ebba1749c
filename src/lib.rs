//! The memory that agents learn with.

pub mod llm;
pub mod model;
pub mod skill;
pub mod store;
