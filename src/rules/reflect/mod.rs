//! Derives a rule from a correction, and relates it to the existing rules.
//!
//! With a model, [`ask`] builds the request and [`accept`] reads the reply. Without one,
//! [`offline()`] keeps the person's words unchanged. A correction that may be about one output only is
//! in doubt. Input and output are never treated as instructions.
//!
//! A model's words are checked against the person's: a condition that the person did not say is
//! dropped, and a rule that lost a number or a quoted name is replaced by the words of the person.
//!
//! Storage, and the comparison with existing rules without a model, happen elsewhere.

mod offline;
mod reply;
mod request;
#[cfg(test)]
mod tests;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::{RuleRelation, SkillPath};

pub(crate) use offline::ONE_OUTPUT;
pub use offline::offline;
pub(crate) use reply::refusal;
pub use reply::{Reply, accept};
pub(crate) use request::fenced;
pub use request::{PROMPT, ask};

/// Correction with its context.
#[derive(Debug, Clone, Copy)]
pub struct CorrectionContext<'a> {
    /// Corrected skill.
    pub skill: &'a SkillPath,
    /// Text of the correction.
    pub correction: &'a str,
    /// Input of the skill; `None` if no execution was corrected.
    pub input: Option<&'a RawValue>,
    /// Output of the skill; `None` if no execution was corrected.
    pub output: Option<&'a RawValue>,
    /// True if the person says that the correction is a lasting rule.
    pub is_rule: bool,
    /// Existing rules that a model compares with the correction, nearest first.
    pub neighbours: &'a [Neighbour],
}

/// Existing rule near a correction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Neighbour {
    /// Id of the rule.
    pub id: String,
    /// Text of the rule.
    pub rule: String,
    /// Condition of the rule; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub applies_when: String,
}

/// Rule that is not stored yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// Description of the mistake.
    pub mistake: String,
    /// Category of the mistake.
    pub root_cause: String,
    /// Text of the rule, on one line.
    pub rule: String,
    /// Condition of the rule.
    pub applies_when: String,
    /// Specificity of the correction, from 0 to 1.
    pub confidence: f64,
    /// Reason why a person has to say whether it is a rule; `None` if it is one.
    pub doubt: Option<&'static str>,
    /// Assertions of a model in the short form.
    pub assertions: Vec<String>,
    /// `true` if they check all that the rule demands.
    pub assertions_suffice: bool,
}

/// A model's judgement on the new rule and an existing one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Id of the existing rule.
    pub id: String,
    /// Relation to the new rule.
    pub relation: RuleRelation,
    /// Reason, on one line.
    pub reason: String,
}

/// Result of a reflection.
#[derive(Debug, Clone, PartialEq)]
pub enum Reflection {
    /// New rule.
    Rule(Draft),
    /// No rule.
    Nothing {
        /// Reason, and advice for a lasting correction.
        reason: String,
        /// Specificity of the correction, from 0 to 1.
        confidence: f64,
    },
}
