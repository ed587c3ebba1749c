//! Rules: the whole life of a rule, from a person's words to the call of an agent that it stops.
//!
//! In the order of that life:
//! - `correct`: a correction is stored before anything else, then worded and placed. `hearing`: what a
//!   person tells an agent in the chat. `reflect`: the words of the rule, by a model or the person's own.
//! - `place`: the rule among its neighbours: one that it repeats is strengthened, one that it contradicts
//!   is named. Candidates wait there for a person, and people join or keep apart what is near.
//! - `regression`: the test case and the section in the guardrails of the skill, and their removal.
//! - `in_use`: rules in force, own and remote, and those for the start of a session.
//! - `evidence`: prompts that held a rule, and how people judged the output. `verdict`: what a person says of an
//!   output.
//! - `acting`: rules with a pattern, around a call of an agent, and the receipts of what it did next.
//!
//! Invariants: the words of a person are stored before a model is asked. Only a person's word, here or by
//! approval, puts a rule in force; an agent's word makes a candidate. A rule acts at a call without a model,
//! a network or a runtime.
//!
//! Deliberately absent: `lessons`. The two rooms do not know each other; who uses both passes
//! [`forbids_advice`] to the lessons. Decisions about records of any kind are in `review`.

pub(crate) mod acting;
pub(crate) mod correct;
pub mod evidence;
pub mod hearing;
pub(crate) mod in_use;
pub(crate) mod place;
pub mod reflect;
pub mod regression;
mod verdict;
mod vocabulary;

pub use acting::at_call::{
    AgentCall, RuleFilter, Warning, after, before, compacted, ended, read_to, session_receipts,
};
pub use acting::call::Call;
pub use acting::forbids_advice;
pub use acting::matching::{breaks, fulfilled_by};
pub use acting::patterns::{BadPattern, checked};
pub use correct::{CorrectOptions, CorrectReport, RelationReport, correct};
pub use in_use::{UNREAD, are_unread};
pub use place::changes::{Conflict, replace_rule};
pub use place::decisions::{MergeReport, Separated, keep_both, merge};
pub use place::neighbours::{SimilarRule, near_pairs};
pub use place::{AddedRule, add_rule};
pub use regression::files::RuleFiles;
pub use verdict::{BlamedRule, ReviewReport, give_verdict};
