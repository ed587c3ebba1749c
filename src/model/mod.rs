//! What is remembered: the records, their ids, and who may see them.
//!
//! Data only. Nothing in this layer reads a file, asks for the time, or prints; every other
//! module may import it and it imports none of them.
//!
//! A record is a typed struct in the file that its source document fixed ([`Execution`] lies in
//! `episodic_memory.json`, and so on), and is seen by everything that does not care about the kind
//! (search, listing, export) as one [`Document`].

mod condition;
mod counting;
mod episode;
mod evidence;
mod execution_log;
mod expiry;
mod fix;
mod id;
mod kind;
mod knowledge;
mod lenient;
mod memory_schema;
mod session;
mod session_state;
mod skill_path;
mod trace;
mod trial;
mod viewer;

pub use condition::{Condition, InvalidCondition};
pub use episode::{Correction, Execution, NearestCase, Outcome, Usage};
pub use evidence::Evidence;
pub use execution_log::{ActionType, ExecutionLog, LogStatus};
pub use expiry::{Expiry, ending, later};
pub use fix::{Fix, Origin, Procedure};
pub use id::{IdShape, abroad, numbered, split_origin, timestamped};
pub use kind::{Document, Kind, Record, Trust, mark};
pub use knowledge::{AGENT, CANDIDATE, Memory, MemoryType, Reflexion, UTILITY_FLOOR};
pub use memory_schema::{MetadataField, Misfit, Shape};
pub use session::{Session, TOTAL_STEPS};
pub use session_state::SessionState;
pub use skill_path::{InvalidSkillPath, Scope, SkillPath};
pub use trace::{BrokenLine, Event, Remark, Speaker, Step};
pub use trial::Trial;
pub use viewer::{InvalidUserId, UserId, Viewer};
