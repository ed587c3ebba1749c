//! Past sessions: session files of agents in, recoveries and lessons out.
//!
//! - `session_files`: finds and reads session files. `learn`: stores what is new and counts what
//!   exists, with its report. `of_host`: the session of an agent host as a record.
//! - `past_sessions`: questions to a model about what the agents found out; `digest`: what it is told of a
//!   session; `answer`: what is left of its answer.

pub(crate) mod answer;
pub(crate) mod digest;
pub(crate) mod learn;
pub(crate) mod of_host;
pub mod past_sessions;
pub(crate) mod session_files;
