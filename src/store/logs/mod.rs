//! Logs in lines: `execution_logs` has the actions of agents, `shared` their lines on the way to a database,
//! and `late_calls` the calls whose rules were not checked in time.

pub(crate) mod execution_logs;
pub(crate) mod late_calls;
pub(crate) mod shared;
