//! Differences that wait in files: guardrails that left their rule, and fields that a merge left open.

use std::collections::BTreeMap;

use crate::model::{Kind, Reflexion, SkillPath};
use crate::store::skill::guardrails::rule_in;
use crate::store::workspace::Workspace;
use crate::store::workspace::error::chain;
use crate::store::{Entry, raw_field};
use crate::upkeep::merge::open_fields;

use super::rules::about;
use super::waiting::{Waiting, WaitingKind};

/// Returns the guardrail sections whose rule line differs from the rule in use, and problems.
pub(super) fn guardrails(
    workspace: &Workspace,
    rules: &[Reflexion],
) -> (Vec<Waiting>, Vec<String>) {
    let (mut found, mut warnings) = (Vec::new(), Vec::new());
    let mut by_skill: BTreeMap<&str, Vec<&Reflexion>> = BTreeMap::new();
    let with_section = rules
        .iter()
        .filter(|rule| rule.is_in_use() && !rule.correction_id.is_empty());
    for rule in with_section {
        by_skill.entry(&rule.skill).or_default().push(rule);
    }
    let Ok(skills) = workspace.skills() else {
        return (found, warnings);
    };
    for (skill, rules) in by_skill {
        let Ok(skill) = skill.parse::<SkillPath>() else {
            continue;
        };
        let files = skills.guardrail_files(&skill).unwrap_or_default();
        for path in files {
            let text = match skills.generated(&path) {
                Ok(text) => text.unwrap_or_default(),
                Err(error) => {
                    warnings.push(chain(&error));
                    continue;
                }
            };
            let shown = skills.shown(&path);
            let differing = rules.iter().filter_map(|rule| {
                let line = rule_in(&text, &rule.correction_id)?;
                let is_same = line.split_whitespace().eq(rule.rule.split_whitespace());
                (!is_same).then(|| differs(rule, line, &shown))
            });
            found.extend(differing);
        }
    }
    (found, warnings)
}

fn differs(rule: &Reflexion, line: &str, file: &str) -> Waiting {
    let command = format!("memctl edit {}", rule.reflexion_id);
    let mut waiting = about(rule, WaitingKind::Guardrail, command);
    waiting.reason = format!("`{file}` says something else: prompts hold both");
    waiting.part("in the file", line);
    waiting.weight = [0.0; 3];
    waiting
}

/// Returns the entry about the fields of a record that a merge left open.
pub(super) fn merge_conflict(entry: &Entry, title: &str) -> Option<Waiting> {
    let text = String::from_utf8_lossy(&entry.text);
    let open = open_fields(&text);
    if open.is_empty() {
        return None;
    }
    let command = format!("memctl memory resolve {} --ours", entry.id);
    let mut waiting = Waiting::about(WaitingKind::Merge, entry.kind, &entry.id, command);
    title.clone_into(&mut waiting.title);
    let names: Vec<&str> = open
        .keys()
        .map(|name| name.trim_start_matches('/'))
        .collect();
    waiting.reason = format!("two branches differ in: {}", names.join(", "));
    for (name, theirs) in &open {
        let name = name.trim_start_matches('/');
        let ours = raw_field(&text, name).unwrap_or_default();
        waiting.part("here", &format!("{name}: {ours}"));
        waiting.part("merged branch", &format!("{name}: {theirs}"));
    }
    Some(waiting)
}

/// Kinds whose entries can have open fields and nothing else that waits.
pub(super) const OTHERS: [Kind; 3] = [Kind::Execution, Kind::Correction, Kind::Session];
