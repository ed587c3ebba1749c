//! Loaded skill: its layers, its defects, its bundled files, and the settings in its metadata.
//!
//! Only a role that does not exist makes a skill unusable. Unknown keys of the metadata are for other programs.
//!
//! The metadata key `files` names these: a map of paths to descriptions, a list of either, or one path. The
//! prompt lists them with their descriptions, and the model asks for those that it wants to read. As in Agent
//! Skills, the prompt has none of their content before that.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use crate::model::SkillPath;
use crate::store::Error;
use crate::store::skill::front_matter::FrontMatter;

/// Loaded skill.
#[derive(Debug, Clone)]
pub struct Skill {
    /// Id of the skill, from the names of its directories.
    pub path: SkillPath,
    /// Absolute path of the skill's directory.
    pub dir: PathBuf,
    /// Model that the author requests, verbatim. The caller decides if it follows. A skill may
    /// never name a program to execute.
    pub model: Option<String>,
    /// Prompt: SKILL.md without the metadata, trimmed, with `\n` line ends.
    pub body: String,
    /// Layers 0 and 1 that exist and are not empty.
    pub context: Vec<Layer>,
    /// Files that the prompt lists, and that a model may ask for.
    pub files: Vec<BundledFile>,
    /// Problems that do not make the skill unusable.
    pub problems: Vec<Problem>,
    /// SKILL.md, relative to the project root.
    pub(super) source: PathBuf,
}

impl Skill {
    /// Non-empty layers 0, 1 and 3, in the order of the prompt.
    pub fn layers(&self) -> Vec<Layer> {
        let own = Layer {
            number: 3,
            source: self.source.clone(),
            text: [self.body.clone(), list_of_files(&self.files)]
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect::<Vec<_>>()
                .join("\n\n"),
        };
        let mut layers = self.context.clone();
        layers.extend((!own.text.is_empty()).then_some(own));
        layers
    }
}

/// Defect in a file of a skill that does not make the skill unusable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Path relative to the project root.
    pub path: PathBuf,
    /// Line number from 1; `None` if unknown.
    pub line: Option<usize>,
    /// Description of the defect.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// One layer of the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// 0 workspace, 1 domain, 3 skill. Layer 2 has the learned rules, which come from the store.
    pub number: u8,
    /// Path relative to the project root.
    pub source: PathBuf,
    /// Trimmed text; never empty.
    pub text: String,
}

/// Defect of a text with invalid bytes.
pub(super) fn not_utf8(path: PathBuf) -> Problem {
    Problem {
        path,
        line: None,
        message: "has bytes that are not UTF-8; they were replaced".to_owned(),
    }
}

/// Maximum number of files of a skill.
const MOST_FILES: usize = 50;

/// File of a skill that its prompt lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundledFile {
    /// Path below the directory of the skill, with `/`.
    pub path: String,
    /// Description by the author; empty if missing.
    pub description: String,
}

/// Returns the files that a value of the metadata names.
pub(super) fn files_named(value: &Value) -> Vec<BundledFile> {
    let file = |path: &str, description: &str| BundledFile {
        path: path.trim().to_owned(),
        description: description.split_whitespace().collect::<Vec<_>>().join(" "),
    };
    let mut files = match value {
        Value::String(path) => vec![file(path, "")],
        Value::Array(items) => items.iter().flat_map(files_named).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(path, about)| file(path, about.as_str().unwrap_or_default()))
            .collect(),
        _ => Vec::new(),
    };
    files.truncate(MOST_FILES);
    files
}

/// Returns `true` for a path that stays below the directory of the skill.
pub(super) fn is_below(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// List of the files for the prompt, and how to ask for one; empty without files.
fn list_of_files(files: &[BundledFile]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let mut text = "## Files\n\nTo read some of these files first, answer only \
                    `{\"read\": [\"PATH\"]}`; they follow, and you answer then.\n"
        .to_owned();
    for BundledFile { path, description } in files {
        let about = if description.is_empty() { "" } else { ": " };
        text.extend(["\n- `", path, "`", about, description]);
    }
    text
}

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

    use serde_json::json;

    use super::*;
    use crate::store::skill::Skills;

    #[test]
    fn files_are_a_map_a_list_or_one_path() {
        let check = |value: Value, expected: &[(&str, &str)]| {
            let files = files_named(&value);
            let found = files.iter().map(|file| (&*file.path, &*file.description));
            assert_eq!(found.collect::<Vec<_>>(), expected, "{value}");
        };
        check(
            json!({"a.md": "One\n two", "b.md": null}),
            &[("a.md", "One two"), ("b.md", "")],
        );
        check(
            json!(["a.md", {"b.md": "Two"}]),
            &[("a.md", ""), ("b.md", "Two")],
        );
        check(json!("a.md"), &[("a.md", "")]);
        check(json!(7), &[]);
    }

    #[test]
    fn only_paths_below_the_skill_are_read() {
        assert!(is_below("references/a.md"));
        for path in ["", "../a.md", "/etc/passwd", "a/../../b"] {
            assert!(!is_below(path), "{path}");
        }
    }

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
