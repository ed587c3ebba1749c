//! Data files: one JSON file of records per kind.
//!
//! - `file`: reading. `write`: appending at a constant cost, and other writes. `scan`: finds the entries, and
//!   lines of positions for messages.
//! - `offsets`: derived table of entry offsets.
//! - `foreign_edit`: detection of edits by programs that take no lock, and repair of a torn tail.

pub(crate) mod file;
pub(crate) mod foreign_edit;
pub(crate) mod offsets;
pub(crate) mod scan;
pub(crate) mod write;
