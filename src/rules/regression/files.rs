//! Files of a rule in its skill: writes its section in the guardrail files and regression tests from corrections, reads
//! them for `test`, and removes them when the rule goes or gets a new text.
//!
//! A file that a person has edited is never overwritten or removed: only text exactly as this program wrote
//! it, of the same correction. A warning names such a file. No failure here stops the change of the rule, which is already stored. The
//! undo journal holds each change, except after a permanent deletion.
//!
//! Deliberately absent: removal of the tests of a rule that another one replaces. They stay with the rule in
//! force.

use std::path::{Path, PathBuf};

use memctl_files::{Reason, Refused};
use serde::Serialize;

use crate::model::error::message as chain;
use crate::model::{Correction, Execution, Reflexion, SkillPath};
use crate::rules::regression::case::{self, Case};
use crate::rules::regression::export;
use crate::store::skill::guardrails::{self, Guardrail};
use crate::store::skill::{self, MAX_BYTES, Skills};
use crate::store::workspace::redacting_writer;
use crate::store::workspace::{Error, Workspace};
use crate::store::{Selection, Writer};

/// Directory of the generated tests, relative to the skill.
const DIRECTORY: &str = "tests/generated";

/// Case file.
#[derive(Debug)]
pub(crate) struct CaseFile {
    /// File name without the extension.
    pub(crate) id: String,
    /// Parsed case, or the parse error.
    pub(crate) case: Result<Case, String>,
}

/// Advice for a guardrail that cannot be written.
const AGAIN: &str = "mend the file, then `memctl undo`, and correct it again";

/// Section of a rule in guardrail files.
pub(crate) fn guardrail_of(rule: &Reflexion) -> Guardrail<'_> {
    Guardrail {
        title: "",
        rule: &rule.rule,
        correction_id: &rule.correction_id,
    }
}

/// Files that changed with a rule.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct RuleFiles {
    /// Guardrail files without the section of the rule, or with its new text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guardrails: Vec<String>,
    /// Files without the tests of the rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
    /// `true` if only a judge decides the test that was written.
    #[serde(skip)]
    pub needs_judge: bool,
}

impl Workspace {
    /// Adds the guardrail of a new rule to all guardrail files of its skill; its own is created if there is none. A
    /// file that cannot be written loses no rule: a warning names it. `written` gets the files that hold it.
    pub(crate) fn write_guardrail(
        &self,
        rule: &Reflexion,
        written: &mut RuleFiles,
        warnings: &mut Vec<String>,
    ) {
        let (Ok(skill), Ok(skills)) = (rule.skill.parse(), self.skills()) else {
            return;
        };
        let done = self.writer().and_then(|mut writer| {
            let mut files = SkillFiles::of(&skills, &skill, &mut writer);
            let done = files.add_guardrail(rule, warnings);
            written.guardrails = files.changed;
            done
        });
        warnings.extend(done.err().map(|error| not_added(&error)));
    }

    /// Writes the regression test of a correction, if its skill exists. `written` gets the files that hold it.
    pub(crate) fn write_tests(
        &self,
        correction: &Correction,
        execution: &Execution,
        rule: &Reflexion,
        written: &mut RuleFiles,
        warnings: &mut Vec<String>,
    ) {
        let (Ok(skill), Ok(skills)) = (correction.skill.parse(), self.skills()) else {
            return;
        };
        let case = Case::new(correction, execution, rule);
        let Some(case) = case.filter(|_| skills.load(&skill).is_ok()) else {
            return;
        };
        let done = self.writer().and_then(|mut writer| {
            let mut files = SkillFiles::of(&skills, &skill, &mut writer);
            let done = files.write_case(&case).and_then(|()| {
                // A person may have edited the file: the export has what is in it.
                let stored = whole_cases(&skills, &skill)?.into_iter();
                let mut stored = stored.filter(|_| self.settings.export_tests);
                match stored.find(|stored| stored.id == case.id) {
                    Some(case) => files.export(&case, warnings),
                    None => Ok(()),
                }
            });
            written.needs_judge = case.rubric.is_some() && !files.changed.is_empty();
            written.tests = files.changed;
            done
        });
        if let Err(error) = done {
            warnings.push(format!("the test was not written: {}", chain(&error)));
        }
    }

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
        let mut leaving = SkillFiles::of(&skills, &skill, writer);
        leaving.for_good = for_good;
        for rule in &rules {
            leaving.change_guardrails(rule, None, warnings);
        }
        files.guardrails = std::mem::take(&mut leaving.changed);
        leaving.remove_tests(&rules, warnings);
        files.tests = leaving.changed;
        for all in [&mut files.guardrails, &mut files.tests] {
            all.sort_unstable();
            all.dedup();
        }
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
        let mut leaving = SkillFiles::of(&skills, &skill, writer);
        leaving.change_guardrails(rule, new, warnings);
        leaving.changed
    }
}

