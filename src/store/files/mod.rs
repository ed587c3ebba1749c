//! Files of the memory directory, as bytes: no caller, no access filter.
//!
//! - `directory`: location, identity and lock. `inventory`: the data files, the roles of all files, and what
//!   git ignores.
//! - `data`: one data file. `counters`: fields that each machine counts for itself.
//! - `log`: append-only lines. `tombstones`: removed records. `map`: derived files in memory.

pub(crate) mod counters;
pub(crate) mod data;
pub(crate) mod directory;
pub(crate) mod inventory;
pub(crate) mod log;
pub(crate) mod map;
pub(crate) mod tombstones;
