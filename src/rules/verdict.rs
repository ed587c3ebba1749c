//! Accepts or rejects an execution: a person's verdict on it.

use serde::Serialize;
use serde_json::{Value, json};

use crate::model::{Execution, Kind, Outcome};
use crate::rules::credit::{Fault, at_fault};
use crate::rules::evidence;
use crate::rules::evidence::{VerdictSource, concerned};
use crate::rules::place::similar::cosines;
use crate::store::workspace::error::chain;
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

/// Rules of a prompt, and which of them a rejection counts against.
#[derive(Debug, Default)]
pub struct Blame {
    /// Rules that applied to the execution, each with its text.
    pub candidates: Vec<(String, String)>,
    /// Rules that the rejection counts against.
    pub blamed: Vec<BlamedRule>,
    /// Non-fatal problem.
    pub warning: Option<String>,
}

/// Rule that a rejection counts against.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct BlamedRule {
    /// Id of the rule.
    pub id: String,
    /// Ground for the blame.
    pub reason: &'static str,
}

/// Finds the rules that a rejection of an execution counts against: `named` ones, or the one that
/// the reason is about.
///
/// # Errors
///
/// [`Error::Refused`] if a named rule was not in the prompt or does not apply.
pub fn blame(
    workspace: &Workspace,
    execution: &str,
    reason: &str,
    named: &[String],
) -> Result<Blame, Error> {
    let id = workspace.store.resolve(Kind::Execution, execution, None)?;
    let execution: Execution = workspace.store.get(&id)?;
    let rules = concerned(&workspace.store, &execution)?;
    let mut found = Blame {
        candidates: rules
            .iter()
            .map(|rule| (rule.reflexion_id.clone(), rule.rule.clone()))
            .collect(),
        blamed: Vec::new(),
        warning: None,
    };
    for name in named {
        let name = &workspace.store.resolve(Kind::Reflexion, name, None)?;
        if found.blamed.iter().any(|known| known.id == *name) {
            continue;
        }
        if !rules.iter().any(|rule| rule.reflexion_id == *name) {
            let applied: Vec<&str> = rules.iter().map(|r| r.reflexion_id.as_str()).collect();
            let hint = match applied.first() {
                Some(first) => format!(
                    "memctl reject {id} --rule {first}; rules that applied: {}",
                    applied.join(", ")
                ),
                None => format!("memctl reject {id}; no rule applied"),
            };
            let message =
                format!("`{name}` was not in the prompt of `{id}`, or does not apply to it");
            return Err(Error::input(message, hint));
        }
        found.blamed.push(blamed(name, Fault::Named));
    }
    if named.is_empty() && !rules.is_empty() {
        let cosines = if reason.trim().is_empty() {
            Vec::new()
        } else {
            let texts: Vec<&str> = rules.iter().map(|rule| rule.rule.as_str()).collect();
            // A verdict is worth more than its blame: without vectors, the words decide.
            cosines(reason, &texts).unwrap_or_else(|error| {
                found.warning = Some(format!(
                    "no rule was compared by meaning: {}",
                    chain(&error)
                ));
                Vec::new()
            })
        };
        let fault = at_fault(reason, &rules, &cosines);
        found
            .blamed
            .extend(fault.map(|(at, fault)| blamed(&rules[at].reflexion_id, fault)));
    }
    Ok(found)
}

fn blamed(id: &str, fault: Fault) -> BlamedRule {
    BlamedRule {
        id: id.to_owned(),
        reason: match fault {
            Fault::Named => "you named it",
            Fault::Opposed => "the reason repeats it",
            Fault::Nearest => "the reason is about it",
            Fault::Alone => "no other rule applied",
        },
    }
}
