//! Reverts files to their text before a change.
//!
//! Only two kinds of files are touched: those that corrections write, which are guardrails and
//! generated tests of skills, and the block with rules in a file of the workspace. The undo journal
//! names them and may be forged, so each path is checked as untrusted input, and a file of the
//! workspace changes in its block alone.

use std::path::{Component, Path, PathBuf};

use crate::model::SkillPath;
use crate::store::skill::Skills;
use crate::store::{Splice, Writer};
use crate::upkeep::exchange::agents_md;
use crate::upkeep::exchange::agents_md::block::differ_in_block;
use memctl_files::ProjectPath;

use crate::store::workspace::error::chain;
use crate::store::workspace::{Error, Workspace, redacting_writer};

/// File that an undo may write.
pub(crate) enum Target {
    /// File of the workspace with a block of rules.
    Workspace(ProjectPath),
    /// File of a skill that corrections write.
    Skill(PathBuf),
}

/// A file, its text now, and its text before; `None` for a missing file.
type Texts = (Target, Option<String>, Option<String>);

/// Returns a file with these splices reverted, the last one first.
pub(crate) fn file_before(
    workspace: &Workspace,
    path: &str,
    splices: &[Splice],
) -> Result<Texts, String> {
    let (now, place) = if let Some(place) = agents_md::of_journal(workspace, path) {
        let place = place.map_err(|error| chain(&error))?;
        let now = agents_md::read(&place).map_err(|error| chain(&error))?;
        (now, Target::Workspace(place))
    } else {
        let (now, place) = of_skill(workspace, path)?;
        (now, Target::Skill(place))
    };
    let mut text = now.clone();
    for splice in splices {
        text = match (text, &splice.before, &splice.after) {
            // The file is as before already.
            (None, None, _) => None,
            (Some(text), None, Some(after)) if text == *after => None,
            (None, Some(before), None) => Some(before.clone()),
            (Some(text), Some(_), Some(_)) => Some(splice.revert(&text)?),
            (None, _, _) => return Err("it is not there any more".to_owned()),
            (Some(_), _, _) => return Err("it has been changed since".to_owned()),
        };
    }
    let texts = [&now, &text].map(|text| text.as_deref().unwrap_or_default());
    if is_of_workspace(path) && !differ_in_block(texts[0], texts[1]) {
        return Err("more than the block with the rules would change".to_owned());
    }
    Ok((place, now, text))
}

/// Text and place of a file that corrections write.
fn of_skill(workspace: &Workspace, path: &str) -> Result<(Option<String>, PathBuf), String> {
    let skills = workspace.skills().map_err(|error| chain(&error))?;
    let place = place(&skills, path).map_err(|error| chain(&error))?;
    let place = place.ok_or("it is no file that corrections write")?;
    let now = skills.generated(&place).map_err(|error| chain(&error))?;
    Ok((now, place))
}

fn is_of_workspace(path: &str) -> bool {
    path.starts_with("./")
}

pub(crate) fn revert_file(
    workspace: &Workspace,
    writer: &mut Writer,
    path: &str,
    splices: &[Splice],
    dry_run: bool,
) -> Result<&'static str, Error> {
    let found = file_before(workspace, path, splices);
    let (place, now, before) = found.map_err(|reason| {
        let message = format!("`{path}` was not reverted: {reason}");
        Error::input(message, "memctl undo --list")
    })?;
    if now == before {
        return Ok("unchanged");
    }
    let did = if before.is_some() {
        "reverted"
    } else {
        "removed"
    };
    if !dry_run {
        writer.note_file(path, now.as_deref(), before.as_deref());
        match (&place, &before) {
            (Target::Workspace(file), Some(text)) => {
                redacting_writer::replace_in_project(file, text)?;
            }
            (Target::Workspace(file), None) => redacting_writer::remove_in_project(file)?,
            (Target::Skill(path), Some(text)) => {
                let skills = workspace.skills()?;
                redacting_writer::replace(skills.directory(), path, text)?;
            }
            (Target::Skill(path), None) => {
                redacting_writer::remove(workspace.skills()?.directory(), path)?;
            }
        }
    }
    Ok(did)
}

/// Resolves a path of the undo journal; `None` if corrections write no such file.
fn place(skills: &Skills, path: &str) -> Result<Option<PathBuf>, Error> {
    let mut parts = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
            _ => return Ok(None),
        }
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    Ok(match parts.as_slice() {
        [domain, "GUARDRAILS.md"] => Some(skills.place_in_domain(domain, "GUARDRAILS.md")?),
        [domain, skill, "GUARDRAILS.md"] => {
            let skill: SkillPath = format!("{domain}/{skill}").parse()?;
            Some(skills.place(&skill, Path::new("GUARDRAILS.md"))?)
        }
        [domain, skill, "tests", "generated", name] => {
            let skill: SkillPath = format!("{domain}/{skill}").parse()?;
            Some(skills.place(&skill, &Path::new("tests/generated").join(name))?)
        }
        _ => None,
    })
}
