//! Learning from sessions of agents: session files in, fixes and procedures out.
//!
//! - `session_files`: finds and reads session files. `learn`: stores what is new and counts what is known.
//! - `lessons`: new fixes and counts of known ones. `episodes`: recoveries that are no advice.
//! - `chat`: candidate rules from what people tell their agents.
//! - `analyse`: procedures in the words of a model. `consolidate`: verdicts on what nobody has reviewed.

pub(crate) mod analyse;
pub(crate) mod at_once;
pub(crate) mod chat;
pub(crate) mod consolidate;
pub(crate) mod episodes;
pub(crate) mod learn;
mod learn_report;
pub(crate) mod lessons;
pub(crate) mod session_files;

pub use analyse::{AnalysisPlan, AnalysisReport, analyse, plan_analysis};
pub use chat::CandidateReport;
pub use consolidate::{
    ConsolidateOptions, ConsolidatePlan, ConsolidateReport, Judged, Question, Undecided,
    consolidate, plan as plan_consolidation, tidy,
};
pub use learn::{LearnOptions, OnBytes, learn};
pub use learn_report::{EpisodeReport, LearnReport, TranscriptReport};
