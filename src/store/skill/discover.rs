//! Skills directory: lists skills, loads one by name, and suggests similar names; examples and inputs of a
//! skill, and its regression tests.
//!
//! `examples/*.json` hold `{"input", "output"}`: answers that the author expects. Without a model, the nearest
//! example is the answer. `fixtures/*.json` are sample inputs. Values are kept as JSON text, unchanged. A
//! broken file is reported as a problem, and the others still load.
//!
//! Generated regression tests are counted for files of any origin. A correction counts once: its Python and
//! YAML exports are copies of its case. Unreadable files count as zero.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use memctl_files::{Directory, FoundKind, yaml};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::SkillPath;
use crate::model::error::message;
use crate::store::Error;
use crate::store::skill::front_matter::{self, BundledFile, is_below};
use crate::store::skill::guardrails::{self, Guardrail, Rewritten};
use crate::store::skill::root::Skills;
use crate::store::skill::{Problem, Skill, not_utf8};

impl Skills {
    /// Loads a skill.
    ///
    /// # Errors
    ///
    /// [`Error`] if the skill does not exist, leads outside, or has no readable metadata.
    pub fn load(&self, path: &SkillPath) -> Result<Skill, Error> {
        let dir = self.dir_of(path);
        let file = dir.join("SKILL.md");
        let not_found = || Error::NoSkill {
            skill: path.clone(),
            candidates: self.similar(&path.to_string()),
        };
        let text = self.text(&file)?.ok_or_else(not_found)?;
        // On case-insensitive file systems `HR/x` also opens, and its records would belong to
        // another name.
        if !Self::is_spelled(self.directory(), path.domain())
            || !Self::is_spelled(&self.directory().below(path.domain()), path.name())
        {
            return Err(not_found());
        }
        let source = self.relative(&file);
        let mut problems = Vec::new();
        if text.lossy {
            problems.push(not_utf8(source.clone()));
        }
        let read = match front_matter::read(&text.text) {
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
                return Err(front_matter::unreadable(&source, line, &reason));
            }
        };
        let context = self.above(&dir, &mut problems)?;
        let mut skill = front_matter::skill(path, dir, source, read, problems)?;
        skill.context = context;
        let is_there =
            |file: &BundledFile| is_below(&file.path) && self.has_file(&skill.dir.join(&file.path));
        let (files, missing): (Vec<_>, Vec<BundledFile>) =
            skill.files.iter().cloned().partition(is_there);
        skill
            .problems
            .extend(missing.into_iter().map(|file| Problem {
                path: skill.source.clone(),
                line: None,
                message: format!(
                    "`files` names `{}`, which is no file of the skill",
                    file.path
                ),
            }));
        skill.files = files;
        Ok(skill)
    }

    /// Examples of a skill.
    ///
    /// # Errors
    ///
    /// [`Error`] if the directory of examples cannot be listed or leads outside.
    pub fn examples(&self, path: &SkillPath) -> Result<Examples, Error> {
        let mut all = Examples::default();
        for path in self.json_files(&self.dir_of(path).join("examples"))? {
            let mut problem = |line, message| {
                let path = self.relative(&path);
                all.problems.push(Problem {
                    path,
                    line,
                    message,
                });
            };
            let file = match self.text(&path) {
                Ok(Some(file)) => file,
                // Deleted since the directory was listed.
                Ok(None) => continue,
                Err(error) => {
                    problem(None, message(&error));
                    continue;
                }
            };
            match serde_json::from_str::<Case>(&file.text) {
                Ok(Case { input, output }) => {
                    if file.lossy {
                        all.problems.push(not_utf8(self.relative(&path)));
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

    /// Default input of `run`: `fixtures/sample_input.json`, if it exists.
    ///
    /// # Errors
    ///
    /// [`Error::BadSkill`] if it leads outside.
    pub fn sample_input(&self, path: &SkillPath) -> Result<Option<PathBuf>, Error> {
        let path = self.dir_of(path).join("fixtures/sample_input.json");
        Ok(self.kind(&path)?.map(|_| path))
    }

    /// Text of a file of a skill (an input), with `\n` line ends; `None` if the file does not
    /// exist.
    ///
    /// # Errors
    ///
    /// [`Error`] if the file leads outside, is too large or cannot be read.
    pub fn read(&self, file: &Path) -> Result<Option<String>, Error> {
        let text = self.text(file)?;
        Ok(text.map(|text| text.text))
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

    /// Text of such a file with one more guardrail; `None` if it is already there. All other bytes
    /// stay unchanged.
    ///
    /// # Errors
    ///
    /// [`Error`] if the file cannot be read or is not UTF-8, since writing it back would change it.
    pub fn with_guardrail(
        &self,
        file: &Path,
        guardrail: &Guardrail<'_>,
    ) -> Result<Option<String>, Error> {
        let text = self.generated(file)?.unwrap_or_default();
        Ok(guardrails::append(&text, guardrail))
    }

    /// Such a file without a guardrail, or with `new` in its place: its text before, and after.
    ///
    /// # Errors
    ///
    /// [`Error`] if the file cannot be read, is not UTF-8 or is read-only.
    pub fn rewrite_guardrail(
        &self,
        file: &Path,
        old: &Guardrail<'_>,
        new: Option<&Guardrail<'_>>,
    ) -> Result<(String, Rewritten), Error> {
        let text = self.generated(file)?.unwrap_or_default();
        let rewritten = guardrails::rewrite(&text, old, new);
        if rewritten.text.is_some() {
            self.expect_writable(file)?;
        }
        Ok((text, rewritten))
    }

    /// Fails if a file is read-only. Its directory would let it be replaced all the same, but a
    /// person has protected it.
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

    /// Path for writing a file of a skill, from a path relative to the skill's directory.
    ///
    /// # Errors
    ///
    /// [`Error::BadSkill`] if the file, or a directory on the way to it, is not inside the skills
    /// directory.
    pub fn place(&self, path: &SkillPath, relative: &Path) -> Result<PathBuf, Error> {
        self.place_below(&self.dir_of(path), relative)
    }

    /// Path for writing a file of a domain.
    ///
    /// # Errors
    ///
    /// [`Error::BadSkill`] if the file, or the domain's directory, is not inside the skills
    /// directory.
    pub fn place_in_domain(&self, domain: &str, name: &str) -> Result<PathBuf, Error> {
        self.place_below(self.directory(), &Path::new(domain).join(name))
    }

    /// Files of a skill's regression cases, oldest correction first.
    ///
    /// # Errors
    ///
    /// [`Error`] if their directory cannot be listed or leads outside.
    pub fn case_files(&self, path: &SkillPath) -> Result<Vec<PathBuf>, Error> {
        let dir = self.dir_of(path).join("tests").join("generated");
        let listed = self.directory().below(&dir).list();
        let mut found: Vec<(u64, PathBuf)> = listed
            .map_err(|source| self.io(&dir, source))?
            .into_iter()
            .filter_map(|found| {
                let name = found.name;
                Some((number(name.to_str()?, ".json")?, dir.join(name)))
            })
            .collect();
        found.sort();
        Ok(found.into_iter().map(|(_, path)| path).collect())
    }

    /// Files of a skill that hold the words of its corrections: the cases, and their exports for other tools.
    ///
    /// # Errors
    ///
    /// [`Error`] if their directory cannot be listed or leads outside.
    pub fn test_files(&self, path: &SkillPath) -> Result<Vec<PathBuf>, Error> {
        let mut files = self.case_files(path)?;
        let dir = self.dir_of(path).join("tests").join("generated");
        let listed = self.directory().below(&dir).list();
        let listed = listed.map_err(|source| self.io(&dir, source))?;
        let names = listed
            .iter()
            .filter_map(|found| found.name.to_str())
            .filter(|name| YAML_FILES.contains(name) || is_python_test(name));
        files.extend(names.map(|name| dir.join(name)));
        Ok(files)
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

    /// Number of regression tests generated from corrections, of one skill.
    pub fn count_generated_of(&self, path: &SkillPath) -> usize {
        let dir = self.dir_of(path).join("tests").join("generated");
        // Most skills have no generated tests, so this is all their work.
        let found = self.directory().below(&dir).list().unwrap_or_default();
        let names = || found.iter().filter_map(|found| found.name.to_str());
        let cases: BTreeSet<u64> = names().filter_map(|name| number(name, ".json")).collect();
        let mut total = cases.len();
        for name in names() {
            if YAML_FILES.contains(&name) {
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

    fn dir_of(&self, path: &SkillPath) -> PathBuf {
        self.directory().join(path.domain()).join(path.name())
    }

    fn is_spelled(dir: &Directory, name: &str) -> bool {
        // If the directory cannot be listed, the spelling cannot be checked.
        dir.list()
            .map_or(true, |found| found.iter().any(|f| f.name == name))
    }
}

/// Contents of a skills directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// All skills, sorted. They are not loaded, so loading one may still fail.
    pub skills: Vec<SkillPath>,
    /// Directories that look like a skill and have an error.
    pub problems: Vec<Problem>,
}

/// Minimum similarity (Jaro-Winkler) of a suggestion.
const SIMILAR: f64 = 0.8;
/// Maximum number of suggestions.
const MAX_CANDIDATES: usize = 3;

impl Skills {
    /// Lists every `<domain>/<skill>/` with a SKILL.md.
    ///
    /// # Errors
    ///
    /// [`Error::Unreadable`] if the skills directory cannot be listed. An unreadable domain is reported as
    /// a problem.
    pub fn list(&self) -> Result<Listing, Error> {
        let mut found = Listing::default();
        for domain in self.directories(self.directory(), &mut found.problems)? {
            if self.has_file(&domain.join("SKILL.md")) {
                found.problems.push(Problem {
                    path: self.relative(&domain.join("SKILL.md")),
                    line: None,
                    message: "is not in a domain: move it to `<domain>/<skill>/`".to_owned(),
                });
            }
            let skills = match self.directories(&domain, &mut found.problems) {
                Ok(skills) => skills,
                Err(error) => {
                    found.problems.push(self.problem(&domain, &error));
                    continue;
                }
            };
            for dir in skills
                .iter()
                .filter(|dir| self.has_file(&dir.join("SKILL.md")))
            {
                let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
                let path = name(&domain)
                    .zip(name(dir))
                    .map(|(d, s)| format!("{d}/{s}"));
                match path.map(|path| path.parse()) {
                    Some(Ok(path)) => found.skills.push(path),
                    Some(Err(error)) => found.problems.push(self.problem(dir, &error)),
                    None => found.problems.push(Problem {
                        path: self.relative(dir),
                        line: None,
                        message: "has a name that is not valid UTF-8".to_owned(),
                    }),
                }
            }
        }
        found.skills.sort();
        Ok(found)
    }

    /// Skills with names similar to `typed`, which may lack the domain; most similar first.
    pub fn similar(&self, typed: &str) -> Vec<SkillPath> {
        let typed = typed.trim().trim_matches('/').to_lowercase();
        let last = typed.rsplit('/').next().unwrap_or_default();
        let likeness = |skill: &SkillPath| {
            let whole = strsim::jaro_winkler(&typed, &skill.to_string().to_lowercase());
            // Correct name with a wrong or missing domain.
            let name = strsim::jaro_winkler(last, &skill.name().to_lowercase());
            whole.max(name)
        };
        let skills = self.list().unwrap_or_default().skills;
        let mut alike: Vec<(f64, SkillPath)> = skills
            .into_iter()
            .map(|skill| (likeness(&skill), skill))
            .filter(|(likeness, _)| *likeness >= SIMILAR)
            .collect();
        alike.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.cmp(y)));
        alike.truncate(MAX_CANDIDATES);
        alike.into_iter().map(|(_, skill)| skill).collect()
    }

    /// Subdirectories that can be a domain or a skill.
    fn directories(&self, dir: &Path, problems: &mut Vec<Problem>) -> Result<Vec<PathBuf>, Error> {
        let listed = self.directory().below(dir).list();
        let listed = listed.map_err(|source| self.io(dir, source))?;
        let mut directories = Vec::new();
        for found in listed {
            let path = dir.join(&found.name);
            if found.name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            match found.kind {
                FoundKind::Directory => directories.push(path),
                FoundKind::Link => {
                    let refused = self.kind(&path).err();
                    problems.extend(refused.map(|error| self.problem(&path, &error)));
                }
                FoundKind::File | FoundKind::Other => {}
            }
        }
        directories.sort();
        Ok(directories)
    }

    fn problem(&self, path: &Path, error: &(dyn std::error::Error + 'static)) -> Problem {
        Problem {
            path: self.relative(path),
            line: None,
            message: message(error),
        }
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
    /// One problem per unusable file, or per file with invalid UTF-8.
    pub problems: Vec<Problem>,
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
pub(super) mod tests {
    use std::fs;

    use super::*;

    /// A skills directory with these files.
    pub(crate) fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Skills) {
        let tmp = tempfile::tempdir().unwrap();
        fs::create_dir_all(tmp.path().join("skills")).unwrap();
        for (path, text) in files {
            let path = tmp.path().join("skills").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let skills = Skills::open(&tmp.path().join("skills")).unwrap();
        (tmp, skills)
    }

    const MINIMAL: &str = "---\nname: x\ndescription: d\n---\nDo it.";

    #[test]
    fn a_skill_is_read_whole() {
        let (tmp, skills) = tree(&[
            (
                "hr/x/SKILL.md",
                "\u{feff}---\r\nname: x\r\ndescription: >\r\n  Screens.\r\nrole: agent\r\n\
                 model: a/b\r\nextra: 1\r\n---\r\n\r\nDo it.\r\n",
            ),
            ("WORKSPACE.md", "w"),
        ]);
        let skill = skills.load(&"hr/x".parse().unwrap()).unwrap();
        assert_eq!(skill.dir, tmp.path().join("skills/hr/x"));
        assert_eq!(skill.model.as_deref(), Some("a/b"));
        assert_eq!(skill.problems, []);
        let layers: Vec<(u8, String)> = skill
            .layers()
            .into_iter()
            .map(|layer| (layer.number, layer.text))
            .collect();
        assert_eq!(layers, [(0, "w".to_owned()), (3, "Do it.".to_owned())]);
    }

    #[test]
    fn invalid_utf8_and_invalid_yaml_are_problems() {
        let (tmp, skills) = tree(&[("hr/x/SKILL.md", "")]);
        let bytes = b"---\nname: x\ndescription: Use: caf\xe9\n---\nx";
        fs::write(tmp.path().join("skills/hr/x/SKILL.md"), bytes).unwrap();
        fs::write(tmp.path().join("skills/hr/DOMAIN.md"), b"\xff").unwrap();
        let skill = skills.load(&"hr/x".parse().unwrap()).unwrap();
        let problems: Vec<String> = skill.problems.iter().map(ToString::to_string).collect();
        assert!(
            problems[0].starts_with("skills/hr/x/SKILL.md: has bytes"),
            "{problems:?}"
        );
        assert!(
            problems[1].starts_with("skills/hr/DOMAIN.md: has bytes"),
            "{problems:?}"
        );
        assert!(problems[2].starts_with("skills/hr/x/SKILL.md:3: the metadata is not valid"));
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
    fn a_guardrail_is_added_to_the_bytes_of_a_file() {
        let (tmp, skills) = tree(&[("hr/GUARDRAILS.md", "\u{feff}# G\r\n")]);
        let file = tmp.path().join("skills/hr/GUARDRAILS.md");
        let guardrail = Guardrail {
            title: "",
            rule: "r",
            correction_id: "CORR-001",
        };
        let new = skills.with_guardrail(&file, &guardrail).unwrap().unwrap();
        assert!(new.starts_with("\u{feff}# G\r\n\r\n---\r\n"));
        fs::write(&file, new).unwrap();
        assert_eq!(skills.with_guardrail(&file, &guardrail).unwrap(), None);
        fs::write(&file, b"caf\xe9").unwrap();
        assert!(skills.with_guardrail(&file, &guardrail).is_err());
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

#[cfg(test)]
mod tests_of_listing {
    use std::fs;

    use super::tests::tree;
    use super::*;

    const MINIMAL: &str = "---\nname: x\ndescription: d\n---\nDo it.";

    fn names(skills: &[SkillPath]) -> Vec<String> {
        skills.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_directory_with_a_skill_file_is_listed() {
        let (_tmp, skills) = tree(&[
            ("hr/triage/SKILL.md", ""),
            ("dev/triage/SKILL.md", ""),
            ("dev/no-skill/README.md", ""),
            (".git/x/SKILL.md", ""),
            ("hr/.old/SKILL.md", ""),
            ("hr/my skill/SKILL.md", ""),
            ("flat/SKILL.md", ""),
            ("WORKSPACE.md", ""),
        ]);
        let listing = skills.list().unwrap();
        assert_eq!(names(&listing.skills), ["dev/triage", "hr/triage"]);
        let problems: Vec<String> = listing.problems.iter().map(ToString::to_string).collect();
        assert!(
            problems[0].starts_with("skills/flat/SKILL.md: is not in a domain"),
            "{problems:?}"
        );
        assert!(
            problems[1].starts_with("skills/hr/my skill: "),
            "{problems:?}"
        );
        assert_eq!(problems.len(), 2);
    }

    #[test]
    fn similar_skills_are_offered() {
        let (_tmp, skills) = tree(&[
            ("hr/resume-screen/SKILL.md", MINIMAL),
            ("hr/interview-questions/SKILL.md", MINIMAL),
            ("dev/code-review/SKILL.md", MINIMAL),
            ("support/code-review/SKILL.md", MINIMAL),
        ]);
        let check = |typed: &str, expected: &[&str]| {
            assert_eq!(names(&skills.similar(typed)), expected, "{typed}");
        };
        check("hr/resume-scren", &["hr/resume-screen"]);
        check("resume-screen", &["hr/resume-screen"]);
        check("HR/Resume-Screen/", &["hr/resume-screen"]);
        check(
            "ops/code-review",
            &["dev/code-review", "support/code-review"],
        );
        check("finance/expenses", &[]);
        check("", &[]);
        let error = skills
            .load(&"hr/resume-scren".parse().unwrap())
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "skill `hr/resume-scren` not found; did you mean `hr/resume-screen`?"
        );
    }

    #[test]
    #[cfg_attr(windows, ignore = "Wine makes no symbolic links")]
    fn nothing_outside_is_read_through_links() {
        use memctl_files::make_link as symlink;
        let (tmp, skills) = tree(&[("hr/x/SKILL.md", MINIMAL), ("hr/z/README.md", "")]);
        let outside = tmp.path().join("outside/y");
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("SKILL.md"), MINIMAL).unwrap();
        let dir = tmp.path().join("skills");
        symlink(&outside, dir.join("hr/y")).unwrap();
        symlink(outside.join("SKILL.md"), dir.join("hr/z/SKILL.md")).unwrap();
        symlink(tmp.path().join("outside"), dir.join("ops")).unwrap();
        symlink(dir.join("hr/x"), dir.join("hr/alias")).unwrap();
        for path in ["hr/y", "hr/z", "ops/y"] {
            let error = skills.load(&path.parse().unwrap()).unwrap_err();
            assert!(matches!(error, Error::BadSkill(..)), "{path}: {error}");
        }
        // A link within the directory is refused too.
        assert!(skills.load(&"hr/alias".parse().unwrap()).is_err());
        let listing = skills.list().unwrap();
        assert_eq!(names(&listing.skills), ["hr/x"]);
        assert_eq!(listing.problems.len(), 3, "{:?}", listing.problems);

        symlink(outside.join("SKILL.md"), dir.join("hr/x/GUARDRAILS.md")).unwrap();
        let x = "hr/x".parse().unwrap();
        assert!(skills.guardrail_files(&x).is_err());
        symlink(outside.join("SKILL.md"), dir.join("WORKSPACE.md")).unwrap();
        assert!(skills.load(&x).is_err());
    }

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
}
