//! Rules: a new one among the existing ones, the evidence of use, and what they do at an agent's call.
//!
//! - `place`: stores a rule, or strengthens the one that it repeats. `passed_on`: candidates, until a
//!   person approves them.
//! - `contradictions`, `similar`: the rules that a rule contradicts, and those near it.
//! - `hearing`: what a person tells an agent in the chat, heard at their message.
//! - `acting`: rules that act on calls. `at_call`: what they do around one. `receipts`: what agents did
//!   next.
//! - `matcher`, `patterns`: whether a call breaks a rule. `call`, `changed_paths`, `peel`, `wrappers`,
//!   `shell_scan`: what a call is. `literals`: the texts of the derived table.
//! - `evidence`: counts how often a prompt held a rule, and how people judged the output.
//!
//! Deliberately absent: the words of a rule (`learn::reflect`) and decisions of people (`review`).

pub(crate) mod acting;
pub(crate) mod at_call;
mod call;
mod changed_paths;
pub(crate) mod contradictions;
pub(crate) mod evidence;
pub mod hearing;
mod literals;
mod look_around;
mod matcher;
pub(crate) mod passed_on;
mod patterns;
mod peel;
pub(crate) mod place;
mod receipts;
mod shell_scan;
pub(crate) mod similar;
mod wrappers;

pub(crate) use acting::forbids;
pub use at_call::{
    AgentCall, RuleFilter, Warning, after, before, compacted, ended, session_receipts,
};
pub use call::Call;
pub use contradictions::Conflict;
pub use matcher::{breaks, fulfilled_by};
pub use patterns::{BadPattern, checked};
pub use similar::{SimilarRule, replace_rule};
