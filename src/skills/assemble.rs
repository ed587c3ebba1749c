//! Assembles the prompt for the model of a skill.
//!
//! Approved procedures are compared with the input as `search` does it, by words and meaning. That loads the
//! embedder, so it happens only where there is an input and such a procedure. No hook assembles a prompt.

use serde::Serialize;

use crate::model::{
    Kind, Procedure, Record as _, Reflexion, SkillPath, Trust, push_values, split_origin,
};
use crate::notes::{FindOptions, Found, compare};
use crate::skills::prompt::{self, Assembly, Choice, Learned};
use crate::store::Selection;
use crate::store::skill::Skill;

use crate::rules::guardrails::is_pending;
use crate::rules::in_use::suspicion;
use crate::skills::approved_procedures::approved;
use crate::store::workspace::{Error, Workspace};

use crate::rules::in_use as active_rules;

/// Prompt, its parts, and the problems of the skill.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct PromptReport {
    /// Path of the skill.
    pub skill: SkillPath,
    /// Prompt and its parts.
    #[serde(flatten)]
    pub assembly: Assembly,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Returns the prompt of a skill, for this input if one is given.
pub fn prompt(
    workspace: &Workspace,
    skill: &SkillPath,
    input: Option<&str>,
) -> Result<PromptReport, Error> {
    let (_, skill) = workspace.skill(skill)?;
    let mut warnings: Vec<String> = skill.problems.iter().map(ToString::to_string).collect();
    let assembly = assemble(workspace, &skill, input, &mut warnings)?;
    // A displayed prompt is a read of its records. A run names them in the execution instead.
    let records = assembly.injected.iter();
    let read = records.map(|record| (record.kind, (record.id.as_str(), None)));
    count_procedures(workspace, &assembly);
    warnings.extend(workspace.note_read(read));
    Ok(PromptReport {
        skill: skill.path,
        assembly,
        warnings,
    })
}

/// Counts a retrieval of each procedure in a prompt.
pub(crate) fn count_procedures(workspace: &Workspace, assembly: &Assembly) {
    let ids = prompt::ids_of(&assembly.injected, Kind::Procedure);
    workspace
        .store
        .count_retrievals(ids.iter().map(String::as_str));
}

pub(crate) fn assemble(
    workspace: &Workspace,
    skill: &Skill,
    input: Option<&str>,
    warnings: &mut Vec<String>,
) -> Result<Assembly, Error> {
    let of_skill = Selection::of(&skill.path);
    let (rules, problems) = active_rules::rules(&workspace.store, &of_skill)?;
    warnings.extend(problems.iter().map(ToString::to_string));
    let shown = rules.iter();
    let shown = shown.filter(|rule| !rule.is_candidate() && !rule.observed);
    warnings.extend(shown.filter_map(suspicion));
    warnings.extend(untrusted(&rules));
    warnings.extend(rules.iter().filter(|rule| is_pending(rule)).map(|rule| {
        format!(
            "the guardrail of `{}` is not written yet: memctl doctor --repair",
            rule.reflexion_id
        )
    }));
    let (procedures, problems) = approved(&workspace.store, &Selection::default())?;
    warnings.extend(problems.iter().map(ToString::to_string));
    let near = match input.filter(|_| is_compared(&procedures, skill)) {
        Some(input) => near(workspace, input, warnings)?,
        None => Vec::new(),
    };
    let records = Records {
        rules,
        procedures: &procedures,
        near: &near,
    };
    let assembly = assemble_records(workspace, skill, records, input);
    let shown = assembly.injected.iter().map(|record| record.id.as_str());
    let shown: Vec<&str> = shown.collect();
    let suspicious = procedures
        .iter()
        .filter(|procedure| shown.contains(&procedure.procedure_id.as_str()))
        .filter_map(suspicion_of);
    warnings.extend(suspicious);
    Ok(assembly)
}

/// Maximum number of procedures that are compared with an input.
const COMPARED: usize = 100;
/// Maximum length of an input that is compared, in characters: more than the embedder reads.
const LONGEST: usize = 4_000;

/// Returns `true` if one of the procedures may be in the prompt of a skill.
fn is_compared(procedures: &[Procedure], skill: &Skill) -> bool {
    let path = skill.path.to_string();
    let mut skills = procedures.iter().map(|procedure| &procedure.skill);
    skills.any(|of| of.as_ref().is_none_or(|of| *of == path))
}

