//! Logs of agents, in lines: executions, hints and uses.
//!
//! - `execution_logs`: actions of agents. `session_lines`: those of a session that is forgotten.
//! - `hints`: outcomes of errors with known hints. `counts`: how often a record was used, and calls whose
//!   rules were not checked in time.
//! - `shared_lines`: audit events on their way to a database.

pub(crate) mod counts;
pub(crate) mod execution_logs;
pub(crate) mod hints;
pub(crate) mod session_lines;
pub(crate) mod shared_lines;
