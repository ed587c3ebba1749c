//! Data files: one JSON file of records per kind.
//!
//! - `json_file`, `json_append`, `json_write`: reading, appending at a constant cost, and other writes.
//!   `recovery`: repair of a torn tail before a write. `scan` finds the entries.
//! - `offsets`: derived table of entry offsets.
//! - `foreign_edit`: detection of edits by programs that take no lock.
//! - `apply`: changes from another place, applied to a file.

pub(crate) mod apply;
pub(crate) mod data_file;
pub(crate) mod foreign_edit;
pub(crate) mod json_append;
pub(crate) mod json_file;
pub(crate) mod json_write;
pub(crate) mod offsets;
pub(crate) mod recovery;
pub(crate) mod scan;
pub(crate) mod three_way;
