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
//!   difference is a [`Problem`]. They never decide which rules, tests or records belong to a
//!   skill.
//! - No file outside the skills directory is read, even through symbolic links. The one exception
//!   is `WORKSPACE.md` next to the skills directory, in the project root.
//! - Only a defect that makes a skill unusable is an [`Error`]. Everything else is a [`Problem`] of
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

mod discover;
mod files;
mod front_matter;
pub mod guardrails;
mod loaded;

use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use memctl_files::{Directory, FoundKind, Reason, Refused, decoded, named};

use crate::store::Error;

pub use crate::store::skill::discover::Listing;
pub use crate::store::skill::files::{Example, Examples};
pub use crate::store::skill::front_matter::{FrontMatter, read as read_front_matter};
pub use crate::store::skill::loaded::{BundledFile, Layer, Problem, Skill};

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

/// Text of a file, without a byte order mark and with `\n` line ends.
#[derive(Debug, PartialEq, Eq)]
struct Text {
    text: String,
    /// `true` if invalid UTF-8 was replaced.
    lossy: bool,
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
                Err(Error::Unreadable {
                    path: dir.to_owned(),
                    source,
                })
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

    /// Reads a text file; `None` if it does not exist.
    fn text(&self, path: &Path) -> Result<Option<Text>, Error> {
        let bytes = self.bytes(MAX_BYTES, path)?;
        Ok(bytes.map(|bytes| Text::from_bytes(&bytes)))
    }

    /// Reads a text file of the project root, not of its subdirectories; `None` if it does not exist.
    fn text_of_project(&self, name: &str) -> Result<Option<Text>, Error> {
        let read = named::directory(&self.project).read(name, MAX_BYTES);
        let bytes = self.found(&self.project.join(name), read)?;
        Ok(bytes.map(|bytes| Text::from_bytes(&bytes)))
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

    /// Returns a path for writing. Fails if the file or a directory on the way to it is a link.
    fn place_below(&self, dir: &Path, relative: &Path) -> Result<PathBuf, Error> {
        let target = dir.join(relative);
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
            None => Error::Unreadable {
                path: self.relative(path),
                source,
            },
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

impl Text {
    fn from_bytes(bytes: &[u8]) -> Self {
        let (text, lossy) = match decoded::text(bytes.to_vec()) {
            Ok(text) => (text, false),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
        };
        Self {
            text: text.replace("\r\n", "\n").replace('\r', "\n"),
            lossy,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use serde_json::value::RawValue;

    use super::guardrails::Guardrail;
    use super::*;
    use crate::model::SkillPath;

    /// Users copy the skills that come with the project.
    #[test]
    fn the_sample_skills_are_beyond_reproach() {
        let project = Path::new(env!("CARGO_MANIFEST_DIR"));
        let skills = Skills::open(&project.join("skills")).unwrap();
        let listing = skills.list().unwrap();
        assert_eq!(listing.problems, []);
        let domains: BTreeSet<&str> = listing.skills.iter().map(SkillPath::domain).collect();
        assert!(
            domains.len() >= 3 && listing.skills.len() >= 5,
            "{listing:?}"
        );
        for path in &listing.skills {
            let skill = skills.load(path).unwrap();
            assert_eq!(skill.problems, [], "{path}");
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
        assert_eq!(examples.problems, [], "{path}");
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
        let layers = skills.above(&skill, &mut Vec::new()).unwrap();
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
        let check = |bytes: &[u8], text: &str, lossy: bool| {
            let text = text.to_owned();
            assert_eq!(Text::from_bytes(bytes), Text { text, lossy });
        };
        check(b"a\r\nb\rc\n", "a\nb\nc\n", false);
        check(b"\xef\xbb\xbf---\n", "---\n", false);
        check(b"\xff\xfea\0\r\0\n\0", "a\n", false);
        check(b"caf\xe9", "caf\u{fffd}", true);
        check("日本\u{fffd}".as_bytes(), "日本\u{fffd}", false);
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
            let placed = root.place_below(&skill, Path::new(relative));
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
            let placed = root.place_below(&skill, Path::new(relative));
            assert!(matches!(placed, Err(Error::BadSkill(..))), "{relative}");
        }
    }
}
