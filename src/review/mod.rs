//! Decisions of people about records: approve, edit, merge, trust, accept and reject.
//!
//! - `approve`: a person stands behind an observed record. `verdict`: accepts or rejects an output.
//! - `edit`: changes fields of a record. `conflicts`, `merge_rules`: rules that contradict or repeat each other.
//! - `trust`: which records of others count in this workspace.

pub(crate) mod approve;
pub(crate) mod conflicts;
pub(crate) mod edit;
pub(crate) mod merge_rules;
pub(crate) mod trust;
pub(crate) mod verdict;

pub use approve::Approved;
pub use conflicts::{ConflictsReport, RulePair};
pub use edit::{Draft, EditReport};
pub use merge_rules::MergeReport;
pub use trust::{TrustMode, Untrusted, UntrustedRecord};
pub use verdict::ReviewReport;
