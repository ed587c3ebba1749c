//! Files around a SKILL.md: examples and inputs, guardrails, and regression tests from corrections.
//!
//! `examples/*.json` hold `{"input", "output"}`: answers that the author expects. Without a model, the nearest
//! example is the answer. `fixtures/*.json` are sample inputs. Values are kept as JSON text, unchanged. A
//! broken file is reported as a problem, and the others still load.
//!
//! Generated regression tests are counted for files of any origin. A correction counts once: its Python and
//! YAML exports are copies of its case. Unreadable files count as zero.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use memctl_files::{FoundKind, yaml};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::SkillPath;
use crate::model::error::message;
use crate::store::Error;
use crate::store::skill::Skills;
use crate::store::skill::guardrails;

impl Skills {
    /// Examples of a skill.
    ///
    /// # Errors
    ///
    /// [`Error`] if the directory of examples cannot be listed or leads outside.
    pub fn examples(&self, path: &SkillPath) -> Result<Examples, Error> {
        let mut all = Examples::default();
        for path in self.json_files(&self.dir_of(path).join("examples"))? {
            let file = match self.read(&path) {
                Ok(Some(file)) => file,
                // Deleted since the directory was listed.
                Ok(None) => continue,
                Err(error) => {
                    all.problems.push(self.problem(&path, &message(&error)));
                    continue;
                }
            };
            match serde_json::from_str::<Case>(&file) {
                Ok(Case { input, output }) => {
                    let name = path.file_stem().unwrap_or_default();
                    all.cases.push(Example {
                        name: name.to_string_lossy().into_owned(),
                        input,
                        output,
                    });
                }
                Err(error) => {
                    let message = format!("is not an {{\"input\", \"output\"}} case: {error}");
                    all.problems.push(self.problem(&path, &message));
                }
            }
        }
        Ok(all)
    }

    /// Default input of `run`: `fixtures/sample_input.json`, if it exists.
    ///
    /// # Errors
    ///
    /// [`Error::BadSkill`] if it leads outside.
    pub fn sample_input(&self, path: &SkillPath) -> Result<Option<PathBuf>, Error> {
        let path = self.dir_of(path).join("fixtures/sample_input.json");
        Ok(self.kind(&path)?.map(|_| path))
    }

    /// Existing GUARDRAILS.md files for a skill: its own, then that of its domain.
    ///
    /// # Errors
    ///
    /// [`Error::BadSkill`] if one leads outside.
    pub fn guardrail_files(&self, path: &SkillPath) -> Result<Vec<PathBuf>, Error> {
        let dir = self.dir_of(path);
        let mut files = Vec::new();
        for dir in dir.ancestors().take(2) {
            let file = dir.join("GUARDRAILS.md");
            if self.kind(&file)?.is_some() {
                files.push(file);
            }
        }
        Ok(files)
    }

    /// Fails if a file is read-only. Its directory would allow a replacement, but a
    /// person has protected the file.
    ///
    /// # Errors
    ///
    /// [`Error::Unreadable`] if the file is read-only.
    pub fn expect_writable(&self, file: &Path) -> Result<(), Error> {
        let open = self.directory().open(file);
        let open = open.map_err(|error| self.io(file, error))?;
        let metadata = open.map(|open| open.metadata()).transpose();
        let metadata = metadata.map_err(|error| self.io(file, error))?;
        if metadata.is_some_and(|metadata| metadata.permissions().readonly()) {
            let denied =
                std::io::Error::new(std::io::ErrorKind::ReadOnlyFilesystem, "read-only file");
            return Err(self.io(file, denied));
        }
        Ok(())
    }

    /// Files of a skill's regression cases, oldest correction first.
    ///
    /// # Errors
    ///
    /// [`Error`] if their directory cannot be listed or leads outside.
    pub fn case_files(&self, path: &SkillPath) -> Result<Vec<PathBuf>, Error> {
        let (dir, names) = self.generated_files(path)?;
        let cases = names
            .iter()
            .filter_map(|name| number(name, ".json").zip(Some(name)));
        let mut cases: Vec<_> = cases.collect();
        cases.sort();
        Ok(cases.into_iter().map(|(_, name)| dir.join(name)).collect())
    }

