//! Examples and inputs of a skill.
//!
//! `examples/*.json` hold `{"input", "output"}`: answers that the author expects. Without a model,
//! the nearest example is the answer. `fixtures/*.json` are sample inputs. Values are kept as JSON
//! text, unchanged. A broken file is reported as a problem, and the others still load.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

use memctl_files::FoundKind;

use super::error::with_cause;
use super::root::{Root, Within};
use super::{Error, Problem, layers};

/// Default input of `run`.
const SAMPLE_INPUT: &str = "sample_input.json";

/// Input and expected output.
#[derive(Debug, Clone)]
pub struct Example {
    /// File name without `.json`.
    pub name: String,
    /// Input as JSON text, unchanged.
    pub input: Box<RawValue>,
    /// Output as JSON text, unchanged.
    pub output: Box<RawValue>,
}

/// Examples of a skill, sorted by name, and problems of unusable ones.
#[derive(Debug, Clone, Default)]
pub struct Examples {
    /// Usable examples.
    pub cases: Vec<Example>,
    /// One problem per unusable file, or per file with invalid UTF-8.
    pub problems: Vec<Problem>,
}

/// File format. Other keys are notes of the author.
#[derive(Deserialize)]
struct Case {
    input: Box<RawValue>,
    output: Box<RawValue>,
}

pub(super) fn examples(root: &Root, skill_dir: &Path) -> Result<Examples, Error> {
    let mut all = Examples::default();
    for path in json_files(root, &skill_dir.join("examples"))? {
        let mut problem = |line, message| {
            let path = root.shown(&path);
            all.problems.push(Problem {
                path,
                line,
                message,
            });
        };
        let file = match root.read(&path, Within::Skills) {
            Ok(Some(file)) => file,
            // Deleted since the directory was listed.
            Ok(None) => continue,
            Err(error) => {
                problem(None, with_cause(&error));
                continue;
            }
        };
        match serde_json::from_str::<Case>(&file.text) {
            Ok(Case { input, output }) => {
                if file.lossy {
                    all.problems.push(layers::not_utf8(root.shown(&path)));
                }
                let name = path.file_stem().unwrap_or_default();
                all.cases.push(Example {
                    name: name.to_string_lossy().into_owned(),
                    input,
                    output,
                });
            }
            Err(error) => {
                let line = Some(error.line()).filter(|line| *line > 0);
                problem(
                    line,
                    format!("is not an {{\"input\", \"output\"}} case: {error}"),
                );
            }
        }
    }
    Ok(all)
}

pub(super) fn sample_input(root: &Root, skill_dir: &Path) -> Result<Option<PathBuf>, Error> {
    let path = skill_dir.join("fixtures").join(SAMPLE_INPUT);
    Ok(root.kind(&path)?.map(|_| path))
}

/// Sorted `*.json` files of a directory, without hidden ones; empty if the directory does not
/// exist.
fn json_files(root: &Root, dir: &Path) -> Result<Vec<PathBuf>, Error> {
    if root.kind(dir)? != Some(FoundKind::Directory) {
        return Ok(Vec::new());
    }
    let found = root.skills.below(dir).list();
    let mut files = Vec::new();
    for found in found.map_err(|source| root.io(dir, source))? {
        let path = dir.join(&found.name);
        let hidden = found.name.as_encoded_bytes().starts_with(b".");
        if !hidden
            && path
                .extension()
                .is_some_and(|extension| extension == "json")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make their own trees")]
mod tests {
    use std::fs;

    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root, PathBuf) {
        let tmp = tempfile::tempdir().unwrap();
        let skill = tmp.path().join("skills/hr/x");
        for (path, text) in files {
            let path = skill.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(&skill).unwrap();
        let root = Root::open(&tmp.path().join("skills")).unwrap();
        (tmp, root, skill)
    }

    #[test]
    fn a_broken_example_does_not_hide_the_others() {
        let (_tmp, root, skill) = tree(&[
            (
                "examples/b.json",
                "{\"input\": {\"n\": 1.0}, \"output\": 1, \"note\": \"x\"}",
            ),
            (
                "examples/a.json",
                "\u{feff}{\"output\": [ ], \"input\": null}",
            ),
            ("examples/c.json", "{\"input\": 1,\n"),
            ("examples/d.json", "{\"input\": 1}"),
            ("examples/e.txt", "not one"),
            ("examples/.f.json", "not one"),
        ]);
        let all = examples(&root, &skill).unwrap();
        let shown: Vec<String> = all
            .cases
            .iter()
            .map(|case| format!("{} {} {}", case.name, case.input, case.output))
            .collect();
        assert_eq!(shown, ["a null [ ]", "b {\"n\": 1.0} 1"]);
        let problems: Vec<String> = all.problems.iter().map(ToString::to_string).collect();
        assert!(
            problems[0].starts_with("skills/hr/x/examples/c.json:2: "),
            "{problems:?}"
        );
        assert!(
            problems[1].contains("missing field `output`"),
            "{problems:?}"
        );
        assert_eq!(problems.len(), 2);
    }

    #[test]
    fn a_skill_without_cases_has_none() {
        let (_tmp, root, skill) = tree(&[("fixtures/other.json", "{}"), ("examples", "a file")]);
        assert!(examples(&root, &skill).unwrap().cases.is_empty());
        assert_eq!(sample_input(&root, &skill).unwrap(), None);
    }
}
