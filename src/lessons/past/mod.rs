//! Past sessions: reads session files of agents, and learns recoveries and lessons from them.
//!
//! - `session_files`: finds and reads session files. `learn`: stores new patterns, counts existing ones, and
//!   reports both. `of_host`: the session of an agent host as a record.
//! - `past_sessions`: questions to a model about the agents' findings. `question`: one of them; `digest`: the session as
//!   the model sees it. `answer`: the lessons of its answer that pass.

pub(crate) mod answer;
pub(crate) mod digest;
pub(crate) mod learn;
pub(crate) mod of_host;
pub mod past_sessions;
pub(crate) mod question;
pub(crate) mod session_files;
