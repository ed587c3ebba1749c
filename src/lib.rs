//! The memory that agents learn with.

pub mod model;
pub mod skill;
pub mod store;