/// Reads the case files of a skill.
pub(crate) fn cases(skills: &Skills, skill: &SkillPath) -> Result<Vec<CaseFile>, Error> {
    let read = |path: PathBuf| {
        let id = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let case = skills
            .generated(&path)
            .map_err(|error| chain(&error))
            .and_then(|text| Case::parse(&id, &text.unwrap_or_default()))
            .and_then(|case| {
                if case.skill == skill.to_string() {
                    Ok(case)
                } else {
                    Err(format!("it is a case of `{}`", case.skill))
                }
            });
        CaseFile { id, case }
    };
    Ok(skills.case_files(skill)?.into_iter().map(read).collect())
}

/// Cases of a skill that can be read.
pub(crate) fn whole_cases(skills: &Skills, skill: &SkillPath) -> Result<Vec<Case>, Error> {
    let files = cases(skills, skill)?.into_iter();
    Ok(files.filter_map(|file| file.case.ok()).collect())
}

/// Generated files of a skill, under the write lock.
pub(crate) struct SkillFiles<'a> {
    pub(crate) skills: &'a Skills,
    pub(crate) skill: &'a SkillPath,
    writer: &'a mut Writer,
    /// Changes are final, and `undo` does not revert them.
    pub(crate) for_good: bool,
    /// Files that were written or removed, as they are shown.
    pub(crate) changed: Vec<String>,
}

impl<'a> SkillFiles<'a> {
    pub(crate) fn of(skills: &'a Skills, skill: &'a SkillPath, writer: &'a mut Writer) -> Self {
        Self {
            skills,
            skill,
            writer,
            for_good: false,
            changed: Vec::new(),
        }
    }

    /// Path of a test file, and its text if there is one.
    pub(crate) fn test(&self, name: &str) -> Result<(PathBuf, Option<String>), Error> {
        let skill = Path::new(self.skill.domain()).join(self.skill.name());
        let path = self.skills.place(&skill.join(DIRECTORY).join(name))?;
        let text = self.skills.generated(&path)?;
        Ok((path, text))
    }

    /// Writes the file of a case, unless a person has edited it.
    fn write_case(&mut self, case: &Case) -> Result<(), Error> {
        // The assertions come from redacted text; the input is redacted as JSON.
        let mut text = case.render()?;
        let cleaned = memctl_redact::redact_json(&text);
        if !cleaned.found.is_empty() {
            let clean = serde_json::from_str::<Case>(&cleaned.text);
            text = clean.and_then(|case| case.render())?;
        }
        let (path, before) = self.test(&format!("{}.json", case.id))?;
        let other = before
            .as_deref()
            .and_then(|text| Case::parse(&case.id, text).ok());
        if other.is_some_and(|other| !other.is_of(&case.correction_id, &case.created_at)) {
            let shown = self.skills.shown(&path);
            let message = format!("`{shown}` is a test of another memory: give it another name");
            return Err(Error::input(message, ""));
        }
        if text.len() as u64 > MAX_BYTES {
            let reason = Reason::TooLarge { limit: MAX_BYTES };
            return Err(skill::refused(&Refused { path, reason }));
        }
        self.update(&path, before.as_deref(), &text, case::is_untouched)
    }

    /// Writes a stored case in the formats of other tools.
    pub(crate) fn export(&mut self, case: &Case, warnings: &mut Vec<String>) -> Result<(), Error> {
        for (name, text) in export::helpers() {
            let (path, before) = self.test(name)?;
            self.update(&path, before.as_deref(), &text, export::is_untouched)?;
            // All skills share their text: they are no files of this case.
            self.changed.pop();
        }
        let (path, before) = self.test(&format!("{}.py", case.id))?;
        let text = export::deepeval(case);
        self.update(&path, before.as_deref(), &text, export::is_untouched)?;
        self.write_promptfoo(&[&case.correction_id], false, warnings)
    }

