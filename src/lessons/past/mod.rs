//! Past sessions: session files of agents in, recoveries and lessons out.
//!
//! - `files`, `session_files`: finds and reads session files. `learn`: stores what is new and counts what
//!   exists; `learn_report`: its report. `of_host`: the session of an agent host as a record.
//! - `past_sessions`: questions to a model about what the agents found out; `read_session`, `digest`: what
//!   it is told of a session; `answer`: what is left of its answer.

pub(crate) mod answer;
pub(crate) mod digest;
pub(crate) mod files;
pub(crate) mod learn;
pub(crate) mod learn_report;
pub(crate) mod of_host;
pub mod past_sessions;
pub(crate) mod read_session;
pub(crate) mod session_files;
