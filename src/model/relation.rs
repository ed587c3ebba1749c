//! Relation of a rule to an older rule of its skill, as a model or a person judged it.
//!
//! It is stored with the newer rule, so that a pair that was judged once is not compared by its
//! words again.

use serde::{Deserialize, Serialize};

/// Relation of a rule to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleRelation {
    /// One of the two can replace the other, and nothing is lost.
    Same,
    /// Both cannot be obeyed in the same case.
    Contradicts,
    /// One of the two holds in fewer cases than the other, or is an exception to it.
    Narrows,
    /// Neither of these.
    Unrelated,
}

/// Judgement on the relation of a rule to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelatedRule {
    /// Id of the other rule.
    pub id: String,
    /// Relation to it.
    pub relation: RuleRelation,
    /// Reason, on one line; empty if a person judged.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Author: `provider/model`, or `user`.
    #[serde(default)]
    pub by: String,
}
