//! Notes: typed memories and sessions that agents write down, and the search for records of any kind.
//!
//! - `remember`: stores a memory, once. `sessions`: the state of an agent's work, and its log.
//! - `browse`: lists and shows records. `find`: ranks them by keywords and vectors, here and in the shared
//!   store.
//! - `indexing`: the search index, which follows the files by itself.
//!
//! Invariants: a reader sees only what its scope and viewer allow, in every list and every hit. The index is
//! derived: it can be removed without a loss.
//!
//! Deliberately absent: removal (`upkeep`) and decisions (`review`).

pub(crate) mod browse;
pub mod find;
pub mod indexing;
pub(crate) mod remember;
pub mod sessions;

pub use browse::{ListReport, Listed, ShowReport, list, list_memories, recent_executions, show};
pub(crate) use find::compare;
pub use find::report::{Embedded, embed};
pub use find::{Asked, Explanation, FindOptions, FindReport, Found, Ranks, Term, find};
pub use remember::{AddOptions, AddReport, add_memory, add_observed, check};
