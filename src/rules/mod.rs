//! Rules of a skill beside each other: a new one among the known ones, and the evidence of use.
//!
//! - `place`: stores a rule, or strengthens the one that it repeats. `passed_on`: candidates, until a
//!   person approves them.
//! - `contradictions`, `similar`: the rules that a rule contradicts, and those near it.
//! - `hearing`: what a person tells an agent in the chat, heard at their message.
//! - `evidence`: counts how often a prompt held a rule, and how people judged the output.
//!
//! Deliberately absent: the words of a rule (`learn::reflect`) and decisions of people (`review`).

pub(crate) mod contradictions;
pub(crate) mod evidence;
pub mod hearing;
pub(crate) mod passed_on;
pub(crate) mod place;
pub(crate) mod similar;

pub use contradictions::Conflict;
pub use similar::{SimilarRule, replace_rule};
