//! Report of a correction.

use serde::Serialize;

use crate::model::{Correction, Record as _, Reflexion, RuleRelation, Trust};
use crate::rules::place::contradictions::Conflict;
use crate::rules::place::similar::SimilarRule;

/// Result of a correction.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct CorrectReport {
    /// Id of the correction.
    pub correction_id: String,
    /// Id of the corrected execution; `None` without one.
    pub execution_id: Option<String>,
    /// Id of the rule: a new one, or an existing one with the same meaning. `None` if none was
    /// learned.
    pub reflexion_id: Option<String>,
    /// Text of the rule.
    pub rule: Option<String>,
    /// Status of the rule: `active`, or `candidate` if an agent supplied it or it is in doubt.
    pub status: Option<&'static str>,
    /// Trust level of the rule.
    pub trust: Option<Trust>,
    /// True if a person repeated the correction and so turned a candidate into a rule.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub was_candidate: bool,
    /// Condition under which the rule applies.
    pub applies_when: Option<String>,
    /// Cause of the mistake.
    pub root_cause: Option<String>,
    /// Score from 0 to 1 for how specific and actionable the correction is.
    pub confidence: f64,
    /// Files that hold the regression test.
    pub tests: Vec<String>,
    /// Guardrail files that the rule was added to.
    pub guardrails: Vec<String>,
    /// Rules that contradict the new one.
    pub conflicts: Vec<Conflict>,
    /// Rules near the new one, at most three, nearest first: it may repeat, narrow or contradict
    /// them, and a person has to say so. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub similar: Vec<SimilarRule>,
    /// Existing rules that a model related to the new one, with its reasons. Absent if there are
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<RelationReport>,
    /// Id of the existing rule with the same meaning.
    pub duplicate_of: Option<String>,
    /// Source of the rule's text: `offline`, or `provider/model`.
    pub distilled_by: String,
    /// Price in US dollars; `None` if the price is not known.
    pub cost_usd: Option<f64>,
    /// Reason why no rule was learned, and how to get one.
    pub not_learned: Option<String>,
    /// Reason why the rule is a candidate until a person says that it is one; absent for a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<&'static str>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Existing rule that a model related to the new one.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct RelationReport {
    /// Id of the existing rule.
    pub id: String,
    /// Text of the existing rule.
    pub rule: String,
    /// Relation of the new rule to it.
    pub relation: RuleRelation,
    /// Reason of the model.
    pub reason: String,
}

/// Report of a stored correction, with its rule if there is one.
pub(super) fn report(
    correction: &Correction,
    rule: Option<&Reflexion>,
    warnings: Vec<String>,
) -> CorrectReport {
    CorrectReport {
        correction_id: correction.correction_id.clone(),
        execution_id: Some(correction.execution_id.clone()).filter(|id| !id.is_empty()),
        reflexion_id: rule.map(|rule| rule.reflexion_id.clone()),
        rule: rule.map(|rule| rule.rule.clone()),
        status: rule.map(Reflexion::state),
        trust: rule.map(Reflexion::trust),
        was_candidate: false,
        applies_when: rule.map(|rule| rule.applies_when.clone()),
        root_cause: rule.map(|rule| rule.root_cause.clone()),
        confidence: rule.and_then(|rule| rule.confidence).unwrap_or(0.5),
        tests: Vec::new(),
        guardrails: Vec::new(),
        conflicts: Vec::new(),
        similar: Vec::new(),
        related: Vec::new(),
        duplicate_of: None,
        distilled_by: rule
            .map(|rule| rule.distilled_by.clone())
            .unwrap_or_default(),
        cost_usd: Some(0.0),
        not_learned: None,
        doubt: None,
        warnings,
    }
}
