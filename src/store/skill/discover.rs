//! Skills directory: lists skills, loads one by name with the layers above it, and suggests similar names.

use std::path::{Path, PathBuf};

use memctl_files::{Directory, FoundKind, named};

use crate::model::SkillPath;
use crate::model::error::message;
use crate::store::Error;
use crate::store::skill::loaded::{self, BundledFile, Layer, Problem, Skill, is_below, not_utf8};
use crate::store::skill::{Skills, front_matter};

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
                candidates: self.similar(&path.to_string()),
            }
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
                return Err(loaded::unreadable(&source, line, &reason));
            }
        };
        let context = self.above(&dir, &mut problems)?;
        let mut skill = loaded::skill(path, dir, source, read, problems)?;
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

    /// Layers 0 and 1 of the skill in this directory.
    pub(super) fn above(
        &self,
        skill_dir: &Path,
        problems: &mut Vec<Problem>,
    ) -> Result<Vec<Layer>, Error> {
        let mut layers = Vec::new();
        for (number, name) in [(0, "WORKSPACE.md"), (1, "DOMAIN.md")] {
            for dir in skill_dir.ancestors() {
                let path = dir.join(name);
                let file = if dir.starts_with(self.directory()) {
                    self.text(&path)?
                } else if number == 0 {
                    self.text_of_project(name)?
                } else {
                    break;
                };
                if let Some(file) = file {
                    let source = self.relative(&path);
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
}
