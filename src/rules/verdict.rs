//! Accepts or rejects an execution: a person's verdict on it.

use serde::Serialize;
use serde_json::{Value, json};

use crate::model::{Execution, Kind, Outcome};

use super::blame::{Blame, BlamedRule};
use crate::rules::evidence;
use crate::rules::evidence::VerdictSource;
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
    /// Guardrail files that could not be written before, and now hold the rules of the skill.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guardrails: Vec<String>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Records a verdict. `id` is an execution id, an id prefix, or `latest`. A rejection counts against
/// the rules that `blame` names.
pub fn give_verdict(
    workspace: &Workspace,
    id: &str,
    outcome: Outcome,
    reason: Option<String>,
    blame: Blame,
) -> Result<ReviewReport, Error> {
    let id = workspace.store.resolve(Kind::Execution, id, None)?;
    let mut left_out = Vec::new();
    // The report shows the reason as it is stored.
    let reason = reason.map(|reason| {
        let redacted = memctl_redact::redact(&reason);
        left_out = redacted.found;
        redacted.text.into_owned()
    });
    let mut writer = workspace.writer()?;
    let execution: Execution = writer.store().get(&id)?;
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
    let Blame {
        candidates, blamed, ..
    } = blame;
    let blamed_ids: Vec<String> = blamed.iter().map(|rule| rule.id.clone()).collect();
    // Without the field, every rule that applied was blamed.
    let is_known = match &execution.rules_blamed {
        Some(known) => *known == blamed_ids,
        None => candidates.iter().map(|(id, _)| id).eq(&blamed_ids),
    };
    if outcome == Outcome::Rejected && !is_known {
        changes.push(("rules_blamed", json!(blamed_ids)));
    }
    if !changes.is_empty() {
        writer.update(Kind::Execution, &id, &changes)?;
    }
    evidence::count_verdict(
        &mut writer,
        &execution,
        (&execution.outcome, before_by),
        (&outcome, VerdictSource::Person),
        &blamed_ids,
    )?;
    let mut warnings: Vec<String> = repair_warnings(writer.take_repairs()).collect();
    warnings.extend(redaction_warning(left_out));
    drop(writer);
    let guardrails = match execution.skill.parse() {
        Ok(skill) => workspace.finish_guardrails(&skill, &mut warnings),
        Err(_) => Vec::new(),
    };
    Ok(ReviewReport {
        execution_id: id,
        skill: execution.skill,
        before: execution.outcome,
        outcome,
        reason,
        blamed,
        guardrails,
        warnings,
    })
}
