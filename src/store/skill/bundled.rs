//! Files that a skill brings along, named by the key `files` of its metadata: a map of paths to descriptions,
//! a list of either, or one path.
//!
//! The prompt lists them with their descriptions, and a model reads those that it asks for. As in
//! Agent Skills, the prompt has no content of them before it is needed.

use std::path::{Component, Path};

use serde_json::Value;

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
pub(super) fn list_of_files(files: &[BundledFile]) -> String {
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
