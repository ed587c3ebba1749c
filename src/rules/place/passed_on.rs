//! Corrections passed on by an agent, until a person approves them.
//!
//! The correction is stored like any other, with its source. Its rule is a candidate: searches find
//! it, but it is not in force. A person activates it by its id, or by making the same correction.
//! The rule then gets the guardrail, the test and the evidence of a person's correction.
//!
//! Other programs that read the file do not know candidates. For them a candidate has utility 0, as
//! a rule that must not be shown.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::model::{AGENT, Correction, Execution, Kind, Reflexion, SkillPath};
use crate::rules::reflect::Draft;
use crate::store::{self, Writer};
use memctl_redact::composed;

use super::similar::{replace_rule, resolve_conflicts};
use crate::rules::evidence::count_correction;
use crate::store::workspace::error::chain;
use crate::store::workspace::{Error, Workspace};

/// Utility of a candidate, for readers that do not know candidates.
pub(crate) const UNUSED: f64 = 0.0;
/// Utility of a rule without evidence.
const UNKNOWN: f64 = 0.5;

/// Effects of activating a rule.
#[derive(Debug, Default)]
pub(crate) struct ActivationEffects {
    /// Guardrail files that the rule was added to.
    pub(crate) guardrails: Vec<String>,
    /// Files that hold the test of the rule.
    pub(crate) tests: Vec<String>,
}

/// Turns an agent's correction into that of the person who repeats it. The expected output given by
/// the agent is replaced or removed.
pub(crate) fn stand_for(
    writer: &mut Writer,
    known: &mut Correction,
    expected: Option<Box<RawValue>>,
) -> Result<(), Error> {
    "user".clone_into(&mut known.trust);
    known.expected_output = expected;
    let trust = to_raw_value(&known.trust).map_err(store::Error::from)?;
    let mut changes = vec![("trust", &trust)];
    let gone: &[&str] = match &known.expected_output {
        Some(expected) => {
            changes.push(("expected_output", expected));
            &[]
        }
        None => &["expected_output"],
    };
    let shared = writer.update_without(Kind::Correction, &known.correction_id, &changes, gone)?;
    known.correction_id = shared.id;
    Ok(())
}

/// Activates a candidate that a person approved.
pub(crate) fn lift(writer: &mut Writer, rule: &mut Reflexion) -> Result<(), Error> {
    become_active(writer, rule, Vec::new())
}

/// Activates a candidate whose correction a person repeated, with the text of `draft` if given.
pub(crate) fn adopt(
    writer: &mut Writer,
    rule: &mut Reflexion,
    correction: &Correction,
    draft: Option<(Draft, &str)>,
) -> Result<(), Error> {
    "correction".clone_into(&mut rule.source);
    let mut changes = vec![("source", json!(rule.source))];
    if let Some((draft, by)) = draft {
        rule.rule = draft.rule;
        rule.applies_when = draft.applies_when;
        rule.mistake = draft.mistake;
        rule.root_cause = draft.root_cause;
        rule.confidence = Some(draft.confidence);
        by.clone_into(&mut rule.distilled_by);
        changes.extend([
            ("rule", json!(rule.rule)),
            ("applies_when", json!(rule.applies_when)),
            ("mistake", json!(rule.mistake)),
            ("root_cause", json!(rule.root_cause)),
            ("confidence", json!(rule.confidence)),
            ("distilled_by", json!(rule.distilled_by)),
        ]);
    }
    if rule.correction_id != correction.correction_id {
        let before = rule.correction_id.clone();
        rule.also_corrected_by
            .retain(|id| *id != correction.correction_id);
        rule.also_corrected_by.push(before);
        rule.correction_id.clone_from(&correction.correction_id);
        changes.extend([
            ("correction_id", json!(rule.correction_id)),
            ("also_corrected_by", json!(rule.also_corrected_by)),
        ]);
    }
    become_active(writer, rule, changes)
}

