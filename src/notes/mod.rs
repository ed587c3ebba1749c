//! Notes.

pub(crate) mod browse;
pub(crate) mod embed;
pub mod find;
pub mod indexing;
pub(crate) mod memories;
pub(crate) mod remember;
pub(crate) mod rewrite;
pub mod sessions;

pub use browse::{ListReport, Listed, ShowReport, list, recent_executions, show};
pub use embed::{Embedded, embed};
pub use find::remote_results::{RemoteResult, remote_results};
pub use find::{Asked, Explanation, FindOptions, FindReport, Found, Ranks, Term, find, find_near};
pub use memories::{list_memories, memories_where};
pub use remember::{AddOptions, AddReport, add_memory, add_observed};
pub use rewrite::rewrite;
