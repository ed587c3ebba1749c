//! Writes the cases of skills as files of `DeepEval` and Promptfoo.

use serde::Serialize;

use crate::model::SkillPath;
use crate::rules::regression::cases::{Files, cases};
use crate::store::workspace::{Error, Workspace, repair_warnings};

/// Files of the exported cases.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct TestExportReport {
    /// Number of cases that were exported.
    pub cases: usize,
    /// Files that hold them, relative to the project.
    pub files: Vec<String>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Exports the cases of one skill, or of all skills in the scope. Calls no model.
pub fn export_tests(
    workspace: &Workspace,
    skill: Option<&SkillPath>,
) -> Result<TestExportReport, Error> {
    let skills = workspace.skills()?;
    let paths = match skill {
        Some(path) => {
            workspace.skill(path)?;
            vec![path.clone()]
        }
        None => skills.list()?.skills,
    };
    let mut report = TestExportReport::default();
    let mut files = Files {
        skills: &skills,
        writer: workspace.writer()?,
    };
    for path in paths {
        if skill.is_none() && workspace.permit(&path).is_err() {
            continue;
        }
        for file in cases(&skills, &path)? {
            let (written, warnings) = (&mut report.files, &mut report.warnings);
            match file.case {
                Ok(case) => {
                    crate::rules::regression::cases::write(
                        &mut files, &path, &case, written, warnings,
                    )?;
                    report.cases += 1;
                }
                Err(reason) => warnings.push(format!("`{}` is no case: {reason}", file.id)),
            }
        }
    }
    report
        .warnings
        .extend(repair_warnings(files.writer.take_repairs()));
    report.files.sort();
    report.files.dedup();
    Ok(report)
}
