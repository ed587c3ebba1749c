//! Data model: records, their ids, and access by scope and user.
//!
//! Data only. This layer reads no files, does not ask for the time and prints nothing. Every other
//! module may import it; it imports none of them.
//!
//! A record is a typed struct, stored in the file that the source document defines ([`Execution`]
//! in `episodic_memory.json`, and so on). Kind-independent code (search, listing, export) sees it
//! as one [`Document`].

mod access;
mod episode;
pub mod error;
mod kind;
mod memory;
mod metadata;
mod procedure;
mod reflexion;
mod session;
pub(crate) mod text;
pub(crate) mod words;

pub use access::{InvalidSkillPath, InvalidUserId, Scope, SkillPath, UserId, Viewer};
pub(crate) use episode::push_values;
pub use episode::{Correction, Execution, NearestCase, Outcome};
pub use kind::{
    AGENT, CANDIDATE, CHAT, Document, IdShape, Kind, LOCAL_ID, OBSERVED, PROMOTED_TO, REJECTED,
    Record, Trust, USER_STORE, highest_after, local, local_number, mark, numbered, split_origin,
    timestamped, with_origin,
};
pub use memctl_llm::Usage;
pub use memory::{Expiry, Memory, ending, later, utc};
pub use metadata::{Field, MemoryType, Misfit, Shape};
pub use procedure::{
    Applies, EPISODE, LONGEST_LESSON, LessonFile, LessonScope, Origin, Pattern, Procedure,
    ProcedureFields, QUARANTINED,
};
pub use reflexion::{
    CallAction, CallPart, CallPattern, Evidence, Judgement, Receipts, Reflexion, RelatedRule,
    RuleRelation, Said, UTILITY_FLOOR,
};
pub use session::{ActionType, ExecutionLog, LogStatus, Session, SessionState, TOTAL_STEPS};

/// Calls a generic function with the type of the records of a kind.
macro_rules! by_kind {
    ($kind:expr, $call:ident($($given:expr),*)) => {
        match $kind {
            $crate::model::Kind::Execution => $call::<$crate::model::Execution>($($given),*),
            $crate::model::Kind::Correction => $call::<$crate::model::Correction>($($given),*),
            $crate::model::Kind::Reflexion => $call::<$crate::model::Reflexion>($($given),*),
            $crate::model::Kind::Procedure => $call::<$crate::model::Procedure>($($given),*),
            $crate::model::Kind::Memory => $call::<$crate::model::Memory>($($given),*),
            $crate::model::Kind::Session => $call::<$crate::model::Session>($($given),*),
        }
    };
}

pub(crate) use by_kind;
