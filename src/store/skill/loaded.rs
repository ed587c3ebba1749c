//! SKILL.md: loads a skill by name with the layers above it, its bundled files, and the settings in its metadata.
//!
//! Metadata is either between `---` lines at the top (as in the Agent Skills standard), or in a
//! `yaml` code block under a `## Skill Metadata` heading, optionally below a `skill:` key. The
//! prompt is the file without the metadata, its heading and its block.
//!
//! Invariants: no input panics, recurses without bound or takes long. If YAML parsing fails, the
//! metadata is read line by line, with a remark. The file is refused only if that finds no key
//! either. Unknown keys are for other programs.
//!
//! Real skill files contain `description: Use when: the user asks`, tabs, and values that begin with `@` or
//! `%`. For such metadata, the line parser accepts `key: value` at the start of a line, quotes, and lines that
//! continue a value. It never fails, takes linear time, and skips lines in any other form.
//!
//! The metadata key `files` names bundled files: a map of paths to descriptions, a list of either, or one path. The
//! prompt lists them with their descriptions, and the model asks for those that it wants to read. As in Agent
//! Skills, the prompt has none of their content before that.

use std::path::{Component, Path, PathBuf};

use memctl_files::yaml::{self, Invalid};
use memctl_files::{Directory, named};
use serde_json::{Map, Value};

use crate::model::SkillPath;
use crate::store::Error;
use crate::store::skill::Skills;

impl Skills {
    /// Loads a skill.
    ///
    /// # Errors
    ///
    /// [`Error`] if the skill does not exist, leads outside, or has no readable metadata.
    pub fn load(&self, path: &SkillPath) -> Result<Skill, Error> {
        let dir = self.dir_of(path);
        let file = dir.join("SKILL.md");
        let not_found = || {
            if named::is_dir(&dir) {
                let message = format!("`{}` has no SKILL.md", self.relative(&dir).display());
                return Error::missing(message, "write the instructions of the skill to that file");
            }
            Error::NoSkill {
                skill: path.clone(),
                similar: self.similar(&path.to_string()),
            }
        };
        let text = self.read(&file)?.ok_or_else(not_found)?;
        // On case-insensitive file systems `HR/x` also opens, and its records would belong to
        // another name.
        if !Self::is_spelled(self.directory(), path.domain())
            || !Self::is_spelled(&self.directory().below(path.domain()), path.name())
        {
            return Err(not_found());
        }
        let source = self.relative(&file);
        let read = match read_front_matter(&text) {
            Ok(read) => read,
            Err(None) => {
                let message = format!(
                    "`{}` has no metadata: it needs a `description` between `---` lines at the top, or in a \
                     ```yaml block under `## Skill Metadata`",
                    source.display()
                );
                let hint = r"begin the file with: ---\ndescription: what the skill does\n---";
                return Err(Error::BadSkill(message, hint));
            }
            Err(Some((line, reason))) => {
                return Err(unreadable(&source, line, &reason));
            }
        };
        let context = self.above(&dir)?;
        let mut skill = skill(path, dir, source, context, read)?;
        let is_there =
            |file: &BundledFile| is_below(&file.path) && self.has_file(&skill.dir.join(&file.path));
        let (files, missing): (Vec<_>, Vec<_>) = skill.files.iter().cloned().partition(is_there);
        let source = skill.source.display();
        skill.problems.extend(missing.iter().map(|file| {
            let path = &file.path;
            format!("{source}: `files` names `{path}`, which is no file of the skill")
        }));
        skill.files = files;
        Ok(skill)
    }

    /// Layers 0 and 1 of the skill in this directory.
    pub(super) fn above(&self, skill_dir: &Path) -> Result<Vec<Layer>, Error> {
        let mut layers = Vec::new();
        for (number, name) in [(0, "WORKSPACE.md"), (1, "DOMAIN.md")] {
            for dir in skill_dir.ancestors() {
                let path = dir.join(name);
                let file = if dir.starts_with(self.directory()) {
                    self.read(&path)?
                } else if number == 0 {
                    self.read_of_project(name)?
                } else {
                    break;
                };
                if let Some(file) = file {
                    let source = self.relative(&path);
                    let text = file.trim().to_owned();
                    layers.extend((!text.is_empty()).then_some(Layer {
                        number,
                        source,
                        text,
                    }));
                    break;
                }
                if dir == self.project {
                    break;
                }
            }
        }
        Ok(layers)
    }

