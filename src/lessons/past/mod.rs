//! Past sessions: session files of agents in, recoveries and lessons out.
//!
//! - `files`, `session_files`: finds and reads session files. `learn`: stores what is new and counts what
//!   exists; `learn_report`: its report. `of_host`: the session of an agent host as a record.
//! - `digest`, `past_sessions`: questions to a model about what the agents found out.

pub(crate) mod digest;
pub(crate) mod files;
pub(crate) mod learn;
pub(crate) mod learn_report;
pub(crate) mod of_host;
pub mod past_sessions;
pub(crate) mod session_files;
