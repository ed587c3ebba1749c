//! Reports about a memory: figures, provenance, and measurements on data.
//!
//! - `stats`, `status`: counts and trends. `why`: provenance of a record and its effects.
//! - `evaluate`: quality of search on labelled data.
//!
//! Deliberately absent: changes. Nothing here writes a record.

pub(crate) mod evaluate;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod why;

pub use evaluate::{EvaluateReport, Latency, Passage, Question, evaluate};
pub use stats::{Part, Period, Piece, RuleAtCalls, StatsReport, Used, save_page, stats};
pub use status::{PulledStatus, StatusReport, status};
pub use why::{Link, Relation, WhyReport, why};
