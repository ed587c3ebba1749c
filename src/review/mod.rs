//! Review: what waits for a person, and what the person decides.
//!
//! - `queue`: everything that waits for a decision. `replay`: what a rule would have done at past calls.
//!   `repeats`: what past sessions met again and again, and what would end it.
//! - `approve`: a person stands behind an observed record, or finds that a proposal is of no use; and which
//!   records of others count in this workspace.
//! - `edit`: changes fields of a record. `promote`: a record counts in every project of the user.
//!
//! Invariant: no field of a file grants trust. Approvals are stored outside the workspace.
//!
//! Deliberately absent: verbs of rules alone, such as joining two (`rules::place`) or judging an output
//! (`rules::evidence`).

pub(crate) mod approve;
pub(crate) mod edit;
pub(crate) mod promote;
pub mod queue;
pub(crate) mod repeats;
pub(crate) mod replay;

pub use approve::{
    Approved, Rejected, TrustMode, Untrusted, UntrustedRecord, approvable, approve, reject, revoke,
    trust, trust_origin, untrusted,
};
pub use edit::{Draft, EditReport, draft, edit};
pub use promote::{Promoted, promote};
pub use repeats::{Repeat, RepeatKind, Repeats, decide, repeats};
pub use replay::{PastSessions, Replay, replay};