    /// Writes the Promptfoo file with the cases that there are, without a file after the last one. `changed` are the
    /// corrections whose tests came, or are gone: a warning names those for which an edited file is not right.
    fn write_promptfoo(
        &mut self,
        changed: &[&str],
        are_gone: bool,
        warnings: &mut Vec<String>,
    ) -> Result<(), Error> {
        let (path, before) = self.test(export::PROMPTFOO)?;
        if let Some(text) = before.as_deref().filter(|text| !export::is_untouched(text)) {
            let shown = self.skills.shown(&path);
            let wrong = changed.iter().filter(|id| text.contains(**id) == are_gone);
            warnings.extend(wrong.map(|id| {
                format!(
                    "`{shown}` was edited by hand and stays as it is for `{id}`: delete it, and it is written again"
                )
            }));
            return Ok(());
        }
        let cases = whole_cases(self.skills, self.skill)?;
        match cases.first() {
            Some(first) => {
                let text = export::promptfoo(&first.skill, &cases);
                self.update(&path, before.as_deref(), &text, export::is_untouched)
            }
            None if before.is_some() => self.change(&path, before.as_deref(), None),
            None => Ok(()),
        }
    }

    /// Writes a file unless a person has edited it or its text is already equal.
    fn update(
        &mut self,
        path: &Path,
        before: Option<&str>,
        text: &str,
        is_untouched: impl Fn(&str) -> bool,
    ) -> Result<(), Error> {
        let is_ours = |before: &str| is_untouched(before) && before != text;
        if before.is_none_or(is_ours) {
            return self.change(path, before, Some(text));
        }
        self.changed.push(self.skills.shown(path));
        Ok(())
    }

    /// Writes a file, or removes it without a text.
    fn change(
        &mut self,
        path: &Path,
        before: Option<&str>,
        text: Option<&str>,
    ) -> Result<(), Error> {
        self.skills.expect_writable(path)?;
        let writer = (!self.for_good).then_some(&mut *self.writer);
        redacting_writer::change_of_skill(writer, self.skills, path, before, text)?;
        self.changed.push(self.skills.shown(path));
        Ok(())
    }

    /// Adds the section of a new rule to the guardrail files.
    fn add_guardrail(&mut self, rule: &Reflexion, warnings: &mut Vec<String>) -> Result<(), Error> {
        let mut files = self.skills.guardrail_files(self.skill)?;
        if files.is_empty() && self.skills.load(self.skill).is_ok() {
            let own = Path::new(self.skill.domain()).join(self.skill.name());
            let own = self.skills.place(&own.join("GUARDRAILS.md"))?;
            files.push(own);
        }
        for path in files {
            if let Err(error) = self.add_section(&path, rule, warnings) {
                warnings.push(not_added(&error));
            }
        }
        Ok(())
    }

    fn add_section(
        &mut self,
        path: &Path,
        rule: &Reflexion,
        warnings: &mut Vec<String>,
    ) -> Result<(), Error> {
        let before = self.skills.generated(path)?;
        let text = before.as_deref().unwrap_or_default();
        if let Some(new) = guardrails::append(text, &guardrail_of(rule)) {
            return self.change(path, before.as_deref(), Some(&new));
        }
        if !text.contains(&rule.rule) {
            let (shown, id) = (self.skills.shown(path), &rule.correction_id);
            warnings.push(format!(
                "`{shown}` has another text as the guardrail of `{id}`, and stays as it is"
            ));
        }
        Ok(())
    }

    /// Removes the section of a rule from the guardrail files, or rewords it. An edited section stays.
    fn change_guardrails(
        &mut self,
        rule: &Reflexion,
        new: Option<&Reflexion>,
        warnings: &mut Vec<String>,
    ) {
        let (old, new) = (guardrail_of(rule), new.map(guardrail_of));
        let mut stays = |file: String, why: String| {
            let id = &rule.correction_id;
            warnings.push(format!(
                "the guardrail of `{id}`{file} stays as it was: {why}"
            ));
        };
        let files = self.skills.guardrail_files(self.skill);
        let files = files.unwrap_or_else(|error| {
            stays(String::new(), chain(&error));
            Vec::new()
        });
        for path in files {
            let done = self.skills.generated(&path).and_then(|before| {
                let before = before.unwrap_or_default();
                let rewritten = guardrails::rewrite(&before, &old, new.as_ref());
                if let Some(text) = &rewritten.text {
                    self.change(&path, Some(&before), Some(text))?;
                }
                Ok(rewritten.is_left)
            });
            let why = match done {
                Ok(false) => continue,
                Ok(true) => "it differs from the rule; edit it there".to_owned(),
                Err(error) => chain(&error),
            };
            stays(format!(" in `{}`", self.skills.shown(&path)), why);
        }
    }