    /// Files of a skill that hold the words of its corrections: the cases, and their exports for other tools.
    ///
    /// # Errors
    ///
    /// [`Error`] if their directory cannot be listed or leads outside.
    pub fn test_files(&self, path: &SkillPath) -> Result<Vec<PathBuf>, Error> {
        let mut files = self.case_files(path)?;
        let (dir, names) = self.generated_files(path)?;
        let is_export =
            |name: &&String| YAML_FILES.contains(&name.as_str()) || is_python_test(name);
        files.extend(names.iter().filter(is_export).map(|name| dir.join(name)));
        Ok(files)
    }

    /// Directory of a skill's regression tests, and the names of its files.
    fn generated_files(&self, path: &SkillPath) -> Result<(PathBuf, Vec<String>), Error> {
        let dir = self.dir_of(path).join("tests").join("generated");
        let listed = self.directory().below(&dir).list();
        let listed = listed.map_err(|source| self.io(&dir, source))?.into_iter();
        let names = listed.filter_map(|found| found.name.into_string().ok());
        Ok((dir, names.collect()))
    }

    /// Unchanged text of a generated file; `None` if it does not exist. The size limit is higher
    /// than for handwritten files.
    ///
    /// # Errors
    ///
    /// [`Error`] if the file leads outside, is too large, or is not UTF-8.
    pub fn generated(&self, file: &Path) -> Result<Option<String>, Error> {
        let bytes = self.bytes(MAX_CASES_BYTES, file)?;
        bytes
            .map(String::from_utf8)
            .transpose()
            .map_err(|error| self.io(file, std::io::Error::other(error)))
    }

    /// Highest number of a correction that a test or a guardrail of a skill names; 0 if there is none. Their
    /// corrections may be in another memory: a skill folder is copied with them.
    pub fn highest_correction(&self, path: &SkillPath) -> u64 {
        let (_, names) = self.generated_files(path).unwrap_or_default();
        let tests = names.iter().filter_map(|name| {
            let stem = name.rsplit_once('.')?.0;
            number(stem, "")
        });
        let files = self.guardrail_files(path).unwrap_or_default().into_iter();
        let sources = files.filter_map(|file| {
            let text = self.generated(&file).ok().flatten()?;
            Some(guardrails::highest_source(&text))
        });
        tests.chain(sources).max().unwrap_or_default()
    }