/// Returns the approved procedures near an input, with their scores.
fn near(
    workspace: &Workspace,
    input: &str,
    warnings: &mut Vec<String>,
) -> Result<Vec<(String, f64)>, Error> {
    let mut text = String::new();
    match serde_json::from_str(input) {
        // Names of fields say nothing about the task.
        Ok(json) => push_values(json, &mut text),
        Err(_) => text.push_str(input),
    }
    let text = memctl_redact::redact(&text).text;
    let text = memctl_redact::beginning(&text, LONGEST).into_owned();
    let mut options = FindOptions::new(text, COMPARED);
    options.filter.kind = Some(Kind::Procedure);
    options.filter.trust = Some(Trust::Approved);
    let found = compare(workspace, &options, None, &mut |_, _| {})?;
    warnings.extend(found.warnings);
    let near = found.results.iter();
    Ok(near
        .map(|found: &Found| (found.name(), found.score))
        .collect())
}

pub(crate) fn assemble_without_memory(workspace: &Workspace, skill: &Skill) -> Assembly {
    assemble_layers(workspace, skill, &[], None)
}

/// Assembles the prompt from these rules, within the token budget. It has no procedures, since
/// tests judge rules.
pub(crate) fn assemble_layers(
    workspace: &Workspace,
    skill: &Skill,
    rules: &[Reflexion],
    input: Option<&str>,
) -> Assembly {
    let records = Records {
        rules: rules.to_vec(),
        procedures: &[],
        near: &[],
    };
    assemble_records(workspace, skill, records, input)
}

/// Records for a prompt.
#[derive(Debug)]
struct Records<'a> {
    rules: Vec<Reflexion>,
    /// Approved procedures.
    procedures: &'a [Procedure],
    /// Their scores for the input, by id.
    near: &'a [(String, f64)],
}

fn assemble_records(
    workspace: &Workspace,
    skill: &Skill,
    records: Records<'_>,
    input: Option<&str>,
) -> Assembly {
    let path = skill.path.to_string();
    let choice = Choice {
        input,
        near: records.near,
        skill: &path,
        budget: workspace.settings.rules_tokens,
        procedures_budget: workspace.settings.procedures_tokens,
        now: workspace.now,
        fence: |text, nonce| memctl_redact::fence(&[text], nonce),
        nonce: &(workspace.random)(),
        refuses,
    };
    let directory = workspace.store.directory();
    let name = directory.file_name().unwrap_or(directory.as_os_str());
    let source = |kind: Kind| format!("{}/{}", name.display(), kind.file());
    let mut layers = skill.layers();
    for layer in &mut layers {
        clean(&mut layer.text);
    }
    // Data files from other programs or older versions may hold secrets.
    let mut rules = records.rules;
    for rule in &mut rules {
        clean(&mut rule.rule);
        clean(&mut rule.applies_when);
        clean(&mut rule.source);
    }
    let mut procedures = records.procedures.to_vec();
    for procedure in &mut procedures {
        let clean = memctl_redact::redact_json(procedure.data.get()).text;
        // Redacted JSON is valid JSON; if it were not, nothing of it would be shown.
        procedure.data = serde_json::from_str(&clean).unwrap_or_default();
    }
    let of_rules = Learned {
        records: &rules[..],
        source: &source(Kind::Reflexion),
    };
    let of_procedures = Learned {
        records: &procedures[..],
        source: &source(Kind::Procedure),
    };
    prompt::assemble(&layers, &of_rules, &of_procedures, &choice)
}

/// Warning about rules that the user has not approved.
fn untrusted(rules: &[Reflexion]) -> Option<String> {
    let (mut own, mut pulled) = (0, 0);
    for rule in rules.iter().filter(|rule| rule.observed) {
        match split_origin(&rule.reflexion_id).1 {
            Some(_) => pulled += 1,
            None => own += 1,
        }
    }
    let way = match (own, pulled) {
        (0, 0) => return None,
        (0, _) => "memctl trust --origin ORIGIN",
        _ => "memctl trust",
    };
    let count = own + pulled;
    let noun = if count == 1 { "rule is" } else { "rules are" };
    Some(format!(
        "{count} {noun} not yours, and shown to the model as data only; to look and decide: {way}"
    ))
}

/// Returns the reason why an unapproved rule must not be shown: it looks like a prompt injection.
fn refuses(rule: &Reflexion) -> Option<String> {
    if !rule.observed {
        return None;
    }
    let text = [&rule.rule, &rule.applies_when, &rule.source].map(String::as_str);
    let reason = memctl_redact::admit(&text.join("\n")).quarantine?;
    Some(format!(
        "nobody here stands behind it, and it is suspicious: {reason}"
    ))
}

/// Redacts a text for the prompt.
fn clean(text: &mut String) {
    if let std::borrow::Cow::Owned(cleaned) = memctl_redact::redact(text).text {
        *text = cleaned;
    }
}

/// Warning about a suspicious procedure that is in the prompt because a person approved it.
fn suspicion_of(procedure: &Procedure) -> Option<String> {
    let reason = memctl_redact::admit(&procedure.content()).quarantine?;
    let id = &procedure.procedure_id;
    Some(format!(
        "`{id}` is suspicious: {reason}; a person approved it, so it counts; if nobody did: memctl forget {id}"
    ))
}
