//! The layers of a prompt that are files: 0 the workspace, 1 the domain, 3 the skill.
//!
//! `WORKSPACE.md` is looked for in the skill, the domain, the skills directory and the project root;
//! `DOMAIN.md` in the first three. The nearest that exists wins, also when it is empty: that is how
//! a skill opts out of what its domain says. An empty layer is left out.

use std::path::{Path, PathBuf};

use super::root::{Root, Within};
use super::{Error, Problem};

/// One layer of the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// 0 the workspace, 1 the domain, 3 the skill. 2 are the learned rules, which are no file.
    pub number: u8,
    /// Its file, relative to the project root.
    pub source: PathBuf,
    /// Its text, trimmed; never empty.
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

    /// What the layers of `hr/x` are, as `number source text`, when these files exist.
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
