//! Prompt layers from files: 0 workspace, 1 domain, 3 skill.
//!
//! `WORKSPACE.md` is looked up in the skill, the domain, the skills directory and the project root;
//! `DOMAIN.md` in the first three. The nearest file wins, even if it is empty, so an empty file
//! lets a skill opt out of its domain's layer. An empty layer is left out.

use std::path::{Path, PathBuf};

use crate::store::skill::root::{Root, Within};
use crate::store::skill::{Error, Problem};

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

/// Layers 0 and 1 of the skill in this directory.
pub(super) fn above(
    root: &Root,
    skill_dir: &Path,
    problems: &mut Vec<Problem>,
) -> Result<Vec<Layer>, Error> {
    let mut layers = Vec::new();
    for (number, name) in [(0, "WORKSPACE.md"), (1, "DOMAIN.md")] {
        for dir in skill_dir.ancestors() {
            if number == 1 && !dir.starts_with(&root.skills) {
                break;
            }
            let within = if dir.starts_with(&root.skills) {
                Within::Skills
            } else {
                Within::Project
            };
            let path = dir.join(name);
            if let Some(file) = root.read(&path, within)? {
                let source = root.shown(&path);
                if file.lossy {
                    problems.push(not_utf8(source.clone()));
                }
                let text = file.text.trim().to_owned();
                layers.extend((!text.is_empty()).then_some(Layer {
                    number,
                    source,
                    text,
                }));
                break;
            }
            if dir == root.project {
                break;
            }
        }
    }
    Ok(layers)
}

pub(super) fn not_utf8(path: PathBuf) -> Problem {
    Problem {
        path,
        line: None,
        message: "has bytes that are not UTF-8; they were replaced".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Asserts the layers of `hr/x`, as `number source text`, for a tree of files.
    #[expect(clippy::disallowed_methods, reason = "a test makes its own tree")]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let tmp = tempfile::tempdir().unwrap();
        let project = tmp.path().join("above/project");
        let skill = project.join("skills/hr/x");
        fs::create_dir_all(&skill).unwrap();
        for (path, text) in files {
            fs::write(project.join(path), text).unwrap();
        }
        let root = Root::open(&project.join("skills")).unwrap();
        let layers = above(&root, &skill, &mut Vec::new()).unwrap();
        let shown: Vec<String> = layers
            .iter()
            .map(|l| format!("{} {} {}", l.number, l.source.display(), l.text))
            .collect();
        assert_eq!(shown, expected, "{files:?}");
    }

    #[test]
    fn the_nearest_file_wins() {
        check(&[], &[]);
        check(
            &[
                ("skills/WORKSPACE.md", " a\r\nb \n"),
                ("skills/hr/DOMAIN.md", "d\n"),
            ],
            &["0 skills/WORKSPACE.md a\nb", "1 skills/hr/DOMAIN.md d"],
        );
        check(
            &[
                ("skills/WORKSPACE.md", "far"),
                ("skills/hr/WORKSPACE.md", "near"),
            ],
            &["0 skills/hr/WORKSPACE.md near"],
        );
        check(&[("WORKSPACE.md", "w")], &["0 WORKSPACE.md w"]);
        check(
            &[
                ("skills/hr/x/DOMAIN.md", "own"),
                ("skills/DOMAIN.md", "far"),
            ],
            &["1 skills/hr/x/DOMAIN.md own"],
        );
        check(&[("skills/DOMAIN.md", "d")], &["1 skills/DOMAIN.md d"]);
    }

    #[test]
    fn an_empty_file_is_found_and_left_out() {
        check(
            &[
                ("skills/WORKSPACE.md", "far"),
                ("skills/hr/WORKSPACE.md", " \n\u{feff}".trim()),
            ],
            &[],
        );
    }

    #[test]
    fn nothing_is_looked_for_above_the_project_root() {
        check(
            &[
                ("../WORKSPACE.md", "w"),
                ("../DOMAIN.md", "d"),
                ("DOMAIN.md", "d"),
            ],
            &[],
        );
    }
}