    pub(super) fn dir_of(&self, path: &SkillPath) -> PathBuf {
        self.directory().join(path.domain()).join(path.name())
    }

    fn is_spelled(dir: &Directory, name: &str) -> bool {
        // If the directory cannot be listed, the spelling cannot be checked.
        dir.list()
            .map_or(true, |found| found.iter().any(|f| f.name == name))
    }
}

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
    pub problems: Vec<String>,
    /// SKILL.md, relative to the project root.
    source: PathBuf,
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
fn files_named(value: &Value) -> Vec<BundledFile> {
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
fn is_below(path: &str) -> bool {
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
fn unreadable(path: &Path, line: usize, reason: &str) -> Error {
    let path = path.display();
    let message = format!("{path}:{line}: the metadata cannot be read: {reason}");
    Error::BadSkill(message, "memctl doctor")
}

/// Builds a skill from its metadata and the layers above it.
fn skill(
    path: &SkillPath,
    dir: PathBuf,
    source: PathBuf,
    context: Vec<Layer>,
    read: FrontMatter,
) -> Result<Skill, Error> {
    let shown = source.display();
    let mut problems = Vec::new();
    if let Some((line, reason)) = read.tolerated {
        problems.push(format!(
            "{shown}:{line}: the metadata is not valid YAML and was read line by line: {reason}"
        ));
    }
    let mut problem = |message: String| problems.push(format!("{shown}: {message}"));
    let mut text = |key: &str| match setting(&read.metadata, key) {
        Some(Value::String(text)) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Some(Value::Array(_) | Value::Object(_)) => {
            problem(format!("`{key}` is not a string and is ignored"));
            None
        }
        _ => None,
    };
    let [name, domain, role] = ["name", "domain", "role"].map(&mut text);
    let [description, model] = ["description", "model"].map(text);
    if let Some(role) = role.filter(|role| !ROLES.contains(&role.as_str())) {
        let (role, roles) = (role.escape_debug(), ROLES.join(", "));
        let reason = format!("the role `{role}` is none of {roles}");
        return Err(unreadable(&source, 1, &reason));
    }
    for (what, stated, is) in [
        ("name", name, path.name()),
        ("domain", domain, path.domain()),
    ] {
        if let Some(stated) = stated.filter(|stated| *stated != is) {
            problem(format!(
                "the {what} is `{stated}`, but the directory is `{is}`; the directory counts"
            ));
        }
    }
    for (what, is_missing) in [
        ("description", description.is_none()),
        ("prompt", read.body.is_empty()),
    ] {
        if is_missing {
            problem(format!("the {what} is missing"));
        }
    }
    let files = setting(&read.metadata, "files").map(files_named);
    Ok(Skill {
        files: files.unwrap_or_default(),
        path: path.clone(),
        dir,
        model,
        body: read.body,
        context,
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

/// Metadata and prompt of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontMatter {
    /// Keys in file order. Never empty.
    pub metadata: Map<String, Value>,
    /// The prompt, trimmed.
    pub body: String,
    /// Line number in the file and YAML's reason, if the metadata had to be read line by line.
    pub tolerated: Option<(usize, String)>,
}

/// Maximum size of metadata in bytes; handwritten metadata is far smaller.
const MAX_METADATA: usize = 64 * 1024;

/// Reads a file with `\n` line ends and without a byte order mark.
///
/// # Errors
///
/// The line and the reason of metadata that cannot be read; `None` if there is none, or it is empty.
pub fn read_front_matter(text: &str) -> Result<FrontMatter, Option<Invalid>> {
    let mut refused = None;
    for split in [at_the_top(text), in_a_section(text)] {
        match split.and_then(Split::parse) {
            Ok(read) => return Ok(read),
            Err(reason) => refused = refused.or(reason),
        }
    }
    Err(refused)
}

/// Unparsed parts of a file.
struct Split<'a> {
    yaml: &'a str,
    /// Line number in the file where `yaml` begins.
    first_line: usize,
    body: String,
}

/// The error is `None` where no metadata begins.
fn at_the_top(text: &str) -> Result<Split<'_>, Option<Invalid>> {
    let start = text.len() - text.trim_start_matches(['\n', ' ', '\t']).len();
    // Indented dashes are not front matter.
    let start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let before = text[..start].matches('\n').count();
    let mut lines = text[start..].split_inclusive('\n');
    let Some(opening) = lines.next().filter(|line| is_rule(line)) else {
        return Err(None);
    };
    let from = start + opening.len();
    let mut to = from;
    for line in lines {
        if is_rule(line) {
            return Ok(Split {
                yaml: &text[from..to],
                first_line: before + 2,
                body: text[to + line.len()..].trim().to_owned(),
            });
        }
        to += line.len();
    }
    let reason = "the `---` of this line is never closed by another one";
    Err(Some((before + 1, reason.to_owned())))
}

/// Line of three or more dashes.
fn is_rule(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 3 && line.bytes().all(|b| b == b'-')
}

fn in_a_section(text: &str) -> Result<Split<'_>, Option<Invalid>> {
    let mut at = 0;
    let mut heading = None;
    let mut block: Option<(usize, usize)> = None;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let end = at + line.len();
        match (heading, block) {
            (Some(heading), Some((from, first_line))) if line.trim_start().starts_with("```") => {
                let body = [&text[..heading], text[end..].trim_start()].concat();
                return Ok(Split {
                    yaml: &text[from..at],
                    first_line,
                    body: body.trim().to_owned(),
                });
            }
            (Some(_), None) if is_yaml_fence(line) => block = Some((end, number + 2)),
            (Some(_), None) if !line.trim().is_empty() => heading = None,
            _ => {}
        }
        if block.is_none() && is_metadata_heading(line) {
            heading = Some(at);
        }
        at = end;
    }
    let reason = "the code block that begins here is never closed";
    Err(block.map(|(_, first_line)| (first_line - 1, reason.to_owned())))
}

