//! Report of a test run.

use serde::Serialize;

use crate::model::SkillPath;

/// Result of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Fails without its rule and passes with it.
    Passed,
    /// The rule satisfies some demands of the correction.
    Partial,
    /// Fails with its rule, or is no valid case.
    Failed,
    /// Passes without its rule too, and so proves nothing.
    Worthless,
    /// Not run.
    Skipped,
}

/// Report of one case.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct CaseReport {
    /// File name of the case, without its extension.
    pub id: String,
    /// Skill of the case.
    pub skill: SkillPath,
    /// Correction that the case comes from.
    pub correction_id: Option<String>,
    /// Rule that must make the case pass.
    pub reflexion_id: Option<String>,
    /// Result of the case.
    pub status: Status,
    /// `passed` or `failed` without the rule; `None` if not run.
    pub without_rule: Option<Status>,
    /// `passed` or `failed` with the rule; `None` if not run.
    pub with_rule: Option<Status>,
    /// Rules that make the case fail.
    pub broken_by: Vec<String>,
    /// Explanation of the status.
    pub reason: String,
}

/// Report of all cases.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct TestReport {
    /// Number of cases that fail without their rule and pass with it.
    pub passed: usize,
    /// Number of cases whose rule satisfies some demands.
    pub partial: usize,
    /// Number of cases that fail.
    pub failed: usize,
    /// Number of cases that were not run.
    pub skipped: usize,
    /// Number of cases that prove nothing.
    pub worthless: usize,
    /// Number of cases that were not run because the model failed.
    pub unanswered: usize,
    /// Report of each case.
    pub cases: Vec<CaseReport>,
    /// Number of model calls.
    pub calls: usize,
    /// Cost of the calls in US dollars; `None` if a price is unknown.
    pub cost_usd: Option<f64>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

impl CaseReport {
    /// Returns the report of a case that was not run.
    pub(crate) fn skipped(id: &str, skill: &SkillPath) -> Self {
        Self {
            id: id.to_owned(),
            skill: skill.clone(),
            correction_id: None,
            reflexion_id: None,
            status: Status::Skipped,
            without_rule: None,
            with_rule: None,
            broken_by: Vec::new(),
            reason: String::new(),
        }
    }
}
