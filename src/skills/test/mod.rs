//! Runs regression cases: each without and with its rule, beside all other rules.
//!
//! A case speaks for or against its own rule alone. One that fails without the rule and passes with it
//! validates the rule. One that passes without it proves nothing. Any other result fails, and revokes an earlier
//! validation. Each result is stored before the next case runs.
//!
//! Rules act through a prompt, so without a model no case runs.
//!
//! - `trial`: the run of one case, the decision about each output, and the effect on the rule.
//!
//! Out of scope: repeating a case until it passes, the search for a rule that spoils the case of another, and
//! recording the answers as executions.

mod trial;

use serde::Serialize;

use super::assemble::assemble_layers;
use crate::model::words::names;
use crate::model::{Reflexion, SkillPath};
use crate::rules::in_use::mark_observed;
use crate::rules::place::rule_in_force;
use crate::rules::regression::case::Case;
use crate::rules::regression::files::{self, CaseFile, SkillFiles};
use crate::store::Selection;
use crate::store::skill::{Skill, Skills};
use crate::store::workspace::providers::Chosen;
use crate::store::workspace::{Error, Workspace, dollars, repair_warnings};
use trial::{Meter, Trial, credit};
pub use trial::{OutputVerdict, decide_output};

/// Tokens of an answer, assumed for the cost estimate.
const USUAL_ANSWER: u64 = 500;
/// Bytes per token of a question, assumed for the cost estimate.
const BYTES_PER_TOKEN: u64 = 4;

/// Plan of a test run.
#[derive(Debug, Default)]
pub struct TestPlan {
    /// Models to call: `provider/model`.
    pub models: Vec<String>,
    /// Number of model calls, up to the maximum.
    pub calls: usize,
    /// Maximum number of model calls.
    pub max_calls: usize,
    /// Estimated cost of the planned calls in US dollars; `None` if a price is unknown.
    pub cost_usd: Option<f64>,
    /// Number of cases.
    pub cases: usize,
    groups: Vec<Group>,
}

names! {
    /// Result of a case.
    #[derive(schemars::JsonSchema)]
    Status {
        /// Fails without its rule and passes with it.
        Passed = "passed",
        /// Fails with its rule, or is no valid case.
        Failed = "failed",
        /// Passes without its rule too, and so proves nothing.
        Worthless = "worthless",
        /// Not run.
        Skipped = "skipped",
    }
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
    /// Explanation of the status.
    pub reason: String,
}

/// Report of all cases.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct TestReport {
    /// Number of cases that fail without their rule and pass with it.
    pub passed: usize,
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
            reason: String::new(),
        }
    }
}

/// Cases of one skill.
#[derive(Debug)]
struct Group {
    skill: Skill,
    chosen: Chosen,
    cases: Vec<CaseFile>,
}

/// Cases of one skill, or of each skill in the scope that has some. A named skill must exist.
fn cases_of(
    workspace: &Workspace,
    skills: &Skills,
    skill: Option<&SkillPath>,
) -> Result<Vec<(SkillPath, Vec<CaseFile>)>, Error> {
    let paths = match skill {
        Some(path) => {
            workspace.skill(path)?;
            vec![path.clone()]
        }
        None => skills.list()?.skills,
    };
    let mut found = Vec::new();
    for path in paths {
        if workspace.permit(&path).is_ok() {
            let cases = files::cases(skills, &path)?;
            found.extend((!cases.is_empty()).then_some((path, cases)));
        }
    }
    Ok(found)
}

/// Plans the cases and model calls of one skill, or of all skills in the scope.
pub async fn plan_tests(
    workspace: &Workspace,
    skill: Option<&SkillPath>,
    max_calls: usize,
) -> Result<TestPlan, Error> {
    let mut plan = TestPlan {
        max_calls,
        cost_usd: Some(0.0),
        ..TestPlan::default()
    };
    for (path, cases) in cases_of(workspace, &workspace.skills()?, skill)? {
        let (_, skill) = workspace.skill(&path)?;
        let chosen = workspace.providers.choose(skill.model.as_deref()).await?;
        plan.cases += cases.len();
        if let Chosen::Model(llm) = &chosen {
            let rules = rules_of(workspace, &path)?;
            for case in cases.iter().filter_map(|file| file.case.as_ref().ok()) {
                let calls = if case.rubric.is_some() { 4 } else { 2 };
                let input = case.input.get();
                let prompt = assemble_layers(workspace, &skill, &rules, Some(input)).prompt;
                let tokens = (prompt.len() + input.len()) as u64 / BYTES_PER_TOKEN * calls;
                let cost = llm.estimate(tokens, USUAL_ANSWER * calls);
                plan.cost_usd = plan.cost_usd.zip(cost).map(|(a, b)| dollars(a + b));
                plan.calls += usize::try_from(calls).unwrap_or(usize::MAX);
            }
            if !plan.models.iter().any(|model| model == llm.model()) {
                plan.models.push(llm.model().to_owned());
            }
        }
        plan.groups.push(Group {
            skill,
            chosen,
            cases,
        });
    }
    if plan.calls > max_calls {
        #[expect(clippy::cast_precision_loss, reason = "an estimate, of few calls")]
        let share = max_calls as f64 / plan.calls as f64;
        plan.cost_usd = plan.cost_usd.map(|cost| dollars(cost * share));
        plan.calls = max_calls;
    }
    Ok(plan)
}