fn is_metadata_heading(line: &str) -> bool {
    line.strip_prefix("##")
        .is_some_and(|rest| rest.trim() == "Skill Metadata")
}

fn is_yaml_fence(line: &str) -> bool {
    matches!(line.trim(), "```yaml" | "```yml")
}

impl Split<'_> {
    fn parse(self) -> Result<FrontMatter, Option<Invalid>> {
        if self.yaml.len() > MAX_METADATA {
            let length = self.yaml.len();
            let reason = format!("it has {length} bytes; at most {MAX_METADATA} are read");
            return Err(Some((self.first_line, reason)));
        }
        let (metadata, tolerated) = match read_map(self.yaml) {
            Ok(metadata) => (metadata, None),
            Err((line, reason)) => {
                let invalid = (self.first_line + line - 1, reason);
                (read_lines(self.yaml), Some(invalid))
            }
        };
        if metadata.is_empty() {
            return Err(tolerated);
        }
        Ok(FrontMatter {
            metadata: below_skill(metadata),
            body: self.body,
            tolerated,
        })
    }
}

/// The older form puts all keys below `skill:`.
fn below_skill(mut map: Map<String, Value>) -> Map<String, Value> {
    match map.get_mut("skill") {
        Some(Value::Object(inner)) if !inner.is_empty() => std::mem::take(inner),
        _ => map,
    }
}

/// Parses a YAML map. The error is the line in the YAML, from 1, and the reason.
fn read_map(text: &str) -> Result<Map<String, Value>, Invalid> {
    match yaml::parse(text)? {
        Value::Object(map) => Ok(map),
        // Empty or comment-only metadata is an empty map.
        Value::Null => Ok(Map::new()),
        _ => Err((1, "it is no map".to_owned())),
    }
}

/// Recognised keys and values. A later key of the same name wins, as in most YAML parsers.
fn read_lines(text: &str) -> Map<String, Value> {
    let mut found: Vec<(&str, String)> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        if let Some((key, value)) = key_of(line) {
            found.push((key, value.to_owned()));
            is_open = true;
        } else if line.starts_with('#') || line.starts_with("---") {
            is_open = false;
        } else if let Some((_, value)) = found.last_mut().filter(|_| is_open) {
            value.extend([" ", line.trim()]);
        }
    }
    let values = found.into_iter().map(|(key, value)| {
        // The marks of a block say how its lines are joined.
        let is_mark = |c| matches!(c, '|' | '>' | '+' | '-');
        let text = match value.split_once(' ') {
            Some((marks, text)) if marks.starts_with(['|', '>']) && marks.chars().all(is_mark) => {
                text
            }
            _ => &value,
        };
        let text = unquoted(text);
        let value = Some(text).filter(|text| !text.is_empty());
        (key.to_owned(), Value::from(value))
    });
    values.collect()
}

