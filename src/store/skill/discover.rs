//! Skills directory: lists skills, loads one by name, and suggests similar names.

use std::path::{Path, PathBuf};

use memctl_files::Directory;

use crate::model::SkillPath;
use crate::store::skill::bundled::{BundledFile, is_below};
use crate::store::skill::front_matter::{self, Refused};
use crate::store::skill::guardrails::{self, Guardrail, Rewritten};
use crate::store::skill::root::{MAX_BYTES, Root, Within};
use crate::store::skill::{Error, Examples, Problem, Skill, above, cases, not_utf8};

/// Skills directory.
#[derive(Debug, Clone)]
pub struct Skills {
    pub(super) root: Root,
}

impl Skills {
    /// Opens a skills directory, usually the one next to `.agentura`. Its parent is the project
    /// root.
    ///
    /// # Errors
    ///
    /// [`Error::NoDirectory`] if it does not exist.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Root::open(dir).map(|root| Self { root })
    }

    /// Path for display and for records, relative to the project root.
    pub fn shown(&self, path: &Path) -> String {
        self.root.shown(path).display().to_string()
    }

    /// Loads a skill.
    ///
    /// # Errors
    ///
    /// [`Error`] if the skill does not exist, leads outside, or has no readable metadata.
    pub fn load(&self, path: &SkillPath) -> Result<Skill, Error> {
        let dir = self.dir_of(path);
        let file = dir.join("SKILL.md");
        let not_found = || Error::NotFound {
            skill: path.clone(),
            candidates: self.similar(&path.to_string()),
        };
        let text = self
            .root
            .read(&file, Within::Skills)?
            .ok_or_else(not_found)?;
        // On case-insensitive file systems `HR/x` also opens, and its records would belong to
        // another name.
        if !Self::is_spelled(&self.root.skills, path.domain())
            || !Self::is_spelled(&self.root.skills.below(path.domain()), path.name())
        {
            return Err(not_found());
        }
        let source = self.root.shown(&file);
        let mut problems = Vec::new();
        if text.lossy {
            problems.push(not_utf8(source.clone()));
        }
        let read = match front_matter::read(&text.text) {
            Ok(read) => read,
            Err(Refused::Missing) => return Err(Error::NoMetadata { path: source }),
            Err(Refused::Unreadable { line, reason }) => {
                return Err(Error::Metadata {
                    path: source,
                    line,
                    reason,
                });
            }
        };
        let context = above(&self.root, &dir, &mut problems)?;
        let mut skill = front_matter::skill(path, dir, source, read, problems)?;
        skill.context = context;
        let is_there = |file: &BundledFile| {
            is_below(&file.path) && self.root.has_file(&skill.dir.join(&file.path))
        };
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
        cases::examples(&self.root, &self.dir_of(path))
    }

    /// Default input: `fixtures/sample_input.json`, if it exists.
    ///
    /// # Errors
    ///
    /// [`Error::Outside`] if it leads outside.
    pub fn sample_input(&self, path: &SkillPath) -> Result<Option<PathBuf>, Error> {
        cases::sample_input(&self.root, &self.dir_of(path))
    }

    /// Text of a file of a skill (an input), with `\n` line ends; `None` if the file does not
    /// exist.
    ///
    /// # Errors
    ///
    /// [`Error`] if the file leads outside, is too large or cannot be read.
    pub fn read(&self, file: &Path) -> Result<Option<String>, Error> {
        let text = self.root.read(file, Within::Skills)?;
        Ok(text.map(|text| text.text))
    }

    /// Existing GUARDRAILS.md files for a skill: its own, then that of its domain.
    ///
    /// # Errors
    ///
    /// [`Error::Outside`] if one leads outside.
    pub fn guardrail_files(&self, path: &SkillPath) -> Result<Vec<PathBuf>, Error> {
        let dir = self.dir_of(path);
        let mut files = Vec::new();
        for dir in dir.ancestors().take(2) {
            let file = dir.join("GUARDRAILS.md");
            if self.root.kind(&file)?.is_some() {
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
        let bytes = self.root.bytes(MAX_BYTES, file, Within::Skills)?;
        let text = String::from_utf8(bytes.unwrap_or_default())
            .map_err(|error| self.root.io(file, std::io::Error::other(error)))?;
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
    /// [`Error::Io`] if the file is read-only.
    pub fn expect_writable(&self, file: &Path) -> Result<(), Error> {
        let open = self.root.skills.open(file);
        let open = open.map_err(|error| self.root.io(file, error))?;
        let metadata = open.map(|open| open.metadata()).transpose();
        let metadata = metadata.map_err(|error| self.root.io(file, error))?;
        if metadata.is_some_and(|metadata| metadata.permissions().readonly()) {
            let denied =
                std::io::Error::new(std::io::ErrorKind::ReadOnlyFilesystem, "read-only file");
            return Err(self.root.io(file, denied));
        }
        Ok(())
    }

    /// Path for writing a file of a skill, from a path relative to the skill's directory.
    ///
    /// # Errors
    ///
    /// [`Error::Outside`] if the file, or a directory on the way to it, is not inside the skills
    /// directory.
    pub fn place(&self, path: &SkillPath, relative: &Path) -> Result<PathBuf, Error> {
        self.root.place(&self.dir_of(path), relative)
    }

    /// Path for writing a file of a domain.
    ///
    /// # Errors
    ///
    /// [`Error::Outside`] if the file, or the domain's directory, is not inside the skills
    /// directory.
    pub fn place_in_domain(&self, domain: &str, name: &str) -> Result<PathBuf, Error> {
        self.root
            .place(&self.root.skills, &Path::new(domain).join(name))
    }

    /// Handle of the skills directory.
    pub fn directory(&self) -> &Directory {
        &self.root.skills
    }

    /// Files of a skill's regression cases, oldest correction first.
    ///
    /// # Errors
    ///
    /// [`Error`] if their directory cannot be listed or leads outside.
    pub fn case_files(&self, path: &SkillPath) -> Result<Vec<PathBuf>, Error> {
        cases::case_files(&self.root, &self.dir_of(path))
    }

    /// Unchanged text of a generated file; `None` if it does not exist. The size limit is higher
    /// than for handwritten files.
    ///
    /// # Errors
    ///
    /// [`Error`] if the file leads outside, is too large, or is not UTF-8.
    pub fn generated(&self, file: &Path) -> Result<Option<String>, Error> {
        let bytes = self
            .root
            .bytes(cases::MAX_CASES_BYTES, file, Within::Skills)?;
        bytes
            .map(String::from_utf8)
            .transpose()
            .map_err(|error| self.root.io(file, std::io::Error::other(error)))
    }

    /// Number of regression tests generated from corrections, of one skill.
    pub fn count_generated_of(&self, path: &SkillPath) -> usize {
        cases::count(&self.root, &self.dir_of(path))
    }

    /// Number of regression tests generated from corrections, over all skills.
    pub fn count_generated_tests(&self) -> usize {
        let skills = self.list().unwrap_or_default().skills;
        skills
            .iter()
            .map(|skill| cases::count(&self.root, &self.dir_of(skill)))
            .sum()
    }

    fn dir_of(&self, path: &SkillPath) -> PathBuf {
        self.root.skills.join(path.domain()).join(path.name())
    }

    fn is_spelled(dir: &Directory, name: &str) -> bool {
        // If the directory cannot be listed, the spelling cannot be checked.
        dir.list()
            .map_or(true, |found| found.iter().any(|f| f.name == name))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;

    use super::*;
    use crate::store::skill::Role;

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
        assert_eq!(
            (skill.name.as_str(), skill.description.as_str()),
            ("x", "Screens.")
        );
        assert_eq!(
            (skill.model.as_deref(), skill.role),
            (Some("a/b"), Role::Agent)
        );
        assert_eq!(
            skill.keys,
            ["name", "description", "role", "model", "extra"]
        );
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
        assert_eq!(skill.description, "Use: caf\u{fffd}");
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
