//! Loaded skill: its layers, its defects, and its bundled files.
//!
//! The metadata key `files` names these: a map of paths to descriptions, a list of either, or one path. The
//! prompt lists them with their descriptions, and the model asks for those that it wants to read. As in Agent
//! Skills, the prompt has none of their content before that.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::model::SkillPath;

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

#[cfg(test)]
mod tests {
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
}
