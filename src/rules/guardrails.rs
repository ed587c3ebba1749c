//! Keeps the guardrail files of a skill in sync with its rules.
//!
//! A file that cannot be written loses no rule. The rule records the pending file, and the next
//! correction of the skill retries it, as does `doctor --repair`. Until then prompts and `doctor`
//! report it.
//!
//! Deliberately absent: sections that a person has removed. Only sections that were never written
//! are retried.

use std::path::Path;

use serde_json::json;

use crate::model::{Kind, Reflexion, SkillPath};
use crate::store::skill::Skills;
use crate::store::skill::guardrails::Guardrail;
use crate::store::{Selection, Writer};
use memctl_files::named;

use crate::model::error::message as chain;
use crate::store::workspace::{Error, Workspace, redacting_writer};

/// Field of a rule that names the pending files.
const PENDING: &str = "guardrails_pending";

/// Advice for a file that cannot be written.
pub(crate) const AGAIN: &str =
    "it is tried again by the next correction, or by `memctl doctor --repair`";

impl Workspace {
    /// Writes the pending guardrails of a skill, and that of a new rule to all its files; its own is created if
    /// there is none. Returns the files that hold them now.
    pub(crate) fn write_guardrails(
        &self,
        skill: &SkillPath,
        new: Option<&Reflexion>,
        warnings: &mut Vec<String>,
    ) -> Vec<String> {
        let mut written = Vec::new();
        let done = (|| {
            let mut rules = self.pending_of(Some(skill))?;
            rules.extend(new.cloned());
            let Some(skills) = self.skills().ok().filter(|_| !rules.is_empty()) else {
                return Ok(());
            };
            let mut files = skills.guardrail_files(skill)?;
            if new.is_some() && files.is_empty() && skills.load(skill).is_ok() {
                files.push(skills.place(skill, Path::new("GUARDRAILS.md"))?);
            }
            let mut writer = self.writer()?;
            for rule in rules {
                let is_new = new.is_some_and(|new| new.reflexion_id == rule.reflexion_id);
                // Others may write the file that the pending names come from, so the names only select
                // among the files of the skill. A file that no longer exists needs no guardrail.
                let names = files.iter().filter_map(|file| name(&skills, file));
                let is_due = |name: &String| is_new || rule.guardrails_pending.contains(name);
                let names: Vec<String> = names.filter(is_due).collect();
                written.extend(write(
                    &mut writer,
                    &skills,
                    (&rule, is_new),
                    &names,
                    warnings,
                )?);
            }
            Ok::<_, Error>(())
        })();
        let trouble = done
            .err()
            .map(|error| format!("the guardrail was not added: {}", chain(&error)));
        warnings.extend(trouble);
        if new.is_none() {
            written.sort_unstable();
            written.dedup();
        }
        written
    }

    /// Rules in use with pending guardrails: of this skill, or of all with `None`.
    pub(crate) fn pending_of(&self, skill: Option<&SkillPath>) -> Result<Vec<Reflexion>, Error> {
        let selection = Selection::of(skill);
        let mut rules = self.store.list::<Reflexion>(&selection)?.records;
        rules.retain(is_pending);
        Ok(rules)
    }
}

/// Returns true if a rule is in use and has a pending guardrail.
pub(crate) fn is_pending(rule: &Reflexion) -> bool {
    !rule.guardrails_pending.is_empty() && rule.is_in_use()
}

/// Adds the section of a rule to these files, and records in the rule which files are pending.
fn write(
    writer: &mut Writer,
    skills: &Skills,
    (rule, is_new): (&Reflexion, bool),
    names: &[String],
    warnings: &mut Vec<String>,
) -> Result<Vec<String>, Error> {
    let guardrail = guardrail_of(rule);
    let mut written = Vec::new();
    let mut pending = Vec::new();
    for named in names {
        let path = skills.directory().join(named);
        let done = (|| {
            if let Some(text) = skills.with_guardrail(&path, &guardrail)? {
                let before = skills.generated(&path)?;
                let before = before.as_deref();
                redacting_writer::change_of_skill(
                    Some(&mut *writer),
                    skills,
                    &path,
                    before,
                    Some(&text),
                )?;
                written.push(skills.shown(&path));
            } else if is_new {
                let text = skills.generated(&path)?.unwrap_or_default();
                let shown = skills.shown(&path);
                let id = &rule.correction_id;
                let other = format!(
                    "`{shown}` has another text as the guardrail of `{id}`, and stays as it is"
                );
                warnings.extend((!text.contains(&rule.rule)).then_some(other));
            }
            Ok::<_, Error>(())
        })();
        if let Err(error) = done {
            let why = chain(&error);
            warnings.push(format!("the guardrail was not added: {why}; {AGAIN}"));
            pending.push(named.clone());
        }
    }
    if pending != rule.guardrails_pending {
        let is_done = pending.is_empty();
        let changes = [(PENDING, json!(pending))];
        let changes = if is_done { &[] } else { &changes[..] };
        let removed = if is_done { &[PENDING][..] } else { &[] };
        writer.update_without(Kind::Reflexion, &rule.reflexion_id, changes, removed)?;
    }
    Ok(written)
}

/// Section of a rule in guardrail files.
pub(crate) fn guardrail_of(rule: &Reflexion) -> Guardrail<'_> {
    Guardrail {
        title: "",
        rule: &rule.rule,
        correction_id: &rule.correction_id,
    }
}

/// Path relative to the skills directory, as the rule records it.
fn name(skills: &Skills, file: &Path) -> Option<String> {
    file.starts_with(skills.directory()).then(|| {
        let named = named::relative(file, skills.directory());
        named.to_string_lossy().into_owned()
    })
}
