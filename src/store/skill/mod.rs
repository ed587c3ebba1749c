//! Skills on disk: `skills/<domain>/<skill>/SKILL.md` and the files around it.
//!
//! ```text
//! skills/
//!   WORKSPACE.md                    layer 0: common to all skills
//!   hr/
//!     DOMAIN.md  GUARDRAILS.md      layer 1, and mistakes to avoid
//!     resume-screen/
//!       SKILL.md  GUARDRAILS.md     layer 3: metadata and the prompt
//!       examples/*.json             {"input", "output"} cases
//!       fixtures/*.json             sample inputs
//!       tests/generated/            regression tests from corrections
//! ```
//!
//! Invariants:
//! - The directories name a skill. The name and domain in the metadata are for display only; a
//!   difference is a problem. They never decide which rules, tests or records belong to a
//!   skill.
//! - No file outside the skills directory is read, even through symbolic links. The one exception
//!   is `WORKSPACE.md` next to the skills directory, in the project root.
//! - Only a defect that makes a skill unusable is an [`Error`]. Everything else is a problem of
//!   a working skill.
//!
//! Deliberately absent: writing (other modules write to paths that [`Skills::place`] allows), and
//! the learned rules, which are layer 2 and come from the store.
//!
//! Messages of errors name the file relative to the project root; the caller adds a hint.
//!
//! `WORKSPACE.md` is looked up in the skill, the domain, the skills directory and the project root;
//! `DOMAIN.md` in the first three. The nearest file wins, even if it is empty, so an empty file
//! lets a skill opt out of its domain's layer. An empty layer is left out.
//!
//! Every read of a skill goes through [`Skills`], here. Symbolic links are not followed, neither the directory
//! itself nor anything below it, wherever they lead. Copy a skill to have it under two names.

mod files;
pub mod guardrails;
mod loaded;

use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use memctl_files::text::decoded;
use memctl_files::{Directory, FoundKind, Reason, Refused, named};

use crate::model::error::message;
use crate::model::{InvalidSkillPath, SkillPath};
use crate::store::Error;

pub use crate::store::skill::files::{Example, Examples};
pub use crate::store::skill::loaded::{BundledFile, FrontMatter, Layer, Skill, read_front_matter};

/// Size limit of a file of a skill: 1 MiB, some two hundred times a reasonable prompt.
pub const MAX_BYTES: u64 = 1024 * 1024;

/// Skills directory.
#[derive(Debug, Clone)]
pub struct Skills {
    /// Handle of the directory, with an absolute path.
    directory: Directory,
    /// Parent of the directory.
    project: PathBuf,
}

impl Skills {
    /// Opens a skills directory, usually the one next to `.agentura`. Its parent is the project
    /// root.
    ///
    /// # Errors
    ///
    /// [`Error::NoSkills`] if it does not exist.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        // The parent of `a/..` is not `a`, and that of `skills` is not the empty path.
        let plain = dir.is_absolute() && !dir.components().any(|c| c == Component::ParentDir);
        let skills = if plain {
            Directory::at(dir)
        } else {
            named::directory(dir)
        };
        let project = skills.parent().unwrap_or(&skills).to_owned();
        match skills.hold() {
            Ok(directory) => Ok(Self { directory, project }),
            Err(source) if matches!(reason(&source), Some(Reason::Link)) => {
                Err(Error::unreadable(dir)(source))
            }
            Err(_) => Err(Error::NoSkills(dir.to_owned())),
        }
    }

    /// Handle of the skills directory.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Path for display and for records, relative to the project root.
    pub fn shown(&self, path: &Path) -> String {
        self.relative(path).display().to_string()
    }

    /// Path relative to the project root.
    fn relative(&self, path: &Path) -> PathBuf {
        named::relative(path, &self.project)
    }

    /// Kind of the entry at a path below the skills directory; `None` if it does not exist.
    fn kind(&self, path: &Path) -> Result<Option<FoundKind>, Error> {
        match self.found(path, self.directory.kind(path))? {
            Some(FoundKind::Link) => Err(self.refused(path, Reason::Link)),
            kind => Ok(kind),
        }
    }

    /// Returns `true` if the path is a file.
    fn has_file(&self, path: &Path) -> bool {
        self.directory.is_file(path)
    }

    /// Text of a file (of an input, for example), with `\n` line ends and without a byte order mark; `None` if it
    /// does not exist.
    ///
    /// # Errors
    ///
    /// [`Error`] if the file leads outside, is too large or cannot be read.
    pub fn read(&self, path: &Path) -> Result<Option<String>, Error> {
        Ok(self.bytes(MAX_BYTES, path)?.map(text_of))
    }

    /// Reads a text file of the project root, not of its subdirectories; `None` if it does not exist.
    fn read_of_project(&self, name: &str) -> Result<Option<String>, Error> {
        let read = named::directory(&self.project).read(name, MAX_BYTES);
        Ok(self.found(&self.project.join(name), read)?.map(text_of))
    }

    /// Reads a file's bytes; `None` if it does not exist.
    fn bytes(&self, limit: u64, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        self.found(path, self.directory.read(path, limit))
    }

    /// Result of looking at a path; `None` if there is nothing.
    fn found<T>(&self, path: &Path, found: io::Result<Option<T>>) -> Result<Option<T>, Error> {
        match found {
            Ok(found) => Ok(found),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(self.io(path, error)),
        }
    }

    /// Returns a path for writing, from a path relative to the skills directory.
    ///
    /// # Errors
    ///
    /// [`Error::BadSkill`] if the file, or a directory on the way to it, is a link or not inside the skills
    /// directory.
    pub fn place(&self, relative: &Path) -> Result<PathBuf, Error> {
        let target = self.directory.join(relative);
        let plain = relative
            .components()
            .all(|c| matches!(c, Component::Normal(_)));
        if !plain {
            return Err(self.refused(&target, Reason::Outside));
        }
        self.kind(&target)?;
        Ok(target)
    }

    /// Converts an I/O error for a path.
    fn io(&self, path: &Path, source: io::Error) -> Error {
        match reason(&source) {
            Some(reason) => self.refused(path, reason),
            None => Error::unreadable(&self.relative(path))(source),
        }
    }

    fn refused(&self, path: &Path, reason: Reason) -> Error {
        let path = self.relative(path);
        refused(&Refused { path, reason })
    }
}

