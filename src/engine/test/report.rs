//! What `test` answers.

use serde::Serialize;

use crate::model::SkillPath;

/// What became of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It fails without its rule and passes with it.
    Passed,
    /// It fails with its rule.
    Failed,
    /// It passes without its rule too, and so proves nothing.
    Worthless,
    /// It was not run.
    Skipped,
}

/// One case.
#[derive(Debug, Clone, Serialize)]
pub struct CaseReport {
    /// The name of its file, without the end.
    pub id: String,
    /// The skill.
    pub skill: SkillPath,
    /// The correction that it comes from.
    pub correction_id: Option<String>,
    /// The rule that has to make it pass.
    pub reflexion_id: Option<String>,
    /// What became of it.
    pub status: Status,
    /// `passed` or `failed`; `None` where it was not run so.
    pub without_rule: Option<Status>,
    /// The same with the rule.
    pub with_rule: Option<Status>,
    /// The rules that make it fail.
    pub broken_by: Vec<String>,
    /// Why, in words.
    pub reason: String,
}

/// What came of all cases.
#[derive(Debug, Default, Serialize)]
pub struct TestReport {
    /// How many fail without their rule and pass with it.
    pub passed: usize,
    /// How many fail.
    pub failed: usize,
    /// How many were not run.
    pub skipped: usize,
    /// How many prove nothing.
    pub worthless: usize,
    /// How many of those that were not run were not because the model failed.
    pub unanswered: usize,
    /// Each of them.
    pub cases: Vec<CaseReport>,
    /// How often a model was asked.
    pub calls: usize,
    /// What that cost, in US dollars; `None` where a price is not known.
    pub cost_usd: Option<f64>,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

impl CaseReport {
    /// The report of a case that was not run.
    pub(super) fn skipped(id: &str, skill: &SkillPath) -> Self {
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
