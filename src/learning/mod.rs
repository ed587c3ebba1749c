//! Learning from sessions of agents: session files in, lessons out.
//!
//! - `session_files`: finds and reads session files. `learn`: stores what is new and counts what is known.
//! - `at_once`: stores the pattern of a recovery when a hook sees it.

pub(crate) mod at_once;
pub(crate) mod learn;
mod learn_report;
pub(crate) mod session_files;

pub use learn::{LearnOptions, OnBytes, learn};
pub use learn_report::{EpisodeReport, LearnReport, TranscriptReport};