/// Runs a plan. `on_case` receives the number of finished cases, and the total.
pub async fn test(
    workspace: &Workspace,
    plan: TestPlan,
    on_case: &mut (dyn FnMut(usize, usize) + Send),
) -> Result<TestReport, Error> {
    let mut report = TestReport::default();
    let mut meter = Meter {
        left: plan.max_calls,
        calls: 0,
        cost: Some(0.0),
    };
    on_case(0, plan.cases);
    for group in &plan.groups {
        for CaseFile { id, case } in &group.cases {
            let done = match case {
                Ok(case) => test_case(workspace, group, case, &mut meter, &mut report).await?,
                Err(reason) => CaseReport {
                    status: Status::Failed,
                    reason: format!("the file is no case: {reason}"),
                    ..CaseReport::skipped(id, &group.skill.path)
                },
            };
            match done.status {
                Status::Passed => report.passed += 1,
                Status::Failed => report.failed += 1,
                Status::Worthless => report.worthless += 1,
                Status::Skipped => report.skipped += 1,
            }
            report.cases.push(done);
            on_case(report.cases.len(), plan.cases);
        }
    }
    report.calls = meter.calls;
    report.cost_usd = meter.cost.map(dollars);
    Ok(report)
}

fn rules_of(workspace: &Workspace, path: &SkillPath) -> Result<Vec<Reflexion>, Error> {
    let of_skill = Selection::of(path);
    let mut rules = workspace.store.list::<Reflexion>(&of_skill)?.records;
    mark_observed(&workspace.store, &mut rules);
    Ok(rules)
}

/// Runs one case, and stores its result for the rules.
async fn test_case(
    workspace: &Workspace,
    group: &Group,
    case: &Case,
    meter: &mut Meter,
    totals: &mut TestReport,
) -> Result<CaseReport, Error> {
    let mut report = CaseReport {
        correction_id: Some(case.correction_id.clone()),
        reflexion_id: Some(case.reflexion_id.clone()),
        ..CaseReport::skipped(&case.id, &group.skill.path)
    };
    let rules = rules_of(workspace, &group.skill.path)?;
    let is_own = |rule: &&Reflexion| rule.reflexion_id == case.reflexion_id;
    let Some(rule) = rules.iter().find(is_own) else {
        report.reason = format!("its rule `{}` is gone", case.reflexion_id);
        return Ok(report);
    };
    if !case.tests(rule, &workspace.store)? {
        let (id, correction) = (&rule.reflexion_id, &case.correction_id);
        report.reflexion_id = None;
        report.reason =
            format!("its `{correction}` is of another memory, and `{id}` is another rule here");
        return Ok(report);
    }
    let rule = rule_in_force(&rules, rule);
    report.reflexion_id = Some(rule.reflexion_id.clone());
    let Chosen::Model(llm) = &group.chosen else {
        "a rule acts through a model's prompt, and no model is configured: --model"
            .clone_into(&mut report.reason);
        return Ok(report);
    };
    let prompt = assemble_layers(workspace, &group.skill, &rules, Some(case.input.get()));
    if let Some(omitted) = prompt.omitted.iter().find(|o| o.id == rule.reflexion_id) {
        let id = &rule.reflexion_id;
        report.reason = format!("`{id}` does not stand in the prompt: {}", omitted.reason);
        return Ok(report);
    }
    let mut trial = Trial {
        workspace,
        llm,
        group,
        case,
        meter,
    };
    match trial.judge(&rules, rule, &mut report).await {
        Ok(()) => {
            let mut writer = workspace.writer()?;
            credit(&mut writer, rule, &report)?;
            totals
                .warnings
                .extend(repair_warnings(writer.take_repairs()));
        }
        Err(stop) => {
            report.status = Status::Skipped;
            totals.unanswered += usize::from(stop.is_unanswered());
            report.reason = stop.to_string();
        }
    }
    Ok(report)
}

/// Files of the exported cases.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct TestExportReport {
    /// Number of cases that were exported.
    pub cases: usize,
    /// Files that hold them, relative to the project.
    pub files: Vec<String>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Exports the cases of one skill, or of all skills in the scope, to `DeepEval` and Promptfoo. Calls no model.
pub fn export_tests(
    workspace: &Workspace,
    skill: Option<&SkillPath>,
) -> Result<TestExportReport, Error> {
    let skills = workspace.skills()?;
    let mut report = TestExportReport::default();
    let mut writer = workspace.writer()?;
    for (path, cases) in cases_of(workspace, &skills, skill)? {
        let mut files = SkillFiles::of(&skills, &path, &mut writer);
        for file in cases {
            match file.case {
                Ok(case) => {
                    files.export(&case, &mut report.warnings)?;
                    report.cases += 1;
                }
                Err(reason) => {
                    let warning = format!("`{}` is no case: {reason}", file.id);
                    report.warnings.push(warning);
                }
            }
        }
        report.files.append(&mut files.changed);
    }
    report
        .warnings
        .extend(repair_warnings(writer.take_repairs()));
    report.files.sort();
    report.files.dedup();
    Ok(report)
}