fn become_active(
    writer: &mut Writer,
    rule: &mut Reflexion,
    mut changes: Vec<(&'static str, Value)>,
) -> Result<(), Error> {
    "active".clone_into(&mut rule.status);
    changes.push(("status", json!(rule.status)));
    if rule.utility_score == Some(UNUSED) {
        rule.utility_score = Some(UNKNOWN);
        changes.push(("utility_score", json!(UNKNOWN)));
    }
    rule.reflexion_id = writer
        .update(Kind::Reflexion, &rule.reflexion_id, &changes)?
        .id;
    Ok(writer.vouch(Kind::Reflexion, &rule.reflexion_id)?)
}

/// Notes that an agent passed a candidate on again, once per correction. The utility does not rise:
/// an agent can repeat itself at will.
pub(crate) fn count_again(
    writer: &mut Writer,
    rule: &mut Reflexion,
    correction: &str,
) -> Result<(), Error> {
    let known = rule.correction_id == correction
        || rule.also_corrected_by.iter().any(|id| id == correction);
    if known {
        return Ok(());
    }
    rule.also_corrected_by.push(correction.to_owned());
    let changes = [("also_corrected_by", json!(rule.also_corrected_by))];
    writer.update(Kind::Reflexion, &rule.reflexion_id, &changes)?;
    Ok(())
}

/// Returns `true` if two texts have the same words, ignoring case, white space and the two forms of
/// Unicode.
pub(crate) fn same_words(a: &str, b: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let text = composed(text);
        let words = text.split_whitespace();
        words.map(str::to_lowercase).collect()
    };
    words(a) == words(b)
}

/// Applies the effects of a person's approval: counts the correction, and writes the guardrail
/// and the test.
pub(crate) fn follow_up(
    workspace: &Workspace,
    rule: &Reflexion,
    warnings: &mut Vec<String>,
) -> ActivationEffects {
    let mut lifted = ActivationEffects::default();
    for id in &rule.replaces {
        if let Err(error) = replace_rule(workspace, &rule.reflexion_id, id, warnings) {
            warnings.push(format!("`{id}` was not replaced: {}", chain(&error)));
        }
    }
    let Ok(skill) = rule.skill.parse::<SkillPath>() else {
        return lifted;
    };
    // The correction gets the id of a shared one before anything names it.
    let corrected = approve_correction(workspace, &rule.correction_id, warnings);
    lifted.guardrails = workspace.finish_guardrails(&skill, warnings);
    lifted
        .guardrails
        .extend(workspace.add_guardrails(&skill, rule, warnings));
    match corrected {
        Ok(Some((correction, execution))) => {
            let rule = Reflexion {
                correction_id: correction.correction_id.clone(),
                ..rule.clone()
            };
            lifted.tests = workspace.write_tests(&correction, &execution, &rule, warnings);
        }
        // A rule from a chat has no correction, and nothing to test it with.
        Ok(None) if rule.correction_id.is_empty() => {}
        Ok(None) => warnings.push(format!(
            "there is no test: `{}` or its execution is not there any more",
            rule.correction_id
        )),
        Err(error) => warnings.push(format!("there is no test: {}", chain(&error))),
    }
    match resolve_conflicts(workspace, rule, &[], false, warnings) {
        Ok(conflicts) => warnings.extend(conflicts.into_iter().map(|conflict| {
            let id = conflict.id;
            format!("it contradicts `{id}`: {}; both stay", conflict.reason)
        })),
        Err(error) => warnings.push(chain(&error)),
    }
    lifted
}

/// Counts a correction passed on by an agent. Returns it with its execution, or `None` if
/// either is missing.
fn approve_correction(
    workspace: &Workspace,
    id: &str,
    warnings: &mut Vec<String>,
) -> Result<Option<(Correction, Execution)>, Error> {
    let mut writer = workspace.writer()?;
    if id.is_empty() || writer.store().find(Kind::Correction, id)?.is_none() {
        return Ok(None);
    }
    let mut correction: Correction = writer.store().get(id)?;
    if correction.source == AGENT && correction.trust.is_empty() {
        let shared = writer.update(Kind::Correction, id, &[("trust", json!("approved"))])?;
        correction.correction_id = shared.id;
    }
    let of = &correction.execution_id;
    if writer.store().find(Kind::Execution, of)?.is_none() {
        return Ok(None);
    }
    let execution: Execution = writer.store().get(of)?;
    drop(writer);
    let said = &correction.user_correction;
    warnings.extend(count_correction(workspace, &execution, said));
    Ok(Some((correction, execution)))
}
