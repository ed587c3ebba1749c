//! Decisions of people about records: approve, edit, merge, trust, accept and reject.
//!
//! - `approve`: a person stands behind an observed record. `verdict`: accepts or rejects an output.
//! - `blame`: the rule that a rejection counts against.
//! - `edit`: changes fields of a record. `conflicts`, `merge_rules`: rules that contradict or repeat each other.
//! - `pin`: a rule that evidence does not retire.
//! - `promote`: a record counts in every project of the user.
//! - `queue`: everything that waits for a decision. `reject`: a proposal is of no use.
//! - `replay`: what a rule would have done at past calls.
//! - `separate_rules`: rules that a person keeps side by side.
//! - `trust`: which records of others count in this workspace.

pub(crate) mod approve;
pub(crate) mod edit;
pub(crate) mod promote;
pub mod queue;
pub(crate) mod reject;
pub(crate) mod replay;
pub(crate) mod trust;

pub use approve::{Approved, approve};
pub use edit::{Draft, EditReport, draft, edit};
pub use promote::{Promoted, promote};
pub use reject::{Rejected, reject};
pub use replay::{PastSessions, Replay, replay};
pub use trust::{TrustMode, Untrusted, UntrustedRecord, trust, trust_origin, untrusted};
