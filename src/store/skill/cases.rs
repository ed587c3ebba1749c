//! Examples and inputs of a skill.
//!
//! `examples/*.json` hold `{"input", "output"}`: answers that the author expects. Without a model,
//! the nearest example is the answer. `fixtures/*.json` are sample inputs. Values are kept as JSON
//! text, unchanged. A broken file is reported as a problem, and the others still load.
//!
//! Regression tests generated from corrections: list and count, for `status`.
//!
//! The count has to be cheap and correct for files of any origin. A correction counts once: its
//! Python and YAML exports are copies of its case. Without a case, Python files are counted by name
//! and YAML tests by the dashes of the `tests:` list, without a YAML parser. Unreadable files count
//! as zero.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use memctl_files::FoundKind;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::store::skill::root::{Root, Within};
use crate::store::skill::{Error, Problem, not_utf8, with_cause};

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
                    all.problems.push(not_utf8(root.shown(&path)));
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

/// YAML files with tests: ours, and that of the reference implementation.
const YAML_FILES: [&str; 2] = ["test_promptfoo.yaml", "corrections.yaml"];

/// Size limit in bytes. Each case quotes its correction, which can be long.
pub(super) const MAX_CASES_BYTES: u64 = 64 * 1024 * 1024;

pub(super) fn count(root: &Root, skill_dir: &Path) -> usize {
    let dir = skill_dir.join("tests").join("generated");
    // Most skills have no generated tests, so this is all their work.
    let found = root.skills.below(&dir).list().unwrap_or_default();
    let names = || found.iter().filter_map(|found| found.name.to_str());
    let cases: BTreeSet<u64> = names().filter_map(|name| number(name, ".json")).collect();
    let mut total = cases.len();
    for name in names() {
        if YAML_FILES.contains(&name) {
            let file = root.bytes(MAX_CASES_BYTES, &dir.join(name), Within::Skills);
            let file = file.ok().flatten().unwrap_or_default();
            let tests = yaml_tests(&String::from_utf8_lossy(&file));
            let is_copy = |test: &Option<u64>| test.is_some_and(|id| cases.contains(&id));
            total += tests.iter().filter(|test| !is_copy(test)).count();
        } else if is_python_test(name) {
            let is_copy = number(name, ".py").is_some_and(|id| cases.contains(&id));
            total += usize::from(!is_copy);
        }
    }
    total
}

/// Files `test_correction_<n>.json` of a skill, sorted by number.
pub(super) fn case_files(root: &Root, skill_dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let dir = skill_dir.join("tests").join("generated");
    let listed = root.skills.below(&dir).list();
    let mut found: Vec<(u64, PathBuf)> = listed
        .map_err(|source| root.io(&dir, source))?
        .into_iter()
        .filter_map(|found| {
            let name = found.name;
            Some((number(name.to_str()?, ".json")?, dir.join(name)))
        })
        .collect();
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

fn is_python_test(name: &str) -> bool {
    name.strip_prefix("test_correction_")
        .and_then(|rest| rest.strip_suffix(".py"))
        .is_some_and(|number| !number.is_empty())
}

/// Number of the correction in `test_correction_<n><extension>`.
fn number(name: &str, extension: &str) -> Option<u64> {
    let stem = name.strip_suffix(extension)?;
    stem.strip_prefix("test_correction_")?.parse().ok()
}

/// Items of the top-level `tests:` list, each with the number of its correction, if it names one.
///
/// Lines of an item are indented deeper than its dash, so dashes in the column of the first one are
/// items.
fn yaml_tests(yaml: &str) -> Vec<Option<u64>> {
    let mut items = Vec::new();
    let mut lines = yaml.lines().skip_while(|line| line.trim_end() != "tests:");
    if lines.next().is_none() {
        return items;
    }
    let mut column = None;
    for line in lines {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let is_item = text == "-" || text.starts_with("- ");
        match column {
            None if is_item => column = Some(indent),
            Some(column) if indent > column => {
                if let (Some(id), Some(item)) = (correction_number(text), items.last_mut()) {
                    *item = Some(id);
                }
                continue;
            }
            Some(column) if indent == column && is_item => {}
            _ => break,
        }
        items.push(None);
    }
    items
}

/// Number in `correction_id: 'CORR-<n>'`.
fn correction_number(line: &str) -> Option<u64> {
    let id = line.strip_prefix("correction_id: ")?.trim();
    id.trim_matches(['\'', '"'])
        .strip_prefix("CORR-")?
        .parse()
        .ok()
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

#[cfg(test)]
mod tests_of_generated {
    use super::*;

    #[test]
    fn the_items_of_the_list_are_counted() {
        let check = |yaml, expected| assert_eq!(yaml_tests(yaml).len(), expected, "{yaml}");
        check("", 0);
        check("description: x\n", 0);
        check("tests: []\n", 0);
        check("tests:\n", 0);
        check(
            "tests:\n- assert:\n  - type: x\n  - type: y\n- vars: {}\n",
            2,
        );
        check(
            "tests:\n  - a: |\n      - no\n\n  # c\n  - b: 1\nproviders:\n  - x\n",
            2,
        );
        check(
            "a:\n- tests:\n  - x\ntests:\n-\n  a: 1\n- b: 2\nz: 1\n- c\n",
            2,
        );
        check("prompts:\n- x\n", 0);
        check("tests:\r\n- a: 1\r\n- b: 1\r\n", 2);
    }

    #[test]
    fn the_correction_of_an_item_is_read() {
        let yaml = "tests:\n  - metadata:\n      correction_id: 'CORR-012'\n  - correction_id: x\n";
        assert_eq!(yaml_tests(yaml), [Some(12), None]);
    }

    #[test]
    fn python_tests_are_told_by_their_name() {
        let check = |name, expected| assert_eq!(is_python_test(name), expected, "{name}");
        check("test_correction_1.py", true);
        check("test_correction_12.py", true);
        check("test_correction_.py", false);
        check("test_correction_1.pyc", false);
        check("conftest.py", false);
    }
}
