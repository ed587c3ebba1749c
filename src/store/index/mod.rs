//! Derived data, which can be rebuilt at any time.
//!
//! - `positions`: positions of entries. `terms`: table of the entries that contain a term.
//! - `derived`: storage of derived files, for indexes. `sessions`: derived files of sessions.

pub(crate) mod derived;
pub(crate) mod positions;
pub(crate) mod sessions;
pub(crate) mod terms;
