//! Reading through the access filter: one caller with a scope, a user and a time.
//!
//! - `access_filter`: the filter, and the rows of several files in one order. `scoped`: the store of one
//!   caller, and what is read beside it. `query`: reading of records. `id_lookup`: ids from what a user
//!   types. `disabled_users`: memories that are switched off.

pub(crate) mod access_filter;
pub(crate) mod disabled_users;
pub(crate) mod id_lookup;
pub(crate) mod query;
pub(crate) mod scoped;