    /// Number of regression tests generated from corrections, of one skill.
    pub fn count_generated_of(&self, path: &SkillPath) -> usize {
        let (dir, names) = self.generated_files(path).unwrap_or_default();
        let cases: BTreeSet<u64> = names
            .iter()
            .filter_map(|name| number(name, ".json"))
            .collect();
        let mut total = cases.len();
        for name in &names {
            if YAML_FILES.contains(&name.as_str()) {
                let file = self.bytes(MAX_CASES_BYTES, &dir.join(name));
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

    /// Number of regression tests generated from corrections, over all skills.
    pub fn count_generated_tests(&self) -> usize {
        let skills = self.list().unwrap_or_default().skills;
        skills
            .iter()
            .map(|skill| self.count_generated_of(skill))
            .sum()
    }

    /// Sorted `*.json` files of a directory, without hidden ones; empty if the directory does not
    /// exist.
    fn json_files(&self, dir: &Path) -> Result<Vec<PathBuf>, Error> {
        if self.kind(dir)? != Some(FoundKind::Directory) {
            return Ok(Vec::new());
        }
        let found = self.directory().below(dir).list();
        let mut files = Vec::new();
        for found in found.map_err(|source| self.io(dir, source))? {
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
}

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
    /// One problem per unusable file.
    pub problems: Vec<String>,
}

/// File format. Other keys are notes of the author.
#[derive(Deserialize)]
struct Case {
    input: Box<RawValue>,
    output: Box<RawValue>,
}

/// YAML files with tests: ours, and that of the reference implementation.
const YAML_FILES: [&str; 2] = ["test_promptfoo.yaml", "corrections.yaml"];

/// Size limit in bytes. Each case quotes its correction, which can be long.
const MAX_CASES_BYTES: u64 = 64 * 1024 * 1024;

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

/// Items of the `tests:` list of a file, each with the number of its correction, if it names one.
fn yaml_tests(text: &str) -> Vec<Option<u64>> {
    let read = yaml::parse(text).unwrap_or_default();
    let items = read["tests"].as_array().into_iter().flatten();
    let number = |item: &Value| {
        let id = item["metadata"]["correction_id"].as_str()?;
        id.strip_prefix("CORR-")?.parse().ok()
    };
    items.map(number).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::store::skill::tests_of_loading::tree;

    const MINIMAL: &str = "---\nname: x\ndescription: d\n---\nDo it.";

    #[test]
    fn a_broken_example_does_not_hide_the_others() {
        let (_tmp, skills) = tree(&[
            (
                "hr/x/examples/b.json",
                "{\"input\": {\"n\": 1.0}, \"output\": 1, \"note\": \"x\"}",
            ),
            (
                "hr/x/examples/a.json",
                "\u{feff}{\"output\": [ ], \"input\": null}",
            ),
            ("hr/x/examples/c.json", "{\"input\": 1,\n"),
            ("hr/x/examples/d.json", "{\"input\": 1}"),
            ("hr/x/examples/e.txt", "not one"),
            ("hr/x/examples/.f.json", "not one"),
        ]);
        let all = skills.examples(&"hr/x".parse().unwrap()).unwrap();
        let shown: Vec<String> = all
            .cases
            .iter()
            .map(|case| format!("{} {} {}", case.name, case.input, case.output))
            .collect();
        assert_eq!(shown, ["a null [ ]", "b {\"n\": 1.0} 1"]);
        let problems = all.problems;
        assert!(
            problems[0].starts_with("skills/hr/x/examples/c.json: "),
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
        let (_tmp, skills) = tree(&[
            ("hr/x/fixtures/other.json", "{}"),
            ("hr/x/examples", "a file"),
        ]);
        assert!(
            skills
                .examples(&"hr/x".parse().unwrap())
                .unwrap()
                .cases
                .is_empty()
        );
        assert_eq!(skills.sample_input(&"hr/x".parse().unwrap()).unwrap(), None);
    }

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
        check("a:\n- tests:\n  - x\ntests:\n-\n  a: 1\n- b: 2\nz: 1\n", 2);
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

    #[test]
    fn guardrail_files_are_those_that_exist() {
        let (tmp, skills) = tree(&[("hr/x/SKILL.md", MINIMAL), ("GUARDRAILS.md", "")]);
        let x = "hr/x".parse().unwrap();
        assert_eq!(skills.guardrail_files(&x).unwrap(), [] as [PathBuf; 0]);
        let hr = tmp.path().join("skills/hr");
        for file in ["x/GUARDRAILS.md", "GUARDRAILS.md"] {
            fs::write(hr.join(file), "").unwrap();
        }
        assert_eq!(
            skills.guardrail_files(&x).unwrap(),
            [hr.join("x/GUARDRAILS.md"), hr.join("GUARDRAILS.md")]
        );
    }

    #[test]
    fn a_generated_file_is_read_byte_for_byte() {
        let (tmp, skills) = tree(&[("hr/GUARDRAILS.md", "\u{feff}# G\r\n")]);
        let file = tmp.path().join("skills/hr/GUARDRAILS.md");
        let text = skills.generated(&file).unwrap();
        assert_eq!(text.as_deref(), Some("\u{feff}# G\r\n"));
        fs::write(&file, b"caf\xe9").unwrap();
        assert!(skills.generated(&file).is_err());
    }

    #[test]
    fn generated_tests_are_counted_over_all_skills() {
        let (_tmp, skills) = tree(&[
            ("hr/x/SKILL.md", MINIMAL),
            ("hr/x/tests/generated/test_correction_1.py", ""),
            ("hr/x/tests/generated/test_correction_2.py", ""),
            (
                "hr/x/tests/generated/test_promptfoo.yaml",
                "tests:\n  - a: 1\n  - b: 2\n",
            ),
            ("hr/x/tests/generated/corrections.yaml", "tests:\n- a: 1\n"),
            ("hr/x/tests/generated/notes.md", ""),
            ("dev/y/SKILL.md", MINIMAL),
            ("dev/y/tests/test_correction_9.py", ""),
            ("dev/no-skill/tests/generated/test_correction_1.py", ""),
        ]);
        assert_eq!(skills.count_generated_tests(), 5);
    }

    #[test]
    fn a_correction_with_exports_is_one_test() {
        let (_tmp, skills) = tree(&[
            ("hr/x/SKILL.md", MINIMAL),
            ("hr/x/tests/generated/test_correction_1.json", "{}"),
            ("hr/x/tests/generated/test_correction_1.py", ""),
            ("hr/x/tests/generated/test_correction_2.json", "{}"),
            (
                "hr/x/tests/generated/test_promptfoo.yaml",
                "tests:\n  - metadata:\n      correction_id: 'CORR-001'\n  - vars: {}\n",
            ),
        ]);
        assert_eq!(skills.count_generated_tests(), 3);
    }
}
