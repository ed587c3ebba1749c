//! Upkeep of a memory as a whole: statistics and provenance, undo and removal, repair, exchange and merge.
//!
//! An operation here is about records of any kind. Operations on one kind are in the room of that kind.
//!
//! - `why`: provenance of a record and its effects. `stats`: trends. `status`: a new memory
//!   directory, its counts, and the log of writes and reads.
//! - `undo`: reverts the changes of one command. `forget`: removes one record, the expired ones, or everything.
//! - `doctor`: checks every file and repairs damage. `reindex`: the search index
//!   and its vectors.
//! - `export`, `import`: records as JSON Lines. `agents_md`: rules in `AGENTS.md`. `merge`: joins two versions in
//!   git.
//!
//! Invariants: a removal leaves a tombstone, so that no merge or sync brings the record back. An operation that
//! changes files names every file that it changed.
//!
//! Deliberately absent: judgement of content. That is `review`.

pub(crate) mod agents_md;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod forget;
pub(crate) mod import;
pub mod merge;
pub(crate) mod reindex;
pub(crate) mod stats;
pub(crate) mod status;
pub mod undo;
pub(crate) mod why;

pub use agents_md::{AgentsMdReport, FileChange, export as export_agents_md};
pub use doctor::{DoctorReport, NewerFile, doctor};
pub use export::{ExportOptions, ExportReport, OnRecords, export, export_user};
pub use forget::{
    ForgetReport, PruneReport, Pruned, PurgeReport, Removed, forget, prune, purge, purge_user,
};
pub use import::{ImportOptions, ImportReport, Skipped, import};
pub use reindex::{IndexOptions, IndexReport, IndexStage, index};
pub use stats::{AgentSessions, Part, RuleAtCalls, SessionMeans, StatsReport, Used, Week, stats};
pub use status::{
    AuditReport, InitReport, PulledStatus, StatusReport, audit, initialise, status, with_lines,
};
pub use why::{Link, Relation, WhyReport, why};
