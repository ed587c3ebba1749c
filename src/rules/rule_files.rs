//! Files of a rule that leaves or gets a new text: guardrail sections and generated tests.
//!
//! Only text that is exactly as this program wrote it is removed or reworded. A text that a person
//! has edited stays, and a warning names its file. No failure here stops the change of the rule,
//! which is stored by then. The undo journal holds each change, except after a permanent deletion.
//!
//! Deliberately absent: tests of a rule that another one replaces. They stay with the rule that
//! holds.

use std::path::Path;

use serde::Serialize;

use crate::model::{Reflexion, SkillPath};
use crate::rules::regression::case::{self, Case};
use crate::rules::regression::export;
use crate::store::skill::Skills;
use crate::store::skill::guardrails::Guardrail;
use crate::store::{Selection, Writer};

use crate::rules::guardrails::guardrail_of;
use crate::rules::regression::cases::{place, whole_cases};
use crate::store::workspace::error::chain;
use crate::store::workspace::redacting_writer;
use crate::store::workspace::{Error, Workspace};

/// Files that changed with a rule.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct RuleFiles {
    /// Guardrail files without the section of the rule, or with its new text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guardrails: Vec<String>,
    /// Files without the tests of the rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
}

impl Workspace {
    /// Removes the guardrails and tests of a deleted rule, and of the rules merged into it.
    /// `for_good` leaves nothing to revert.
    pub(crate) fn remove_files_of(
        &self,
        writer: &mut Writer,
        rule: &Reflexion,
        for_good: bool,
        warnings: &mut Vec<String>,
    ) -> RuleFiles {
        let mut files = RuleFiles::default();
        let (Ok(skills), Ok(skill)) = (self.skills(), rule.skill.parse()) else {
            return files;
        };
        let rules = with_merged(writer, rule, &skill);
        let mut leaving = Leaving {
            skills: &skills,
            skill: &skill,
            writer,
            for_good,
            changed: Vec::new(),
            warnings,
        };
        for rule in &rules {
            leaving.guardrails(rule, None);
        }
        files.guardrails = std::mem::take(&mut leaving.changed);
        files.guardrails.sort_unstable();
        files.guardrails.dedup();
        leaving.tests(&rules);
        files.tests = leaving.changed;
        files.tests.sort_unstable();
        files.tests.dedup();
        files
    }

    /// Removes the guardrail of a rule that another one replaces, or rewords it as `new`. Returns
    /// the changed files.
    pub(crate) fn change_guardrail(
        &self,
        writer: &mut Writer,
        rule: &Reflexion,
        new: Option<&Reflexion>,
        warnings: &mut Vec<String>,
    ) -> Vec<String> {
        let (Ok(skills), Ok(skill)) = (self.skills(), rule.skill.parse()) else {
            return Vec::new();
        };
        let mut leaving = Leaving {
            skills: &skills,
            skill: &skill,
            writer,
            for_good: false,
            changed: Vec::new(),
            warnings,
        };
        leaving.guardrails(rule, new);
        leaving.changed
    }
}

/// Returns the rule and the rules that were merged into it.
fn with_merged(writer: &Writer, rule: &Reflexion, skill: &SkillPath) -> Vec<Reflexion> {
    let of_skill = Selection::of(skill);
    let listed = writer.store().list::<Reflexion>(&of_skill);
    let mut others = listed.map(|listed| listed.records).unwrap_or_default();
    let mut found = vec![rule.clone()];
    let mut at = 0;
    while let Some(kept) = found.get(at).cloned() {
        // A rule is taken out when it is found, since links written by hand may form a cycle.
        found.extend(others.extract_if(.., |other| kept.has_taken_over(other)));
        at += 1;
    }
    found
}

/// Removal of the files of one skill, under the write lock.
struct Leaving<'a> {
    skills: &'a Skills,
    skill: &'a SkillPath,
    writer: &'a mut Writer,
    for_good: bool,
    changed: Vec<String>,
    warnings: &'a mut Vec<String>,
}