    /// Removes the tests of these rules, and the helper files after the last test.
    fn remove_tests(&mut self, rules: &[Reflexion], warnings: &mut Vec<String>) {
        let cases = self.skills.case_files(self.skill).unwrap_or_else(|error| {
            warnings.push(format!("the tests of the rule stay: {}", chain(&error)));
            Vec::new()
        });
        let mut removed = Vec::new();
        for path in cases {
            match self.remove_test(&path, rules, warnings) {
                Ok(correction) => removed.extend(correction),
                Err(error) => {
                    let (shown, why) = (self.skills.shown(&path), chain(&error));
                    warnings.push(format!("the test `{shown}` stays: {why}"));
                }
            }
        }
        if removed.is_empty() {
            return;
        }
        let removed: Vec<&str> = removed.iter().map(String::as_str).collect();
        let done = self.write_promptfoo(&removed, true, warnings);
        warnings.extend(
            done.and_then(|()| self.remove_helpers())
                .err()
                .map(|error| chain(&error)),
        );
    }

    /// Removes one case with its export to `DeepEval`, if it tests one of these rules. Returns its correction.
    fn remove_test(
        &mut self,
        path: &Path,
        rules: &[Reflexion],
        warnings: &mut Vec<String>,
    ) -> Result<Option<String>, Error> {
        let id = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = self.skills.generated(path)?.unwrap_or_default();
        // `test` reports a broken file, or one that belongs to another skill.
        let Ok(case) = Case::parse(&id, &text) else {
            return Ok(None);
        };
        let mut rules = rules.iter();
        let is_tested = match rules.find(|rule| rule.reflexion_id == case.reflexion_id) {
            Some(rule) if case.skill == self.skill.to_string() => {
                case.tests(rule, self.writer.store())?
            }
            _ => false,
        };
        let is_gone =
            is_tested && self.remove_untouched(path, &text, case::is_untouched(&text), warnings)?;
        let (exported, of_export) = self.test(&format!("{id}.py"))?;
        if let Some(text) = of_export.filter(|_| is_gone) {
            self.remove_untouched(&exported, &text, export::is_untouched(&text), warnings)?;
        }
        Ok(is_gone.then_some(case.correction_id))
    }

    /// Removes a file, unless a person has edited it. Returns `true` if it is gone.
    fn remove_untouched(
        &mut self,
        path: &Path,
        text: &str,
        is_untouched: bool,
        warnings: &mut Vec<String>,
    ) -> Result<bool, Error> {
        if is_untouched {
            self.change(path, Some(text), None)?;
        } else {
            let shown = self.skills.shown(path);
            warnings.push(format!(
                "the test `{shown}` was edited and stays: delete it there"
            ));
        }
        Ok(is_untouched)
    }

    /// Removes the helper files of a skill without tests.
    fn remove_helpers(&mut self) -> Result<(), Error> {
        let is_used = self.skills.count_generated_of(self.skill) > 0;
        for (name, _) in export::helpers().into_iter().filter(|_| !is_used) {
            let (path, text) = self.test(name)?;
            if let Some(text) = text.filter(|text| export::is_untouched(text)) {
                self.change(&path, Some(&text), None)?;
            }
        }
        Ok(())
    }
}

fn not_added(error: &Error) -> String {
    format!("the guardrail was not added: {}; {AGAIN}", chain(error))
}

/// Returns the rule and the rules that were merged into it.
fn with_merged(writer: &Writer, rule: &Reflexion, skill: &SkillPath) -> Vec<Reflexion> {
    let of_skill = Selection::of(skill);
    let listed = writer.store().list::<Reflexion>(&of_skill);
    let mut others = listed.map(|listed| listed.records).unwrap_or_default();
    let mut found = vec![rule.clone()];
    let mut at = 0;
    while let Some(successor) = found.get(at).cloned() {
        // A found rule is removed from the list, since links written by hand may form a cycle.
        found.extend(others.extract_if(.., |other| successor.has_taken_over(other)));
        at += 1;
    }
    found
}
