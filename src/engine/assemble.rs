//! Assembles the prompt for the model of a skill.

use serde::Serialize;

use crate::guard;
use crate::model::{Kind, Reflexion, SkillPath, split_origin};
use crate::prompt::{self, Assembly, Choice, Omitted};
use crate::skill::Skill;
use crate::store::Selection;

use crate::workspace::Error;
use crate::workspace::Workspace;
use crate::workspace::guardrails::is_pending;
use crate::workspace::rules as active_rules;

/// Prompt, its parts, and the problems of the skill.
#[derive(Debug, Serialize)]
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
    // A displayed prompt is a read of its rules. A run names its rules in the execution
    // instead.
    let rules = assembly.injected.iter();
    let read = rules.map(|rule| (Kind::Reflexion, (rule.id.as_str(), None)));
    warnings.extend(workspace.note_read(read));
    Ok(PromptReport {
        skill: skill.path,
        assembly,
        warnings,
    })
}

pub(crate) fn assemble(
    workspace: &Workspace,
    skill: &Skill,
    input: Option<&str>,
    warnings: &mut Vec<String>,
) -> Result<Assembly, Error> {
    let of_skill = Selection {
        skill: Some(&skill.path),
        newest: None,
    };
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
    // An execution gets its id at the end; until then its time and its input identify it.
    let unit = format!("{}\n{}", workspace.timestamp(), input.unwrap_or_default());
    let ids = rules.iter().map(|rule| rule.reflexion_id.clone());
    let share = workspace.settings.withhold;
    let withheld: Vec<String> = ids
        .filter(|id| share.withholds(&workspace.store, id, &unit))
        .collect();
    Ok(assemble_layers(workspace, skill, &rules, input, &withheld))
}

pub(crate) fn assemble_without_rules(workspace: &Workspace, skill: &Skill) -> Assembly {
    assemble_layers(workspace, skill, &[], None, &[])
}

/// Assembles the prompt from these rules, within the token budget and without the rules
/// withheld for the control group.
pub(crate) fn assemble_layers(
    workspace: &Workspace,
    skill: &Skill,
    rules: &[Reflexion],
    input: Option<&str>,
    withheld: &[String],
) -> Assembly {
    let choice = Choice {
        input,
        budget: workspace.settings.rules_tokens,
        now: workspace.now,
        withheld,
        fence: |text, nonce| guard::fence(&[text], nonce),
        nonce: &(workspace.random)(),
    };
    let directory = workspace.store.directory();
    let name = directory.file_name().unwrap_or(directory.as_os_str());
    let source = std::path::Path::new(name).join(Kind::Reflexion.file());
    let mut layers = skill.layers();
    for layer in &mut layers {
        clean(&mut layer.text);
    }
    // Data files from other programs or older versions may hold secrets.
    let mut rules = rules.to_vec();
    for rule in &mut rules {
        clean(&mut rule.rule);
        clean(&mut rule.applies_when);
        clean(&mut rule.source);
    }
    let suspicious = take_suspicious(&mut rules);
    let mut assembly = prompt::assemble(&layers, &rules, &source.display().to_string(), &choice);
    assembly.omitted.extend(suspicious);
    assembly
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

/// Removes unapproved rules that look like a prompt injection, and returns the reason for each.
fn take_suspicious(rules: &mut Vec<Reflexion>) -> Vec<Omitted> {
    let mut omitted = Vec::new();
    rules.retain(|rule| {
        let text = [&rule.rule, &rule.applies_when, &rule.source].map(String::as_str);
        let verdict = guard::admit(&text.join("\n"));
        let Some(reason) = verdict.quarantine.filter(|_| rule.observed) else {
            return true;
        };
        omitted.push(Omitted {
            id: rule.reflexion_id.clone(),
            status: "active",
            reason: format!("nobody here stands behind it, and it is suspicious: {reason}"),
        });
        false
    });
    omitted
}

/// Redacts a text for the prompt.
fn clean(text: &mut String) {
    if let std::borrow::Cow::Owned(cleaned) = guard::redact(text).text {
        *text = cleaned;
    }
}

/// Warning about a suspicious rule that is in the prompt because a person gave it.
pub(crate) fn suspicion(rule: &Reflexion) -> Option<String> {
    let text = format!("{}\n{}", rule.rule, rule.applies_when);
    let reason = guard::screen(&text).reason()?;
    let id = &rule.reflexion_id;
    if rule.is_candidate() {
        return Some(format!("`{id}` is suspicious: {reason}"));
    }
    Some(format!(
        "`{id}` is suspicious: {reason}; a person said it, so it counts; if nobody did: memctl memory forget {id}"
    ))
}