impl Leaving<'_> {
    fn guardrails(&mut self, rule: &Reflexion, new: Option<&Reflexion>) {
        let id = &rule.correction_id;
        let files = match self.skills.guardrail_files(self.skill) {
            Ok(files) => files,
            Err(error) => {
                let why = chain(&error);
                self.warnings
                    .push(format!("the guardrail of `{id}` stays as it was: {why}"));
                return;
            }
        };
        let old = guardrail_of(rule);
        let new = new.map(guardrail_of);
        for path in files {
            let shown = self.shown(&path);
            match self.guardrail(&path, &old, new.as_ref()) {
                Ok(is_left) if is_left => self.warnings.push(format!(
                    "the guardrail of `{id}` in `{shown}` differs from the rule and stays as it was: edit it there"
                )),
                Ok(_) => {}
                Err(error) => self.warnings.push(format!(
                    "the guardrail of `{id}` in `{shown}` stays as it was: {}",
                    chain(&error)
                )),
            }
        }
    }

    /// Changes one file; `true` if an edited section stays.
    fn guardrail(
        &mut self,
        path: &Path,
        old: &Guardrail<'_>,
        new: Option<&Guardrail<'_>>,
    ) -> Result<bool, Error> {
        let (before, rewritten) = self.skills.rewrite_guardrail(path, old, new)?;
        if let Some(text) = &rewritten.text {
            self.change(path, &before, Some(text))?;
        }
        Ok(rewritten.is_left)
    }

    /// Removes the tests of these rules.
    fn tests(&mut self, rules: &[Reflexion]) {
        let cases = match self.skills.case_files(self.skill) {
            Ok(cases) => cases,
            Err(error) => {
                let why = chain(&error);
                self.warnings
                    .push(format!("the tests of the rule stay: {why}"));
                return;
            }
        };
        let mut gone = Vec::new();
        for path in cases {
            if let Err(error) = self.test(&path, rules, &mut gone) {
                let (shown, why) = (self.shown(&path), chain(&error));
                self.warnings
                    .push(format!("the test `{shown}` stays: {why}"));
            }
        }
        if !gone.is_empty()
            && let Err(error) = self.promptfoo(&gone).and_then(|()| self.helpers())
        {
            self.warnings.push(chain(&error));
        }
    }

    /// Removes one case with its export to `DeepEval`, if it tests one of these rules, and adds its correction to
    /// `gone`.
    fn test(
        &mut self,
        path: &Path,
        rules: &[Reflexion],
        gone: &mut Vec<String>,
    ) -> Result<(), Error> {
        let id = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = self.skills.generated(path)?.unwrap_or_default();
        // `test` reports a broken file, or one that belongs to another skill.
        let Ok(case) = Case::parse(&id, &text) else {
            return Ok(());
        };
        let is_tested = |rule: &Reflexion| rule.reflexion_id == case.reflexion_id;
        if case.skill != self.skill.to_string() || !rules.iter().any(is_tested) {
            return Ok(());
        }
        if !case::is_untouched(&text) {
            self.edited(path);
            return Ok(());
        }
        self.change(path, &text, None)?;
        let (path, _) = place(self.skills, self.skill, &format!("{id}.py"))?;
        match self.skills.generated(&path)? {
            Some(text) if export::is_untouched(&text) => self.change(&path, &text, None)?,
            Some(_) => self.edited(&path),
            None => {}
        }
        gone.push(case.correction_id);
        Ok(())
    }

    /// Takes the tests of these corrections out of the Promptfoo file.
    fn promptfoo(&mut self, gone: &[String]) -> Result<(), Error> {
        let (path, shown) = place(self.skills, self.skill, export::PROMPTFOO)?;
        let Some(text) = self.skills.generated(&path)? else {
            return Ok(());
        };
        if !export::is_untouched(&text) {
            let left = gone.iter().filter(|id| text.contains(id.as_str()));
            self.warnings.extend(left.map(|id| {
                format!("`{shown}` was edited, and the test of `{id}` stays in it: delete it there")
            }));
            return Ok(());
        }
        match whole_cases(self.skills, self.skill)?.as_slice() {
            [] => self.change(&path, &text, None),
            left => self.change(&path, &text, Some(&export::promptfoo(&left[0].skill, left))),
        }
    }

    /// Removes the helper files of a skill without tests.
    fn helpers(&mut self) -> Result<(), Error> {
        let names = ["memctl_checks.py", "memctl_promptfoo.cjs"];
        let (promptfoo, _) = place(self.skills, self.skill, export::PROMPTFOO)?;
        let is_used = !self.skills.case_files(self.skill)?.is_empty()
            || self.skills.generated(&promptfoo)?.is_some()
            || self.skills.count_generated_of(self.skill) > 0;
        for name in names.into_iter().filter(|_| !is_used) {
            let (path, _) = place(self.skills, self.skill, name)?;
            if let Some(text) = self.skills.generated(&path)?
                && export::is_untouched(&text)
            {
                self.change(&path, &text, None)?;
            }
        }
        Ok(())
    }

    fn edited(&mut self, path: &Path) {
        let shown = self.shown(path);
        self.warnings.push(format!(
            "the test `{shown}` was edited and stays: delete it there"
        ));
    }

    /// Writes a file, or removes it without a text.
    fn change(&mut self, path: &Path, before: &str, text: Option<&str>) -> Result<(), Error> {
        self.skills.expect_writable(path)?;
        let writer = (!self.for_good).then_some(&mut *self.writer);
        redacting_writer::change_of_skill(writer, self.skills, path, Some(before), text)?;
        self.changed.push(self.shown(path));
        Ok(())
    }

    fn shown(&self, path: &Path) -> String {
        self.skills.shown(path)
    }
}
