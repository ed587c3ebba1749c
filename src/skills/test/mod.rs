//! Runs regression cases: each without and with its rule, beside all other rules.
//!
//! A case that fails without its rule and passes with it validates exactly that rule. A rule that
//! satisfies some demands of a case is validated in part. A case that passes without its rule proves nothing. If a case fails with its rule but passes with it alone,
//! the other rules are left out one at a time. The rule that breaks the case is named and loses
//! confidence. Each result is stored before the next case runs.
//!
//! Rules act through a prompt, so without a model no case runs. The only check is then whether a
//! case accepts the expected output.
//!
//! Out of scope: repeating a case until it passes, and recording the answers as executions.

mod credit;
mod export;
mod report;
pub(crate) mod rubric;
mod trial;
mod verdict;

use serde_json::Value;

use crate::model::{Correction, Kind, Reflexion, SkillPath};
use crate::rules::regression::case::Case;
use crate::store::{Scoped, Selection};
use credit::credit;
use memctl_llm::OnProgress;

use super::assemble::assemble_layers;
use crate::rules::place::rule_in_force;
use crate::rules::regression::cases::{CaseFile, cases as cases_of};
use crate::store::workspace::providers::Chosen;
use crate::store::workspace::{Error, Workspace, dollars, repair_warnings};

pub use export::{TestExportReport, export_tests};
pub use report::{CaseReport, Status, TestReport};
use trial::{Group, Meter, Stop, Trial};
pub use verdict::{OutputVerdict, decide_output};

/// Tokens of an answer, assumed for the cost estimate.
const USUAL_ANSWER: u64 = 500;
/// Bytes per token of a question, assumed for the cost estimate.
const BYTES_PER_TOKEN: u64 = 4;

/// Plan of a test run.
#[derive(Debug)]
pub struct TestPlan {
    /// Models to call: `provider/model`.
    pub models: Vec<String>,
    /// Number of model calls if every case passes, up to the maximum; a failing case may need more.
    pub calls: usize,
    /// Maximum number of model calls.
    pub max_calls: usize,
    /// Estimated cost of the planned calls in US dollars; `None` if a price is unknown.
    pub cost_usd: Option<f64>,
    /// Number of cases.
    pub cases: usize,
    groups: Vec<Group>,
}

