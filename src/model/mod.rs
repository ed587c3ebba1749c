//! Data model: records, their ids, and access by scope and user.
//!
//! Data only. This layer reads no files, does not ask for the time and prints nothing. Every other
//! module may import it; it imports none of them.
//!
//! A record is a typed struct, stored in the file that the source document defines ([`Execution`]
//! in `episodic_memory.json`, and so on). Kind-independent code (search, listing, export) sees it
//! as one [`Document`].

mod call_pattern;
mod condition;
mod counting;
mod episode;
pub mod error;
mod evidence;
mod execution_log;
mod expiry;
mod id;
mod judgement;
mod kind;
mod lenient;
mod lesson;
pub(crate) mod likeness;
mod memory;
mod memory_schema;
mod procedure;
mod procedure_fields;
mod reflexion;
mod relation;
mod said;
mod schemas;
mod session;
mod session_state;
mod skill_path;
pub(crate) mod text;
mod trust;
mod viewer;

pub use call_pattern::{CallAction, CallPart, CallPattern};
pub use condition::{Condition, InvalidCondition};
pub use episode::{Correction, Execution, NearestCase, Outcome, Usage};
pub use evidence::{Evidence, Receipts, Trial};
pub use execution_log::{ActionType, ExecutionLog, LogStatus};
pub use expiry::{Expiry, ending, later, utc};
pub use id::{
    IdShape, LOCAL_ID, USER_STORE, local, local_number, numbered, split_origin, timestamped,
    with_origin,
};
pub use judgement::{Judgement, Verdict};
pub use kind::{Document, Kind, Record};
pub use lesson::{Applies, LONGEST_LESSON, LessonFile, LessonScope, Pattern};
pub use memory::{Memory, MemoryType};
pub use memory_schema::{MetadataField, Misfit, Shape};
pub use procedure::{EPISODE, Origin, Procedure, QUARANTINED};
pub use procedure_fields::ProcedureFields;
pub use reflexion::{Reflexion, UTILITY_FLOOR};
pub use relation::{RelatedRule, RuleRelation};
pub use said::Said;
pub use session::{Session, TOTAL_STEPS};
pub use session_state::SessionState;
pub use skill_path::{InvalidSkillPath, Scope, SkillPath};
pub use trust::{AGENT, CANDIDATE, CHAT, OBSERVED, Trust, mark};
pub use viewer::{InvalidUserId, UserId, Viewer};
