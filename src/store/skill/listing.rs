//! List of skills, and suggestions for similar names.

use std::path::{Path, PathBuf};

use memctl_files::FoundKind;

use crate::model::SkillPath;
use crate::store::skill::{Error, Problem, Skills, with_cause};

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
    /// [`Error::Io`] if the skills directory cannot be listed. An unreadable domain is reported as
    /// a problem.
    pub fn list(&self) -> Result<Listing, Error> {
        let mut found = Listing::default();
        for domain in self.directories(&self.root.skills, &mut found.problems)? {
            if self.root.has_file(&domain.join("SKILL.md")) {
                found.problems.push(Problem {
                    path: self.root.shown(&domain.join("SKILL.md")),
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
                .filter(|dir| self.root.has_file(&dir.join("SKILL.md")))
            {
                let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
                let path = name(&domain)
                    .zip(name(dir))
                    .map(|(d, s)| format!("{d}/{s}"));
                match path.map(|path| path.parse()) {
                    Some(Ok(path)) => found.skills.push(path),
                    Some(Err(error)) => found.problems.push(self.problem(dir, &error)),
                    None => found.problems.push(Problem {
                        path: self.root.shown(dir),
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
        let listed = self.root.skills.below(dir).list();
        let listed = listed.map_err(|source| self.root.io(dir, source))?;
        let mut directories = Vec::new();
        for found in listed {
            let path = dir.join(&found.name);
            if found.name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            match found.kind {
                FoundKind::Directory => directories.push(path),
                FoundKind::Link => {
                    let refused = self.root.kind(&path).err();
                    problems.extend(refused.map(|error| self.problem(&path, &error)));
                }
                FoundKind::File | FoundKind::Other => {}
            }
        }
        directories.sort();
        Ok(directories)
    }

    fn problem(&self, path: &Path, error: &dyn std::error::Error) -> Problem {
        Problem {
            path: self.root.shown(path),
            line: None,
            message: with_cause(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::store::skill::discover::tests::tree;

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
            assert!(matches!(error, Error::Link { .. }), "{path}: {error}");
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
