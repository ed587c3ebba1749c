//! Learning from sessions of agents: session files in, fixes and procedures out.
//!
//! - `session_files`: finds and reads session files. `learn`: stores what is new and counts what is known.
//! - `lessons`: new fixes and counts of known ones. `episodes`: recoveries that are no advice.

pub(crate) mod at_once;
pub(crate) mod episodes;
pub(crate) mod learn;
mod learn_report;
pub(crate) mod lessons;
pub(crate) mod session_files;

pub use learn::{LearnOptions, OnBytes, learn};
pub use learn_report::{EpisodeReport, LearnReport, TranscriptReport};
