//! Assembles the prompt that a skill's model would get.

use serde::Serialize;

use crate::guard;
use crate::model::{Kind, Reflexion, SkillPath, split_origin};
use crate::prompt::{self, Assembly, Choice, Omitted};
use crate::skill::Skill;
use crate::store::Selection;

use super::guardrails::is_pending;
use super::{Engine, Error, shared};

/// A prompt, what it is made of, and what is wrong with the skill.
#[derive(Debug, Serialize)]
pub struct PromptReport {
    /// The skill.
    pub skill: SkillPath,
    /// The prompt and its parts.
    #[serde(flatten)]
    pub assembly: Assembly,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

impl Engine {
    /// The prompt of a skill; for this input, where one is given.
    pub fn prompt(&self, skill: &SkillPath, input: Option<&str>) -> Result<PromptReport, Error> {
        let (_, skill) = self.skill(skill)?;
        let mut warnings: Vec<String> = skill.problems.iter().map(ToString::to_string).collect();
        let assembly = self.assemble(&skill, input, &mut warnings)?;
        // Whoever looks at a prompt reads its rules; a run says in its execution which ones it had.
        let rules = assembly.injected.iter();
        let read = rules.map(|rule| (Kind::Reflexion, (rule.id.as_str(), None)));
        warnings.extend(self.note_read(read));
        Ok(PromptReport {
            skill: skill.path,
            assembly,
            warnings,
        })
    }

    pub(super) fn assemble(
        &self,
        skill: &Skill,
        input: Option<&str>,
        warnings: &mut Vec<String>,
    ) -> Result<Assembly, Error> {
        let of_skill = Selection {
            skill: Some(&skill.path),
            newest: None,
        };
        let (rules, problems) = shared::rules(&self.store, &of_skill)?;
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
        // An execution is named only when it is over; until then it is its time and its input.
        let unit = format!("{}\n{}", self.timestamp(), input.unwrap_or_default());
        let ids = rules.iter().map(|rule| rule.reflexion_id.clone());
        let share = self.settings.withhold;
        let withheld: Vec<String> = ids
            .filter(|id| share.withholds(&self.store, id, &unit))
            .collect();
        Ok(self.put_together(skill, &rules, input, &withheld))
    }

    pub(super) fn assemble_without_rules(&self, skill: &Skill) -> Assembly {
        self.put_together(skill, &[], None, &[])
    }

    /// The prompt with these rules, as far as there is room for them, and without those that are
    /// withheld to see whether they matter.
    pub(super) fn put_together(
        &self,
        skill: &Skill,
        rules: &[Reflexion],
        input: Option<&str>,
        withheld: &[String],
    ) -> Assembly {
        let choice = Choice {
            input,
            budget: self.settings.rules_tokens,
            now: self.now,
            withheld,
            fence: |text, nonce| guard::fence(&[text], nonce),
            nonce: &(self.random)(),
        };
        let directory = self.store.directory();
        let name = directory.file_name().unwrap_or(directory.as_os_str());
        let source = std::path::Path::new(name).join(Kind::Reflexion.file());
        let mut layers = skill.layers();
        for layer in &mut layers {
            clean(&mut layer.text);
        }
        // Files that other programs or older versions have written are cleaned on the way out.
        let mut rules = rules.to_vec();
        for rule in &mut rules {
            clean(&mut rule.rule);
            clean(&mut rule.applies_when);
            clean(&mut rule.source);
        }
        let suspicious = take_suspicious(&mut rules);
        let mut assembly =
            prompt::assemble(&layers, &rules, &source.display().to_string(), &choice);
        assembly.omitted.extend(suspicious);
        assembly
    }
}

/// What a person should know of rules that they do not stand behind.
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

/// Takes out the rules that nobody here stands behind and that speak to the model instead of stating a
/// rule; answers why.
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

/// Takes secrets out of a text that is about to stand in a prompt.
fn clean(text: &mut String) {
    if let std::borrow::Cow::Owned(cleaned) = guard::redact(text).text {
        *text = cleaned;
    }
}

/// What a person should know about a rule that stands in the prompt because a person said it.
pub(super) fn suspicion(rule: &Reflexion) -> Option<String> {
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
