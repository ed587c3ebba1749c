//! Reports about a memory: figures, provenance, and measurements on data.
//!
//! - `stats`, `status`: counts and trends. `why`: provenance of a record and its effects.
//! - `dry_run`: calls in past sessions on which a check would have fired.
//! - `evaluate`: quality of search on labelled data.
//!
//! Deliberately absent: changes. Nothing here writes a record.

pub(crate) mod dry_run;
pub(crate) mod evaluate;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod why;

pub use dry_run::{DryRunOptions, DryRunReport, FiredCall, dry_run};
pub use evaluate::{EvaluateReport, Latency, Passage, Question, evaluate};
pub use stats::{
    Arm, CheckStats, Comparison, Estimate, Part, Period, Piece, StatsReport, Used, save_page, stats,
};
pub use status::{PulledStatus, StatusReport, status};
pub use why::{Link, Relation, WhyReport, why};
