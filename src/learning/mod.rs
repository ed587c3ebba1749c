//! Learning from sessions of agents: session files in, lessons out.
//!
//! - `session_files`: finds and reads session files. `learn`: stores what is new and counts what is known.
//! - `chat`: candidate rules from what people tell their agents.

pub(crate) mod at_once;
pub(crate) mod chat;
pub(crate) mod learn;
mod learn_report;
pub(crate) mod session_files;

pub use chat::CandidateReport;
pub use learn::{LearnOptions, OnBytes, learn};
pub use learn_report::{EpisodeReport, LearnReport, TranscriptReport};
