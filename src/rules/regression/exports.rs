//! Regression cases as files of `DeepEval` and Promptfoo, beside the cases of a skill.
//!
//! They are written on request (`memctl test --export`) or where the setting `tests.export` asks for
//! them. A file that a person has edited keeps every byte; a new case is added at its end.

use crate::model::SkillPath;
use crate::rules::regression::case::Case;
use crate::rules::regression::export;

use super::cases::{Files, cases, place};
use crate::store::workspace::Error;

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
    match skills.generated(&path)? {
        Some(before) if !export::is_untouched(&before) => {
            if let Some(text) = export::append_to_promptfoo(&before, case) {
                files.write(&path, Some(&before), &text)?;
            } else if !before.contains(&case.correction_id) {
                warnings.push(format!(
                    "`{shown}` was edited by hand, and `{}` cannot be added to its end",
                    case.id
                ));
                return Ok(());
            }
        }
        before => {
            let longer = before
                .as_deref()
                .and_then(|before| export::extend_promptfoo(before, case));
            let text = if let Some(longer) = longer {
                longer
            } else {
                let files = cases(skills, skill)?.into_iter();
                let cases: Vec<Case> = files.filter_map(|file| file.case.ok()).collect();
                export::promptfoo(&case.skill, &cases)
            };
            files.update(&path, &text, before.as_deref(), |_| true)?;
        }
    }
    written.push(shown);
    Ok(())
}