/// Error for a file that is not read: a link, one that is too large, no regular file, or a path that leaves the
/// skills directory. Its path is relative to the project root.
pub fn refused(file: &Refused) -> Error {
    Error::BadSkill(file.to_string(), "memctl doctor")
}

fn reason(error: &io::Error) -> Option<Reason> {
    Refused::in_error(error).map(|refused| refused.reason)
}

fn is_absent(error: &io::Error) -> bool {
    let not_a_directory = matches!(reason(error), Some(Reason::NotADirectory));
    not_a_directory || matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Bytes that are not UTF-8 are replaced.
fn text_of(bytes: Vec<u8>) -> String {
    let text = decoded(bytes);
    let text = text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Contents of a skills directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// All skills, sorted. They are not loaded, so loading one may still fail.
    pub skills: Vec<SkillPath>,
    /// Directories that look like a skill and have an error.
    pub problems: Vec<String>,
}

/// Minimum similarity (Jaro-Winkler) of a suggestion.
const SIMILAR: f64 = 0.8;

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
                let message = "is not in a domain: move it to `<domain>/<skill>/`";
                let problem = self.problem(&domain.join("SKILL.md"), message);
                found.problems.push(problem);
            }
            let skills = match self.directories(&domain, &mut found.problems) {
                Ok(skills) => skills,
                Err(error) => {
                    found.problems.push(self.problem(&domain, &message(&error)));
                    continue;
                }
            };
            for dir in skills
                .iter()
                .filter(|dir| self.has_file(&dir.join("SKILL.md")))
            {
                let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
                let [domain, name] = [name(&domain), name(dir)];
                let path = format!("{}/{}", domain.display(), name.display());
                match path.parse() {
                    Ok(path) => found.skills.push(path),
                    Err::<_, InvalidSkillPath>(error) => {
                        found.problems.push(self.problem(dir, &message(&error)));
                    }
                }
            }
        }
        found.skills.sort();
        Ok(found)
    }

    /// Skill whose name is most similar to `typed`, which may lack the domain.
    pub fn similar(&self, typed: &str) -> Option<SkillPath> {
        let typed = typed.trim().trim_matches('/').to_lowercase();
        let last = typed.rsplit('/').next().unwrap_or_default();
        let likeness = |skill: &SkillPath| {
            let whole = strsim::jaro_winkler(&typed, &skill.to_string().to_lowercase());
            // Correct name with a wrong or missing domain.
            let name = strsim::jaro_winkler(last, &skill.name().to_lowercase());
            whole.max(name)
        };
        let skills = self.list().unwrap_or_default().skills.into_iter().rev();
        let alike = skills.map(|skill| (likeness(&skill), skill));
        let best = alike.max_by(|(a, _), (b, _)| a.total_cmp(b));
        best.filter(|(likeness, _)| *likeness >= SIMILAR)
            .map(|(_, skill)| skill)
    }

    /// Subdirectories that can be a domain or a skill.
    fn directories(&self, dir: &Path, problems: &mut Vec<String>) -> Result<Vec<PathBuf>, Error> {
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
                    problems.extend(refused.map(|error| self.problem(&path, &message(&error))));
                }
                FoundKind::File | FoundKind::Other => {}
            }
        }
        directories.sort();
        Ok(directories)
    }

    /// Defect of a file that does not make a skill unusable.
    fn problem(&self, path: &Path, message: &str) -> String {
        format!("{}: {message}", self.shown(path))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use serde_json::value::RawValue;

    use super::guardrails::Guardrail;
    use super::*;

    /// Users copy the skills that come with the project.
    #[test]
    fn the_sample_skills_are_beyond_reproach() {
        let project = Path::new(env!("CARGO_MANIFEST_DIR"));
        let skills = Skills::open(&project.join("skills")).unwrap();
        let listing = skills.list().unwrap();
        assert!(listing.problems.is_empty(), "{listing:?}");
        let domains: BTreeSet<&str> = listing.skills.iter().map(SkillPath::domain).collect();
        assert!(
            domains.len() >= 3 && listing.skills.len() >= 5,
            "{listing:?}"
        );
        for path in &listing.skills {
            let skill = skills.load(path).unwrap();
            assert!(skill.problems.is_empty(), "{path}");
            let layers: Vec<u8> = skill.layers().iter().map(|layer| layer.number).collect();
            assert_eq!(layers, [0, 1, 3], "{path}");
            check_cases(&skills, path);
            check_guardrails(&skills, path);
        }
    }

    fn keys(json: &RawValue) -> BTreeSet<String> {
        let map: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(json.get()).unwrap();
        map.into_iter().map(|(key, _)| key).collect()
    }

    /// All examples of a skill share one format, which its prompt describes and its sample input
    /// follows.
    fn check_cases(skills: &Skills, path: &SkillPath) {
        let skill = skills.load(path).unwrap();
        let examples = skills.examples(path).unwrap();
        assert!(examples.problems.is_empty(), "{path}");
        let (first, others) = examples.cases.split_first().unwrap();
        assert!(!others.is_empty(), "{path}");
        for case in others {
            assert_eq!(
                keys(&case.output),
                keys(&first.output),
                "{path} {}",
                case.name
            );
            assert_eq!(
                keys(&case.input),
                keys(&first.input),
                "{path} {}",
                case.name
            );
        }
        for key in keys(&first.output).union(&keys(&first.input)) {
            assert!(skill.body.contains(&format!("`{key}`")), "{path}: {key}");
        }
        let sample = skills.sample_input(path).unwrap().unwrap();
        let sample = skills.read(&sample).unwrap().unwrap();
        let sample: Box<RawValue> = serde_json::from_str(&sample).unwrap();
        assert_eq!(keys(&sample), keys(&first.input), "{path}");
    }

    fn check_guardrails(skills: &Skills, path: &SkillPath) {
        let files = skills.guardrail_files(path).unwrap();
        let text = skills.read(&files[0]).unwrap().unwrap();
        let guardrail = Guardrail {
            title: "t",
            rule: "r",
            correction_id: "CORR-999",
        };
        let new = guardrails::append(&text, &guardrail).unwrap();
        let closing = "**Source**: CORR-999\n\n---\n\n## When to Add New Guardrails\n";
        let heading = new.find(": t\n").unwrap();
        assert!(
            new[..heading].ends_with("\n\n---\n\n## GRD-003")
                || new[..heading].ends_with("\n\n---\n\n## GRD-004"),
            "{path}: {new}"
        );
        assert!(new.contains(closing), "{path}: {new}");
    }

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
        let skills = Skills::open(&project.join("skills")).unwrap();
        let layers = skills.above(&skill).unwrap();
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

#[cfg(test)]
mod tests_of_root {
    use std::fs;

    use super::*;

    #[test]
    fn bytes_become_lines_of_text() {
        let check = |bytes: &[u8], text: &str| assert_eq!(text_of(bytes.to_vec()), text);
        check(b"a\r\nb\rc\n", "a\nb\nc\n");
        check(b"\xef\xbb\xbf---\n", "---\n");
        check(b"\xff\xfea\0\r\0\n\0", "a\n");
        check(b"caf\xe9", "caf\u{fffd}");
        check("日本\u{fffd}".as_bytes(), "日本\u{fffd}");
    }

    #[test]
    fn the_project_root_is_the_parent_of_the_skills_directory() {
        let tmp = tempfile::tempdir().unwrap();
        let project = tmp.path().canonicalize().unwrap();
        fs::create_dir_all(project.join("skills/hr")).unwrap();
        let check = |dir: &Path| {
            let root = Skills::open(dir).unwrap();
            assert_eq!(root.project, project, "{}", dir.display());
            assert_eq!(
                root.relative(&root.directory.join("hr/x")),
                Path::new("skills/hr/x")
            );
        };
        check(&project.join("skills"));
        check(&project.join("skills/"));
        check(&project.join("skills/hr/.."));
        assert!(matches!(
            Skills::open(&project.join("nothing")),
            Err(Error::NoSkills(_))
        ));
    }

    #[test]
    fn a_path_to_write_to_stays_inside() {
        let tmp = tempfile::tempdir().unwrap();
        let skill = tmp.path().join("skills/hr/x");
        fs::create_dir_all(&skill).unwrap();
        let root = Skills::open(&tmp.path().join("skills")).unwrap();
        let check = |relative: &str, allowed: bool| {
            let placed = root.place(&Path::new("hr/x").join(relative));
            assert_eq!(placed.is_ok(), allowed, "{relative}: {placed:?}");
        };
        check("tests/generated/test_correction_1.py", true);
        check("GUARDRAILS.md", true);
        check("../y/SKILL.md", false);
        check("/etc/passwd", false);
        check("tests/../../../../x", false);
    }

    #[test]
    #[cfg_attr(windows, ignore = "Wine makes no symbolic links")]
    fn links_that_lead_out_are_no_place_to_write_to() {
        use memctl_files::make_link as symlink;
        let tmp = tempfile::tempdir().unwrap();
        let skill = tmp.path().join("skills/hr/x");
        fs::create_dir_all(&skill).unwrap();
        fs::create_dir_all(tmp.path().join("elsewhere")).unwrap();
        symlink(tmp.path().join("elsewhere"), skill.join("tests")).unwrap();
        symlink(tmp.path().join("not-yet"), skill.join("GUARDRAILS.md")).unwrap();
        let root = Skills::open(&tmp.path().join("skills")).unwrap();
        for relative in ["tests/generated/a.py", "GUARDRAILS.md"] {
            let placed = root.place(&Path::new("hr/x").join(relative));
            assert!(matches!(placed, Err(Error::BadSkill(..))), "{relative}");
        }
    }
}

#[cfg(test)]
pub(super) mod tests_of_loading {
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
        assert!(skill.problems.is_empty());
        let layers: Vec<(u8, String)> = skill
            .layers()
            .into_iter()
            .map(|layer| (layer.number, layer.text))
            .collect();
        assert_eq!(layers, [(0, "w".to_owned()), (3, "Do it.".to_owned())]);
    }

    #[test]
    fn invalid_utf8_is_replaced_and_invalid_yaml_a_problem() {
        let (tmp, skills) = tree(&[("hr/x/SKILL.md", "")]);
        let bytes = b"---\nname: x\ndescription: Use: caf\xe9\n---\nx";
        fs::write(tmp.path().join("skills/hr/x/SKILL.md"), bytes).unwrap();
        fs::write(tmp.path().join("skills/hr/DOMAIN.md"), b"\xff").unwrap();
        let skill = skills.load(&"hr/x".parse().unwrap()).unwrap();
        assert_eq!(skill.context[0].text, "\u{fffd}");
        let problems = skill.problems;
        assert!(problems[0].starts_with("skills/hr/x/SKILL.md:3: the metadata is not valid"));
    }
}

#[cfg(test)]
mod tests_of_listing {
    use std::fs;

    use super::tests_of_loading::tree;
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
        let problems = listing.problems;
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
    fn a_similar_skill_is_offered() {
        let (_tmp, skills) = tree(&[
            ("hr/resume-screen/SKILL.md", MINIMAL),
            ("hr/interview-questions/SKILL.md", MINIMAL),
            ("dev/code-review/SKILL.md", MINIMAL),
            ("support/code-review/SKILL.md", MINIMAL),
        ]);
        let check = |typed: &str, expected: Option<&str>| {
            let found = skills.similar(typed).map(|skill| skill.to_string());
            assert_eq!(found.as_deref(), expected, "{typed}");
        };
        check("hr/resume-scren", Some("hr/resume-screen"));
        check("resume-screen", Some("hr/resume-screen"));
        check("HR/Resume-Screen/", Some("hr/resume-screen"));
        check("ops/code-review", Some("dev/code-review"));
        check("finance/expenses", None);
        check("", None);
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
