//! Logs of agents, in lines: executions, hints and uses.
//!
//! - `execution_logs`: actions of agents. `shared_lines`: outcomes of hints and audit events, here and in a
//!   database. `counts`: how often a record was used, and calls whose rules were not checked in time.

pub(crate) mod counts;
pub(crate) mod execution_logs;
pub(crate) mod shared_lines;
