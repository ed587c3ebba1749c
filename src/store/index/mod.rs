//! Derived data, which can be rebuilt at any time.
//!
//! - `positions`: positions of entries. `terms`: table of the entries that contain a term.
//! - `derived`, `mmap`: storage of derived files, for indexes.
//! - `processed_files`: processed session files. `session_scratch`: notes of running sessions.
//! - `session_log`: calls of running sessions, appended by each event.

pub(crate) mod derived;
pub(crate) mod mmap;
pub(crate) mod positions;
pub(crate) mod processed_files;
pub(crate) mod session_log;
pub(crate) mod session_scratch;
pub(crate) mod terms;
