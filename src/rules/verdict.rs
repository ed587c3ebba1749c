//! Verdict of a person on an output: `accept` and `reject`.
//!
//! Invariant: the verdict is stored even if it cannot be counted. It is written before rules are counted, and a
//! rejection may be about no rule.

use serde::Serialize;
use serde_json::{Value, json};

use super::evidence::{Verdict, VerdictSource, at_fault, concerned, count_verdict};
use crate::model::error::message as chain;
use crate::model::{Correction, Execution, Kind, Outcome, Reflexion, SkillPath};
use crate::rules::place::neighbours::cosines;
use crate::store::Selection;
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, Workspace, repair_warnings};

/// Outcome of [`give_verdict()`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ReviewReport {
    /// Execution id.
    pub execution_id: String,
    /// Skill of the execution.
    pub skill: String,
    /// Outcome before the verdict.
    pub before: Outcome,
    /// Outcome after the verdict.
    pub outcome: Outcome,
    /// Reason for the verdict; `None` if none was given.
    pub reason: Option<String>,
    /// Rules that the rejection counts against.
    pub blamed: Vec<BlamedRule>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Records a verdict. `id` is an execution id, an id prefix, or `latest`. A rejection counts against the `named`
/// rules, or the one that the reason is about.
///
/// # Errors
///
/// [`Error::Refused`] if a named rule was not in the prompt or does not apply.
pub fn give_verdict(
    workspace: &Workspace,
    id: &str,
    outcome: Outcome,
    reason: Option<String>,
    named: &[String],
) -> Result<ReviewReport, Error> {
    let id = workspace.store.resolve(Kind::Execution, id, None)?;
    let (mut blamed, mut warnings) = (Vec::new(), Vec::new());
    if outcome == Outcome::Rejected {
        let rules = concerned(&workspace.store, &workspace.store.get(&id)?)?;
        let reason = reason.as_deref().unwrap_or_default();
        blamed = blame(workspace, &id, &rules, reason, named, &mut warnings)?;
    }
    let mut left_out = Vec::new();
    // The report shows the reason as it is stored.
    let reason = reason.map(|reason| {
        let redacted = memctl_redact::redact(&reason);
        left_out = redacted.found;
        redacted.text.into_owned()
    });
    let mut writer = workspace.writer()?;
    let execution: Execution = writer.store().get(&id)?;
    if outcome == Outcome::Accepted && execution.outcome == Outcome::Error {
        let message = format!("`{id}` failed, so it has no output to accept");
        let skill = &execution.skill;
        let hint = format!(
            "memctl show {id} has the error; others: memctl list executions; or run it again: memctl run {skill}"
        );
        return Err(Error::input(message, hint));
    }
    let mut changes: Vec<(&str, Value)> = Vec::new();
    if execution.outcome != outcome {
        changes.push(("outcome", json!(outcome)));
    }
    let before_by = VerdictSource::of(&execution.judged_by);
    if !execution.judged_by.is_empty() {
        changes.push(("judged_by", json!("")));
    }
    let notes = reason.clone().unwrap_or_default();
    if execution.reviewer_notes != notes {
        changes.push(("reviewer_notes", json!(notes)));
    }
    let blamed_ids: Vec<String> = blamed.iter().map(|rule| rule.id.clone()).collect();
    let stored = execution.rules_blamed.as_deref().unwrap_or_default();
    if outcome == Outcome::Rejected && *stored != blamed_ids {
        changes.push(("rules_blamed", json!(blamed_ids)));
    }
    if !changes.is_empty() {
        writer.update(Kind::Execution, &id, &changes)?;
    }
    let before = Verdict {
        outcome: &execution.outcome,
        by: before_by,
    };
    let now = Verdict {
        outcome: &outcome,
        by: VerdictSource::Person,
    };
    count_verdict(&mut writer, &execution, before, now, &blamed_ids)?;
    warnings.extend(repair_warnings(writer.take_repairs()));
    warnings.extend(redaction_warning(left_out));
    drop(writer);
    if let Ok(skill) = execution.skill.parse()
        && outcome == Outcome::Accepted
    {
        warnings.extend(correction_of(workspace, &skill, &id)?);
    }
    Ok(ReviewReport {
        execution_id: id,
        skill: execution.skill,
        before: execution.outcome,
        outcome,
        reason,
        blamed,
        warnings,
    })
}

/// Warns that an accepted execution was corrected.
fn correction_of(
    workspace: &Workspace,
    skill: &SkillPath,
    run: &str,
) -> Result<Option<String>, Error> {
    let of_skill = Selection::of(skill);
    let corrections = workspace.store.list::<Correction>(&of_skill)?.records;
    let newest = corrections.into_iter().rfind(|one| one.execution_id == run);
    Ok(newest.map(|one| {
        let id = one.correction_id;
        format!("`{run}` was corrected (`{id}`): it counts as wrong; run the skill again")
    }))
}

/// Rule that a rejection counts against.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct BlamedRule {
    /// Id of the rule.
    pub id: String,
    /// Ground for the blame.
    pub reason: &'static str,
}

/// Finds the rules that a rejection of an execution counts against, among those that apply to it.
fn blame(
    workspace: &Workspace,
    id: &str,
    rules: &[Reflexion],
    reason: &str,
    named: &[String],
    warnings: &mut Vec<String>,
) -> Result<Vec<BlamedRule>, Error> {
    let mut blamed: Vec<BlamedRule> = Vec::new();
    for name in named {
        let name = workspace.store.resolve(Kind::Reflexion, name, None)?;
        if !rules.iter().any(|rule| rule.reflexion_id == name) {
            let applied: Vec<&str> = rules.iter().map(|r| r.reflexion_id.as_str()).collect();
            let hint = match applied.join(", ").as_str() {
                "" => format!("memctl reject {id}; no rule applied"),
                all => format!("memctl reject {id} --rule ID; rules that applied: {all}"),
            };
            let why = format!("`{name}` was not in the prompt of `{id}`, or does not apply to it");
            return Err(Error::input(why, hint));
        }
        if blamed.iter().all(|one| one.id != name) {
            let reason = "you named it";
            blamed.push(BlamedRule { id: name, reason });
        }
    }
    if named.is_empty() && !rules.is_empty() {
        let texts: Vec<&str> = rules.iter().map(|rule| rule.rule.as_str()).collect();
        let near = match reason.trim() {
            "" => Ok(Vec::new()),
            _ => cosines(reason, &texts),
        };
        // A verdict is worth more than its blame: without vectors, the words decide.
        let cosines = near.as_deref().unwrap_or_default();
        if let Some((at, reason)) = at_fault(reason, rules, cosines) {
            let id = rules[at].reflexion_id.clone();
            blamed.push(BlamedRule { id, reason });
        }
        let warn = |error| format!("no rule was compared by meaning: {}", chain(&error));
        warnings.extend(near.err().map(warn));
    }
    Ok(blamed)
}
