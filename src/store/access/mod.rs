//! Reading through the access filter of one caller. Every read for a caller and every change to an existing
//! record applies the filter.
//!
//! - `filter`: what a caller sees. `scoped`: the store of one caller. `query`: reading of records.
//! - `ids`: what a user types, as the id of a record, and removed records. `disabled`: the marks that switch a
//!   memory off.

pub(crate) mod disabled;
pub(crate) mod filter;
mod ids;
pub(crate) mod query;
pub(crate) mod scoped;
