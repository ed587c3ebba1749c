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
//! Deliberately absent: the words of a rule (`rules::reflect`) and decisions of people (`review`).

pub(crate) mod acting;
pub(crate) mod briefing;
pub(crate) mod correct;
pub mod credit;
pub(crate) mod evidence;
pub(crate) mod guardrails;
pub mod hearing;
pub(crate) mod in_use;
pub(crate) mod pin;
pub(crate) mod place;
pub mod reflect;
pub mod regression;
pub(crate) mod rule_files;
pub(crate) mod verdict;

pub use acting::at_call::{
    AgentCall, RuleFilter, Warning, after, before, compacted, ended, session_receipts,
};
pub use acting::call::Call;
pub use acting::forbids_advice;
pub use acting::matcher::{breaks, fulfilled_by};
pub use acting::patterns::{BadPattern, checked};
pub use correct::correction_draft::CorrectionDraft;
pub use correct::{
    CorrectOptions, CorrectPreview, CorrectReport, RelationReport, correct, preview_correction,
};
pub use pin::{PinReport, pin};
pub use place::conflicts::{ConflictsReport, RulePair, conflicts};
pub use place::merge_rules::{MergeReport, Separated, keep_both, merge};
pub use place::similar::{Conflict, SimilarRule, replace_rule};
pub use rule_files::RuleFiles;
pub use verdict::{Blame, BlamedRule, ReviewReport, blame, give_verdict};
