//! First stage: redacts and stores the correction, before anything else can fail.

use serde_json::value::{RawValue, to_raw_value};

use super::CorrectOptions;
use crate::model::{AGENT, Correction, Execution, Kind, Record as _, Reflexion, Trust};
use crate::rules::correct::remark;
use crate::rules::evidence::count_correction;
use crate::rules::place::{own_rules, rule_in_force, stems_from};
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, Workspace, raw, repair_warnings};
use crate::store::{Selection, Writer};

/// Correction that was stored.
#[derive(Debug)]
pub(super) struct Stored {
    /// Redacted options.
    pub(super) options: CorrectOptions,
    /// Corrected execution, redacted; `None` without one.
    pub(super) execution: Option<Execution>,
    /// Stored correction: a new one, or the one with the same text.
    pub(super) correction: Correction,
    /// Non-fatal problems.
    pub(super) warnings: Vec<String>,
}

/// Checks, redacts and stores a correction, or takes the stored one with the same text. Returns it
/// with the rule in force that it made before; `None` for a new correction.
pub(super) fn store(
    workspace: &Workspace,
    mut options: CorrectOptions,
) -> Result<(Stored, Option<Reflexion>), Error> {
    workspace.permit(&options.skill)?;
    let redacted = clean(&mut options);
    if memctl_redact::says_nothing(options.correction.trim()) {
        let hint = "say what should change: --correction \"…\"";
        return Err(Error::input("the correction is empty", hint));
    }
    let mut execution = execution_of(workspace, &options)?;
    // Data files of other programs may hold secrets, which no model may see.
    if let Some(run) = &mut execution {
        for json in [&mut run.input_summary, &mut run.output_summary] {
            clean_json(json);
        }
    }
    let mut warnings: Vec<String> = redaction_warning(redacted).into_iter().collect();
    let of_skill = Selection::of(&options.skill);
    let mut writer = workspace.writer()?;
    let words = options.correction.trim();
    let before = writer.store().list::<Correction>(&of_skill)?.records;
    let execution_id = execution.as_ref().map_or("", |run| &run.execution_id);
    let same = before
        .into_iter()
        .find(|c| c.execution_id == execution_id && c.user_correction.trim() == words);
    // A correction from an agent counts against no rule until a person approves it.
    let (correction, rule, counts) = if let Some(existing) = same {
        let (existing, counts) = repeat(&mut writer, &options, existing)?;
        let rules = own_rules(writer.store(), &of_skill)?;
        let rule = rules
            .iter()
            .find(|rule| stems_from(rule, &existing))
            .map(|rule| rule_in_force(&rules, rule).clone());
        (existing, rule, counts)
    } else {
        let correction = Correction {
            correction_id: String::new(),
            execution_id: execution_id.to_owned(),
            skill: options.skill.to_string(),
            timestamp: workspace.timestamp(),
            original_output: execution
                .as_ref()
                .map(|run| run.output_summary.clone())
                .unwrap_or_default(),
            user_correction: options.correction.clone(),
            expected_output: options.expected.clone().or_else(|| {
                let run = execution.as_ref().filter(|_| !options.is_rule)?;
                value_of_remark(words, run)
            }),
            assertions: options.assertions.clone(),
            assertions_suffice: !options.assertions.is_empty(),
            source: if options.by_agent { AGENT } else { "" }.to_owned(),
            trust: String::new(),
        };
        let named = workspace
            .skills()
            .map_or(0, |skills| skills.highest_correction(&options.skill));
        let correction = writer.append_above(&correction, workspace.now, named)?;
        (correction, None, !options.by_agent)
    };
    warnings.extend(repair_warnings(writer.take_repairs()));
    drop(writer);
    if let Some(run) = execution.as_ref().filter(|_| counts) {
        warnings.extend(count_correction(workspace, run, options.correction.trim()));
    }
    let stored = Stored {
        options,
        execution,
        correction,
        warnings,
    };
    Ok((stored, rule))
}