/// Splits `key: value`. The key starts the line and is one plain word.
fn key_of(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = line.split_once(':')?;
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_key = !key.is_empty() && key.len() <= 64 && key.chars().all(plain);
    let is_separated = rest.is_empty() || rest.starts_with([' ', '\t']);
    // A list item is not a key, although keys may contain dashes.
    (is_key && is_separated && !key.starts_with('-')).then(|| (key, rest.trim()))
}

/// Removes quotes around the whole text; an unmatched quote stays.
fn unquoted(text: &str) -> String {
    let text = text.trim();
    let inner = |quote: char| {
        text.strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
    };
    if let Some(inner) = inner('"') {
        return inner.replace("\\\"", "\"").replace("\\n", "\n");
    }
    if let Some(inner) = inner('\'') {
        return inner.replace("''", "'");
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

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
            assert!(skill.problems.is_empty(), "{yaml}");
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
            let shown = "skills/hr/x/SKILL.md: ";
            let found = skill
                .problems
                .iter()
                .map(|p| p.strip_prefix(shown).unwrap());
            let found: Vec<&str> = found.collect();
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

#[cfg(test)]
mod tests_of_metadata {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "reads better with `json!`")]
    fn check(text: &str, metadata: Value, body: &str) {
        let read =
            read_front_matter(text).unwrap_or_else(|refused| panic!("{text:?}: {refused:?}"));
        assert_eq!(Value::Object(read.metadata), metadata, "{text:?}");
        assert_eq!(read.body, body, "{text:?}");
        assert_eq!(read.tolerated, None, "{text:?}");
    }

    #[test]
    fn front_matter_stands_at_the_top() {
        check(
            "---\nname: a\n---\nDo it.\n",
            json!({"name": "a"}),
            "Do it.",
        );
        check("\n \n---\nname: a\n---\nx", json!({"name": "a"}), "x");
        check("----- \nname: a\n---\t\nx", json!({"name": "a"}), "x");
        check("---\nname: a\n---", json!({"name": "a"}), "");
        check(
            "---\nname: a\n---\n\none\n\n---\n\ntwo\n",
            json!({"name": "a"}),
            "one\n\n---\n\ntwo",
        );
        // With both forms, the top wins and the section is part of the prompt.
        let section = "## Skill Metadata\n```yaml\nname: b\n```";
        let both = format!("---\nname: a\n---\n{section}\n");
        check(&both, json!({"name": "a"}), section);
        // Empty front matter counts as missing.
        check(
            "---\n---\n## Skill Metadata\n```yaml\nname: b\n```\nx",
            json!({"name": "b"}),
            "---\n---\nx",
        );
    }

    #[test]
    fn a_metadata_section_is_taken_out_of_the_prompt() {
        check(
            "# Title\n\n## Skill Metadata\n\n```yaml\nname: a\nrole: agent\n```\n\n## Task\nDo it.\n",
            json!({"name": "a", "role": "agent"}),
            "# Title\n\n## Task\nDo it.",
        );
        check(
            "## Skill Metadata\n```yml\nskill:\n  name: a\n```\nx",
            json!({"name": "a"}),
            "x",
        );
        // A block that does not directly follow the heading is an example.
        assert_eq!(
            read_front_matter("## Skill Metadata\nThis is how:\n```yaml\nname: a\n```\n"),
            Err(None)
        );
    }

    #[test]
    fn every_key_is_kept_in_its_order() {
        let text = "---\nname: pdf\ndescription: >\n  Reads\n  PDFs.\nlicense: MIT\n\
                    metadata:\n  author: a\n  version: \"1.0\"\nallowed-tools: Bash(git:*) Read\n\
                    user-invocable: true\ntags: [a, b]\n---\nx";
        let read = read_front_matter(text).unwrap();
        assert_eq!(
            read.metadata.keys().collect::<Vec<_>>(),
            [
                "name", "description", "license", "metadata", "allowed-tools", "user-invocable",
                "tags"
            ]
        );
        assert_eq!(read.metadata["description"], "Reads PDFs.\n");
        assert_eq!(read.metadata["metadata"]["version"], "1.0");
    }

    #[test]
    fn invalid_yaml_is_read_line_by_line_with_a_remark() {
        let check = |yaml: &str, line: usize, metadata: Value| {
            let read = read_front_matter(&format!("---\n{yaml}\n---\nx")).unwrap();
            assert_eq!(Value::Object(read.metadata), metadata, "{yaml}");
            assert_eq!(read.body, "x");
            let (at, reason) = read.tolerated.expect(yaml);
            assert_eq!(at, line, "{yaml}: {reason}");
            assert!(!reason.contains('\n'));
        };
        check(
            "name: a\ndescription: Use when: it breaks",
            3,
            json!({"name": "a", "description": "Use when: it breaks"}),
        );
        check("name: @a", 2, json!({"name": "@a"}));
        check("name: a\nd: %x", 3, json!({"name": "a", "d": "%x"}));
        check("name: [a", 2, json!({"name": "[a"}));
    }

    #[test]
    fn unreadable_metadata_is_refused_with_its_line() {
        for text in [
            "", "\n\n", "# Only a prompt\n", "---\n---\nx", "---\n# c\n\n---\nx",
        ] {
            assert_eq!(read_front_matter(text), Err(None), "{text:?}");
        }
        let check = |text: &str, expected: usize| match read_front_matter(text) {
            Err(Some((line, _))) => assert_eq!(line, expected, "{text:?}"),
            other => panic!("{text:?}: {other:?}"),
        };
        check("\n---\nname: a\n", 2);
        check("---\n- a\n- b\n---\nx", 2);
        check("---\njust words\n---\nx", 2);
        check("a\n## Skill Metadata\n```yaml\nname: a\n", 3);
        check(&format!("---\nname: {}\n---\n", "x".repeat(70_000)), 2);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>()) {
            drop(read_front_matter(&text));
            drop(read_front_matter(&format!("---\n{text}\n---\n")));
            drop(read_front_matter(&format!("## Skill Metadata\n```yaml\n{text}\n```\n")));
        }

        #[test]
        fn no_text_that_looks_like_yaml_panics(
            text in r#"([a-c]: ?|- |["'|>&*!@%#{}\[\],?]|\n|  |\t|---|é|x){0,40}"#
        ) {
            drop(read_front_matter(&format!("---\n{text}\n---\nx")));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let text = crate::store::skill::text_of(bytes);
            drop(read_front_matter(&text));
            drop(read_front_matter(&format!("---\n{text}\n---\n")));
        }
    }

    #[test]
    fn hostile_yaml_is_bounded() {
        let laughs: Vec<String> = ('b'..='i')
            .zip('a'..)
            .map(|(this, last)| format!("{this}: &{this} [*{last},*{last},*{last},*{last}]"))
            .collect();
        let steps: Vec<String> = (0..300).map(|n| format!("{}a:", " ".repeat(n))).collect();
        let n = 30_000;
        for yaml in [
            format!("a: &a [x,x,x,x]\n{}", laughs.join("\n")),
            steps.join("\n"),
            format!("a: {}", "[".repeat(n)),
            format!("a: {}", "{a: ".repeat(n / 4)),
            format!("a:\n {}", "- ".repeat(n)),
            "? ".repeat(n),
            "&a ".repeat(n / 2),
            format!("a: &a [{}]", "*a,".repeat(n / 2)),
            format!("<<: {}", "*x ".repeat(n / 2)),
            "---\n".repeat(1000),
        ] {
            // Any result is fine, as long as it arrives.
            drop(read_front_matter(&yaml));
        }
    }

    #[test]
    fn intended_metadata_is_read_front_matter() {
        let check = |text: &str, expected: Value| {
            assert_eq!(Value::Object(read_lines(text)), expected, "{text}");
        };
        check(
            "description: Use when: it breaks",
            json!({"description": "Use when: it breaks"}),
        );
        check(
            "name: @scope/x\nv: %d",
            json!({"name": "@scope/x", "v": "%d"}),
        );
        check("name:\t\"x: y\"", json!({"name": "x: y"}));
        check(
            "a: 'it''s'\nb: \"say\" hi",
            json!({"a": "it's", "b": "\"say\" hi"}),
        );
        check(
            "a: one\n  two\nthree\nb: x",
            json!({"a": "one two three", "b": "x"}),
        );
        check(
            "a: |\n  x\n\n  z\nb: >-\n  1",
            json!({"a": "x  z", "b": "1"}),
        );
        check(
            "tags:\n  - a\n- b\nname: x",
            json!({"tags": "- a - b", "name": "x"}),
        );
        check("a:\n  just text", json!({"a": "just text"}));
        check("a:", json!({"a": null}));
        check("# c\na: 1\n# d\na: 2", json!({"a": "2"}));
        check("a: 1\n---\nb: 2", json!({"a": "1", "b": "2"}));
        check("no keys here\n- a: b\nhttp://x", json!({}));
        check("a: \"", json!({"a": "\""}));
        check("", json!({}));
    }
}
