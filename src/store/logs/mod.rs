//! Logs of agents, in lines: executions and hints.
//!
//! - `execution_logs`: actions of agents. `session_lines`: removal and restoration of a session's
//!   lines.
//! - `hint_log`: outcomes of hints.
//! - `shared_lines`: audit events in a database, with those of all copies.
//! - `late_calls`: calls whose rules were not checked in time.
//! - `retrievals`: how often a record was put into a prompt or an answer.

pub(crate) mod execution_logs;
pub(crate) mod hint_log;
pub(crate) mod late_calls;
pub(crate) mod retrievals;
pub(crate) mod session_lines;
pub(crate) mod shared_lines;
