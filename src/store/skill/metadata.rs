//! Skill from the metadata of its file: the settings that count, and remarks about the rest.
//!
//! Only a role that does not exist makes a skill unusable. Unknown keys are for other programs.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::model::SkillPath;
use crate::store::Error;
use crate::store::skill::front_matter::FrontMatter;
use crate::store::skill::loaded::{Problem, Skill, files_named};

/// Error for metadata of which no key can be read.
pub(super) fn unreadable(path: &Path, line: usize, reason: &str) -> Error {
    let path = path.display();
    let message = format!("{path}:{line}: the metadata cannot be read: {reason}");
    Error::BadSkill(message, "memctl doctor")
}

/// Builds a skill from its metadata, without the layers above it.
pub(super) fn skill(
    path: &SkillPath,
    dir: PathBuf,
    source: PathBuf,
    read: FrontMatter,
    mut problems: Vec<Problem>,
) -> Result<Skill, Error> {
    let FrontMatter {
        metadata,
        body,
        tolerated,
    } = read;
    let mut problem = |line, message: String| {
        let path = source.clone();
        problems.push(Problem {
            path,
            line,
            message,
        });
    };
    if let Some((line, reason)) = tolerated {
        let message = format!("the metadata is not valid YAML and was read line by line: {reason}");
        problem(Some(line), message);
    }
    let mut text = |key: &str| match setting(&metadata, key) {
        Some(Value::String(text)) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Some(Value::Array(_) | Value::Object(_)) => {
            problem(None, format!("`{key}` is not a string and is ignored"));
            None
        }
        _ => None,
    };
    let [name, domain, role] = ["name", "domain", "role"].map(&mut text);
    let [description, model] = ["description", "model"].map(text);
    for (what, stated, is) in [
        ("name", name, path.name()),
        ("domain", domain, path.domain()),
    ] {
        if let Some(stated) = stated.filter(|stated| *stated != is) {
            let message = format!(
                "the {what} is `{stated}`, but the directory is `{is}`; the directory counts"
            );
            problem(None, message);
        }
    }
    if let Some(role) = role.filter(|role| !ROLES.contains(&role.as_str())) {
        let (role, roles) = (role.escape_debug(), ROLES.join(", "));
        let reason = format!("the role `{role}` is none of {roles}");
        return Err(unreadable(&source, 1, &reason));
    }
    if description.is_none() {
        problem(None, "the description is missing".to_owned());
    }
    if body.is_empty() {
        problem(None, "the prompt is missing".to_owned());
    }
    let files = setting(&metadata, "files").map(files_named);
    Ok(Skill {
        files: files.unwrap_or_default(),
        path: path.clone(),
        dir,
        model,
        body,
        context: Vec::new(),
        problems,
        source,
    })
}

/// Roles of a skill.
const ROLES: [&str; 4] = ["manager", "specialist", "field", "agent"];

/// Setting at the top level, or below `metadata` as `memctl.<key>` or in a `memctl` map. The
/// standard allows custom keys only below `metadata`.
fn setting<'a>(metadata: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    let below = || {
        let map = metadata.get("metadata")?;
        map.get(format!("memctl.{key}"))
            .or_else(|| map.get("memctl")?.get(key))
    };
    metadata.get(key).or_else(below)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::store::skill::Skills;

    #[expect(clippy::disallowed_methods, reason = "a test makes its own tree")]
    fn load(text: &str) -> Result<Skill, Error> {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().join("skills/hr/x");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("SKILL.md"), text).unwrap();
        let skills = Skills::open(&tmp.path().join("skills")).unwrap();
        skills.load(&"hr/x".parse().unwrap())
    }

    const MINIMAL: &str = "---\nname: x\ndescription: d\n---\nDo it.";

    #[test]
    fn our_settings_may_stand_where_the_standard_allows_them() {
        let check = |yaml: &str, expected: Option<&str>| {
            let skill = load(&format!("---\nname: x\ndescription: d\n{yaml}\n---\nx")).unwrap();
            assert_eq!(skill.model.as_deref(), expected, "{yaml}");
            assert_eq!(skill.problems, [], "{yaml}");
        };
        check("metadata:\n  memctl.model: a/b", Some("a/b"));
        check("metadata:\n  memctl:\n    model: a/b", Some("a/b"));
        check("model: top\nmetadata:\n  memctl.model: below", Some("top"));
        check("metadata:\n  model: a/b", None);
        check("metadata: text", None);
        check("model:", None);
    }

    #[test]
    fn the_directory_names_the_skill_and_a_difference_is_told() {
        let check = |text: &str, problems: &[&str]| {
            let skill = load(text).unwrap();
            assert_eq!(skill.path.to_string(), "hr/x");
            let found: Vec<&str> = skill.problems.iter().map(|p| p.message.as_str()).collect();
            assert_eq!(found, problems, "{text}");
        };
        check(MINIMAL, &[]);
        check(
            "---\nname: Y\ndomain: ops\ndescription: d\n---\nx",
            &[
                "the name is `Y`, but the directory is `x`; the directory counts",
                "the domain is `ops`, but the directory is `hr`; the directory counts",
            ],
        );
        check(
            "---\nname: 123\n---\n",
            &[
                "the name is `123`, but the directory is `x`; the directory counts",
                "the description is missing",
                "the prompt is missing",
            ],
        );
        check(
            "---\nname: [a]\ndescription: d\n---\nx",
            &["`name` is not a string and is ignored"],
        );
    }

    #[test]
    fn a_skill_that_cannot_be_used_says_why() {
        let check = |text: &str, expected: &str| {
            assert_eq!(load(text).unwrap_err().to_string(), expected);
        };
        check(
            "Just a prompt.",
            "`skills/hr/x/SKILL.md` has no metadata: it needs a `description` between `---` lines at \
             the top, or in a ```yaml block under `## Skill Metadata`",
        );
        check(
            "---\nname: x\nrole: boss\n---\nx",
            "skills/hr/x/SKILL.md:1: the metadata cannot be read: the role `boss` is none of manager, \
             specialist, field, agent",
        );
        check(
            "\n---\nname: x\n",
            "skills/hr/x/SKILL.md:2: the metadata cannot be read: the `---` of this line is never \
             closed by another one",
        );
        check(
            &format!("{MINIMAL}{}", "x".repeat(1024 * 1024)),
            "`skills/hr/x/SKILL.md` is longer than 1048576 bytes",
        );
    }
}
