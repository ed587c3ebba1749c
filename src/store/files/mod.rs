//! Files of the memory directory, as bytes: no caller, no access filter.
//!
//! - `directory`: location, identity and lock. `file_names`: names of the files. `inventory`: roles
//!   of the files. `origin_directory`: directories of remote records.
//! - `data_files`: the files of records by kind. `data`: one such file.
//! - `counters`: fields that each machine counts for itself. `ignored`: what git ignores.
//! - `log`: append-only lines. `tombstones`: removed records.

pub(crate) mod counters;
pub(crate) mod data;
pub(crate) mod data_files;
pub(crate) mod directory;
pub(crate) mod inventory;
pub(crate) mod log;
pub(crate) mod tombstones;
