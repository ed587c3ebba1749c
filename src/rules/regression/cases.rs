//! Regression tests of a skill as files: written from corrections, read by `test`.
//!
//! A file that a person has edited is never overwritten. A test that cannot be written is a
//! warning: the correction and the rule are stored by then.

use std::path::{Path, PathBuf};

use memctl_files::{Reason, Refused};

use crate::model::{Correction, Execution, Reflexion, SkillPath};
use crate::rules::regression::case::Case;
use crate::rules::regression::{case, export};
use crate::store::Writer;
use crate::store::skill::{MAX_BYTES, Skills};
use crate::store::workspace::error::chain;
use crate::store::workspace::{Error, Workspace, redacting_writer};

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

impl Workspace {
    /// Writes the regression test of a correction, if its skill exists. Returns the files that hold
    /// it.
    pub(crate) fn write_tests(
        &self,
        correction: &Correction,
        execution: &Execution,
        rule: &Reflexion,
        warnings: &mut Vec<String>,
    ) -> Vec<String> {
        let mut written = Vec::new();
        let result = (|| {
            let (Ok(skill), Ok(skills)) = (correction.skill.parse(), self.skills()) else {
                return Ok(());
            };
            let Some(case) = Case::new(correction, execution, rule) else {
                return Ok(());
            };
            if skills.load(&skill).is_err() {
                return Ok(());
            }
            let mut files = Files {
                skills: &skills,
                writer: self.writer()?,
            };
            write_case(&mut files, &skill, &case, &mut written)?;
            if self.settings.export_tests
                && let Some(case) = stored(&skills, &skill, &case)?
            {
                write(&mut files, &skill, &case, &mut written, warnings)?;
            }
            Ok(())
        })();
        if let Err(error) = result {
            let error: Error = error;
            warnings.push(format!("the test was not written: {}", chain(&error)));
        }
        written
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

/// Writes the file of a case, unless a person has edited it.
fn write_case(
    files: &mut Files<'_>,
    skill: &SkillPath,
    case: &Case,
    written: &mut Vec<String>,
) -> Result<(), Error> {
    let skills = files.skills;
    let (path, shown) = place(skills, skill, &format!("{}.json", case.id))?;
    // The assertions come from redacted text; the input is redacted as JSON.
    let text = case.render().map_err(crate::store::Error::from)?;
    let cleaned = memctl_redact::redact_json(&text);
    let text = if cleaned.found.is_empty() {
        text
    } else {
        let clean = serde_json::from_str::<Case>(&cleaned.text);
        clean
            .and_then(|case| case.render())
            .map_err(crate::store::Error::from)?
    };
    if text.len() as u64 > MAX_BYTES {
        let reason = Reason::TooLarge { limit: MAX_BYTES };
        return Err(crate::store::skill::Error::Refused(Refused { path, reason }).into());
    }
    files.update(
        &path,
        &text,
        skills.generated(&path)?.as_deref(),
        case::is_untouched,
    )?;
    written.push(shown);
    Ok(())
}

/// Stored form of a case; `None` if the file is broken or belongs to another skill, which
/// `test` reports.
fn stored(skills: &Skills, skill: &SkillPath, case: &Case) -> Result<Option<Case>, Error> {
    let (path, _) = place(skills, skill, &format!("{}.json", case.id))?;
    let text = skills.generated(&path)?.unwrap_or_default();
    let known = Case::parse(&case.id, &text).ok();
    Ok(known.filter(|known| known.skill == case.skill))
}

/// Path of a test file, and the path to show.
pub(crate) fn place(
    skills: &Skills,
    skill: &SkillPath,
    name: &str,
) -> Result<(PathBuf, String), Error> {
    let path = skills.place(skill, &Path::new(DIRECTORY).join(name))?;
    let shown = skills.shown(&path);
    Ok((path, shown))
}

/// Test files under the write lock.
pub(crate) struct Files<'a> {
    pub(crate) skills: &'a Skills,
    pub(crate) writer: Writer,
}

impl Files<'_> {
    /// Writes a file unless a person has edited it or its text is already equal.
    pub(crate) fn update(
        &mut self,
        path: &Path,
        text: &str,
        before: Option<&str>,
        is_untouched: impl Fn(&str) -> bool,
    ) -> Result<(), Error> {
        let ours = before.is_none_or(|before| is_untouched(before) && before != text);
        if ours {
            self.write(path, before, text)?;
        }
        Ok(())
    }

    pub(crate) fn write(
        &mut self,
        path: &Path,
        before: Option<&str>,
        text: &str,
    ) -> Result<(), Error> {
        let writer = Some(&mut self.writer);
        redacting_writer::change_of_skill(writer, self.skills, path, before, Some(text)).map(drop)
    }
}

/// Writes a stored case in the formats of other tools.
pub(crate) fn write(
    files: &mut Files<'_>,
    skill: &SkillPath,
    case: &Case,
    written: &mut Vec<String>,
    warnings: &mut Vec<String>,
) -> Result<(), Error> {
    let skills = files.skills;
    for (name, text) in export::helpers() {
        let (path, _) = place(skills, skill, name)?;
        let before = skills.generated(&path)?;
        files.update(&path, &text, before.as_deref(), export::is_untouched)?;
    }
    let (path, shown) = place(skills, skill, &format!("{}.py", case.id))?;
    let before = skills.generated(&path)?;
    files.update(
        &path,
        &export::deepeval(case),
        before.as_deref(),
        export::is_untouched,
    )?;
    written.push(shown);
    let (path, shown) = place(skills, skill, export::PROMPTFOO)?;
    let before = skills.generated(&path)?;
    let is_edited = |text: &str| !export::is_untouched(text);
    if let Some(text) = before.as_deref().filter(|text| is_edited(text)) {
        if !text.contains(&case.correction_id) {
            let id = &case.id;
            warnings.push(format!(
                "`{shown}` was edited by hand and stays without `{id}`: delete it, and it is written again"
            ));
        }
        return Ok(());
    }
    let text = export::promptfoo(&case.skill, &whole_cases(skills, skill)?);
    files.update(&path, &text, before.as_deref(), export::is_untouched)?;
    written.push(shown);
    Ok(())
}

/// Cases of a skill that can be read.
pub(crate) fn whole_cases(skills: &Skills, skill: &SkillPath) -> Result<Vec<Case>, Error> {
    let files = cases(skills, skill)?.into_iter();
    Ok(files.filter_map(|file| file.case.ok()).collect())
}
