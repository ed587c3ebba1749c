//! Notes.

pub(crate) mod browse;
pub mod find;
pub mod indexing;
pub(crate) mod remember;
pub mod sessions;

pub use browse::{
    ListReport, Listed, ShowReport, list, list_memories, memories_where, recent_executions, show,
};
pub use find::query_embedding::{Embedded, embed};
pub use find::remote_results::{RemoteResult, remote_results};
pub use find::rewrite::rewrite;
pub use find::{Asked, Explanation, FindOptions, FindReport, Found, Ranks, Term, find, find_near};
pub use remember::{AddOptions, AddReport, add_memory, add_observed};
