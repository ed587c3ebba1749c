//! Reading through the access filter: one caller with a scope, a user and a time.
//!
//! - `access_filter`: the filter. `scoped`: the store of one caller. `query`: reading of records.
//!   `selected_rows`: the rows of several files in one order. `id_lookup`: ids from what a user types.

pub(crate) mod access_filter;
pub(crate) mod disabled_users;
pub(crate) mod id_lookup;
pub(crate) mod pulled;
pub(crate) mod query;
pub(crate) mod scoped;