/// Plans the cases and model calls of one skill, or of all skills in the scope.
pub async fn plan_tests(
    workspace: &Workspace,
    skill: Option<&SkillPath>,
    max_calls: usize,
) -> Result<TestPlan, Error> {
    let skills = workspace.skills()?;
    let paths = match skill {
        Some(path) => vec![path.clone()],
        None => skills.list()?.skills,
    };
    let mut plan = TestPlan {
        models: Vec::new(),
        calls: 0,
        max_calls,
        cost_usd: Some(0.0),
        cases: 0,
        groups: Vec::new(),
    };
    for path in paths {
        if skill.is_none() && workspace.permit(&path).is_err() {
            continue;
        }
        // A named skill must exist; otherwise only skills with cases count.
        let cases = match skill {
            Some(_) => {
                let (skills, _) = workspace.skill(&path)?;
                cases_of(&skills, &path)?
            }
            None => cases_of(&skills, &path)?,
        };
        if cases.is_empty() {
            continue;
        }
        let (_, skill) = workspace.skill(&path)?;
        let chosen = workspace.providers.choose(skill.model.as_deref()).await?;
        plan.cases += cases.len();
        if let Chosen::Model(llm) = &chosen {
            let rules = rules_of(workspace, &path)?;
            for case in cases.iter().filter_map(|file| file.case.as_ref().ok()) {
                let calls = if case.rubric.is_some() { 4 } else { 2 };
                let prompt =
                    assemble_layers(workspace, &skill, &rules, Some(case.input.get())).prompt;
                let bytes = (prompt.len() + case.input.get().len()) as u64;
                let tokens = bytes / BYTES_PER_TOKEN * calls;
                let cost = llm.estimate(tokens, USUAL_ANSWER * calls);
                plan.cost_usd = plan.cost_usd.zip(cost).map(|(a, b)| dollars(a + b));
                plan.calls += usize::try_from(calls).unwrap_or(usize::MAX);
            }
            if !plan.models.iter().any(|model| model == llm.model()) {
                plan.models.push(llm.model().to_owned());
            }
        }
        plan.groups.push(Group {
            path,
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
    progress: OnProgress<'_>,
) -> Result<TestReport, Error> {
    let mut report = TestReport::default();
    let mut meter = Meter {
        left: plan.max_calls,
        calls: 0,
        cost: Some(0.0),
        progress,
    };
    on_case(0, plan.cases);
    for group in &plan.groups {
        for CaseFile { id, case } in &group.cases {
            let done = match case {
                Ok(case) => test_case(workspace, group, case, &mut meter, &mut report).await?,
                Err(reason) => CaseReport {
                    status: Status::Failed,
                    reason: format!("the file is no case: {reason}"),
                    ..CaseReport::skipped(id, &group.path)
                },
            };
            match done.status {
                Status::Passed => report.passed += 1,
                Status::Partial => report.partial += 1,
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
    crate::rules::in_use::mark_observed(&workspace.store, &mut rules);
    Ok(rules)
}

/// Runs one case, and stores its result for the rules.
async fn test_case(
    workspace: &Workspace,
    group: &Group,
    case: &Case,
    meter: &mut Meter<'_>,
    totals: &mut TestReport,
) -> Result<CaseReport, Error> {
    let mut report = CaseReport {
        correction_id: Some(case.correction_id.clone()),
        reflexion_id: Some(case.reflexion_id.clone()),
        ..CaseReport::skipped(&case.id, &group.path)
    };
    let rules = rules_of(workspace, &group.path)?;
    let Some(rule) = rules
        .iter()
        .find(|rule| rule.reflexion_id == case.reflexion_id)
    else {
        report.reason = format!("its rule `{}` is gone", case.reflexion_id);
        return Ok(report);
    };
    let rule = rule_in_force(&rules, rule);
    report.reflexion_id = Some(rule.reflexion_id.clone());
    let Chosen::Model(llm) = &group.chosen else {
        (report.status, report.reason) = without_model(&workspace.store, case)?;
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
            credit(&mut writer, &rules, &report)?;
            totals
                .warnings
                .extend(repair_warnings(writer.take_repairs()));
        }
        Err(stop) => {
            report.status = Status::Skipped;
            report.reason = match stop {
                Stop::Capped => "the cap on calls is reached (--max-calls)".to_owned(),
                Stop::NoJudge(reason) => reason,
                Stop::Failed(reason) => {
                    totals.unanswered += 1;
                    reason
                }
            };
        }
    }
    Ok(report)
}

/// Returns the status of a case without a model, and the reason.
fn without_model(store: &Scoped, case: &Case) -> Result<(Status, String), Error> {
    let correction: Option<Correction> = match store.find(Kind::Correction, &case.correction_id)? {
        Some(_) => Some(store.get(&case.correction_id)?),
        None => None,
    };
    let expected = correction.and_then(|correction| correction.expected_output);
    let expected = expected.and_then(|json| serde_json::from_str::<Value>(json.get()).ok());
    let wrong = expected.as_ref().map(|expected| case.wrong(expected));
    let no_model = "a rule acts through a model's prompt, and no model is configured";
    Ok(match wrong {
        Some(wrong) if !wrong.is_empty() => (
            Status::Failed,
            format!(
                "the expected output does not pass: {}",
                wrong.into_values().collect::<Vec<_>>().join("; ")
            ),
        ),
        Some(_) if !case.assertions.is_empty() => (
            Status::Skipped,
            format!("{no_model}; the expected output passes"),
        ),
        _ => (Status::Skipped, no_model.to_owned()),
    })
}
