//! Puts a candidate in force: by a person's approval, or by the same correction of a person.
//!
//! A correction that an agent passed on is stored like any other correction, with its source. Its rule is a candidate: searches
//! find it, but it is not in force. Once active it has the guardrail, the test and the evidence of a person's
//! correction.
//!
//! Other programs that read the file do not know candidates. For them a candidate has utility 0, as
//! a rule that must not be shown.

use serde_json::json;

use super::changes::{conflicts_of, replace_rule, update_rule};
use crate::model::error::message as chain;
use crate::model::{AGENT, Correction, Execution, Kind, Reflexion};
use crate::rules::RuleFiles;
use crate::rules::evidence::count_correction;
use crate::rules::reflect::Draft;
use crate::store::Writer;
use crate::store::workspace::{Error, Workspace};

/// Utility of a candidate, for readers that do not know candidates.
pub(crate) const UNUSED: f64 = 0.0;
/// Utility of a rule without evidence.
const UNKNOWN: f64 = 0.5;

/// Activates a candidate that a person approved.
pub(crate) fn activate(writer: &mut Writer, rule: &mut Reflexion) -> Result<(), Error> {
    let before = rule.clone();
    "active".clone_into(&mut rule.status);
    if rule.utility_score == Some(UNUSED) {
        rule.utility_score = Some(UNKNOWN);
    }
    update_rule(writer, &before, rule)?;
    writer.vouch(Kind::Reflexion, &rule.reflexion_id)
}

/// Activates a candidate whose correction a person repeated, with the text of `draft` if given.
pub(crate) fn adopt(
    writer: &mut Writer,
    rule: &mut Reflexion,
    correction: &Correction,
    draft: Option<(Draft, &str)>,
) -> Result<(), Error> {
    let before = rule.clone();
    "correction".clone_into(&mut rule.source);
    if let Some((draft, by)) = draft {
        rule.rule = draft.rule;
        rule.applies_when = draft.applies_when;
        rule.mistake = draft.mistake;
        rule.root_cause = draft.root_cause;
        rule.confidence = Some(draft.confidence);
        by.clone_into(&mut rule.distilled_by);
    }
    let id = &correction.correction_id;
    if rule.correction_id != *id {
        rule.also_corrected_by.retain(|other| other != id);
        rule.also_corrected_by
            .push(std::mem::replace(&mut rule.correction_id, id.clone()));
    }
    update_rule(writer, &before, rule)?;
    activate(writer, rule)
}

/// Applies the effects of a person's approval: counts the correction, and writes the guardrail
/// and the test.
pub(crate) fn follow_up(
    workspace: &Workspace,
    rule: &Reflexion,
    warnings: &mut Vec<String>,
) -> RuleFiles {
    for id in &rule.replaces {
        if let Err(error) = replace_rule(workspace, &rule.reflexion_id, id, warnings) {
            warnings.push(format!("`{id}` was not replaced: {}", chain(&error)));
        }
    }
    if rule.skill.is_empty() {
        return RuleFiles::default();
    }
    // The correction gets the id of a shared one before anything names it.
    let id = &rule.correction_id;
    let example = approve_correction(workspace, id, warnings).unwrap_or_else(|error| {
        warnings.push(format!("there is no test: {}", chain(&error)));
        None
    });
    let example = example.as_ref().map(|(correction, run)| (correction, run));
    let id = example.map_or(id, |(correction, _)| &correction.correction_id);
    let shared = Reflexion {
        correction_id: id.clone(),
        ..rule.clone()
    };
    let files = write_files(workspace, &shared, example, true, warnings);
    match conflicts_of(&workspace.store, rule) {
        Ok(conflicts) => warnings.extend(conflicts.into_iter().map(|conflict| {
            let id = conflict.id;
            format!("it contradicts `{id}`: {}; both stay", conflict.reason)
        })),
        Err(error) => warnings.push(chain(&error)),
    }
    files
}

/// Writes the guardrail of a rule that is new, and the regression test. Without an execution there is no input to test with.
pub(crate) fn write_files(
    workspace: &Workspace,
    rule: &Reflexion,
    example: Option<(&Correction, &Execution)>,
    is_new: bool,
    warnings: &mut Vec<String>,
) -> RuleFiles {
    let mut files = RuleFiles::default();
    if is_new {
        workspace.write_guardrail(rule, &mut files, warnings);
    }
    if let Some((correction, execution)) = example {
        workspace.write_tests(correction, execution, rule, &mut files, warnings);
    }
    files
}

/// Counts a correction passed on by an agent. Returns it with its execution; `None` with a warning if either is
/// missing. A rule from a chat has no correction, and nothing to test it with.
fn approve_correction(
    workspace: &Workspace,
    id: &str,
    warnings: &mut Vec<String>,
) -> Result<Option<(Correction, Execution)>, Error> {
    if id.is_empty() {
        return Ok(None);
    }
    let mut missing = || {
        warnings.push(format!(
            "there is no test: `{id}` or its execution is not there any more"
        ));
        Ok(None)
    };
    let mut writer = workspace.writer()?;
    let Some(entry) = writer.store().find(Kind::Correction, id)? else {
        return missing();
    };
    let mut correction: Correction = entry.parse()?;
    if correction.source == AGENT && correction.trust.is_empty() {
        let shared = writer.update(Kind::Correction, id, &[("trust", json!("approved"))])?;
        correction.correction_id = shared.id;
    }
    let Some(entry) = writer
        .store()
        .find(Kind::Execution, &correction.execution_id)?
    else {
        return missing();
    };
    let execution: Execution = entry.parse()?;
    drop(writer);
    let text = &correction.user_correction;
    warnings.extend(count_correction(workspace, &execution, text));
    Ok(Some((correction, execution)))
}
