//! Review: proposals that wait for a person, and the person's decisions.
//!
//! - `queue`: everything that waits for a decision. `replay`: how a rule would have acted at past calls.
//!   `repeats`: demands and failures that recur in past sessions, with a way to end each.
//! - `approve`: a person approves or rejects an observed record, and decides which records of others count in
//!   this workspace.
//! - `edit`: changes fields of a record. `promote`: a record counts in every project of the user.
//!
//! Invariant: no field of a file grants trust. Approvals are stored outside the workspace.
//!
//! Deliberately absent: operations on rules alone, such as merging two (`rules::place`) or judging an output
//! (`rules::evidence`).

pub(crate) mod approve;
pub(crate) mod edit;
pub(crate) mod promote;
pub mod queue;
pub(crate) mod repeats;
pub(crate) mod replay;

pub use approve::{
    Approved, Rejected, Untrusted, UntrustedRecord, approve, reject, revoke, trust, trust_origin,
    untrusted,
};
pub use edit::{Draft, EditReport, draft, edit, is_text};
pub use promote::{Promoted, promote};
pub use repeats::{Repeat, RepeatKind, Repeats, Waits, repeats};
pub use replay::{PastSessions, Replay, replay};