/// Returns the output as a remark about this one says that it should have been.
fn value_of_remark(words: &str, run: &Execution) -> Option<Box<RawValue>> {
    let input = serde_json::from_str(run.input_summary.get()).ok()?;
    let output = serde_json::from_str(run.output_summary.get()).ok()?;
    let expected = remark::is_about_one_output(words, &input, &output)
        .then(|| remark::expected(words, &output))??;
    to_raw_value(&expected).ok()
}

/// Notes that a stored correction was made again: by a person after an agent, or with an expected
/// output. Returns it with `true` if it counts as evidence from now on.
fn repeat(
    writer: &mut Writer,
    options: &CorrectOptions,
    mut existing: Correction,
) -> Result<(Correction, bool), Error> {
    let is_adopted = !options.by_agent && existing.trust() < Trust::User;
    let is_observed = existing.trust() == Trust::Observed;
    let mut changes: Vec<(&str, Box<RawValue>)> = Vec::new();
    let mut removed: &[&str] = &[];
    if is_adopted {
        "user".clone_into(&mut existing.trust);
        changes.push(("trust", raw(&existing.trust)?));
    }
    if let Some(expected) = &options.expected
        && (!options.by_agent || is_observed)
    {
        changes.push(("expected_output", expected.clone()));
        existing.expected_output = Some(expected.clone());
    } else if is_adopted {
        // The output that the agent expected is not the person's word.
        existing.expected_output = None;
        removed = &["expected_output"];
    }
    if !options.assertions.is_empty() && !options.by_agent {
        existing.assertions.clone_from(&options.assertions);
        existing.assertions_suffice = true;
        changes.push(("assertions", raw(&existing.assertions)?));
        changes.push(("assertions_suffice", raw(&true)?));
    }
    if !changes.is_empty() {
        let id = &existing.correction_id;
        let shared = writer.update_without(Kind::Correction, id, &changes, removed)?;
        existing.correction_id = shared.id;
    }
    Ok((existing, is_adopted))
}

/// Returns the execution to correct; `None` if the correction names none. Fails if it belongs to
/// another skill: its rule would be stored under the wrong skill.
fn execution_of(
    workspace: &Workspace,
    options: &CorrectOptions,
) -> Result<Option<Execution>, Error> {
    let Some(named) = &options.execution else {
        workspace.skill(&options.skill)?;
        return Ok(None);
    };
    let found = workspace
        .store
        .resolve(Kind::Execution, named, Some(&options.skill));
    if found.is_err() {
        // If the skill is misspelt as well, its error comes first.
        workspace.skill(&options.skill)?;
    }
    let id = found?;
    let execution: Execution = workspace.store.get(&id)?;
    if execution.skill == options.skill.to_string() {
        return Ok(Some(execution));
    }
    workspace.skill(&options.skill)?;
    let (actual, skill) = (&execution.skill, &options.skill);
    Err(Error::input(
        format!("`{id}` is an execution of `{actual}`, not of `{skill}`"),
        format!("memctl correct {actual} --execution-id {id} --correction \"…\""),
    ))
}

/// Redacts the options; returns the kinds of secrets found.
fn clean(options: &mut CorrectOptions) -> Vec<&'static str> {
    let redacted = memctl_redact::redact(&options.correction);
    let (text, mut found) = (redacted.text.into_owned(), redacted.found);
    options.correction = text;
    found.extend(options.expected.as_mut().into_iter().flat_map(clean_json));
    found
}

/// Redacts a JSON value; returns the kinds of secrets found.
fn clean_json(json: &mut Box<RawValue>) -> Vec<&'static str> {
    let redacted = memctl_redact::redact_json(json.get());
    let found = redacted.found;
    if !found.is_empty() {
        // Redacted JSON should still parse; if it does not, the value becomes null.
        *json = serde_json::from_str(&redacted.text).unwrap_or_default();
    }
    found
}
