//! Access to the skills directory; every read of this module goes through here.
//!
//! Symbolic links are not followed, neither the directory itself nor anything below it, wherever
//! they lead. Copy a skill to have it under two names.

use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use memctl_files::{Directory, FoundKind, Reason, Refused, decoded, named};

use crate::store::Error;

/// Size limit of a file of a skill: 1 MiB, some two hundred times a reasonable prompt.
pub const MAX_BYTES: u64 = 1024 * 1024;

/// Skills directory.
#[derive(Debug, Clone)]
pub struct Skills {
    /// Handle of the directory, with an absolute path.
    directory: Directory,
    /// Parent of the directory.
    pub(super) project: PathBuf,
}

/// Text of a file, without a byte order mark and with `\n` line ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) text: String,
    /// `true` if invalid UTF-8 was replaced.
    pub(super) lossy: bool,
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
    pub(super) fn relative(&self, path: &Path) -> PathBuf {
        named::relative(path, &self.project)
    }

    /// Kind of the entry at a path below the skills directory; `None` if it does not exist.
    pub(super) fn kind(&self, path: &Path) -> Result<Option<FoundKind>, Error> {
        match self.found(path, self.directory.kind(path))? {
            Some(FoundKind::Link) => Err(self.refused(path, Reason::Link)),
            kind => Ok(kind),
        }
    }

    /// Returns `true` if the path is a file.
    pub(super) fn has_file(&self, path: &Path) -> bool {
        self.directory.is_file(path)
    }

    /// Reads a text file; `None` if it does not exist.
    pub(super) fn text(&self, path: &Path) -> Result<Option<Text>, Error> {
        let bytes = self.bytes(MAX_BYTES, path)?;
        Ok(bytes.map(|bytes| Text::from_bytes(&bytes)))
    }

    /// Reads a text file of the project root, not of its subdirectories; `None` if it does not exist.
    pub(super) fn text_of_project(&self, name: &str) -> Result<Option<Text>, Error> {
        let read = named::directory(&self.project).read(name, MAX_BYTES);
        let bytes = self.found(&self.project.join(name), read)?;
        Ok(bytes.map(|bytes| Text::from_bytes(&bytes)))
    }

    /// Reads a file's bytes; `None` if it does not exist.
    pub(super) fn bytes(&self, limit: u64, path: &Path) -> Result<Option<Vec<u8>>, Error> {
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
    pub(super) fn place_below(&self, dir: &Path, relative: &Path) -> Result<PathBuf, Error> {
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
    pub(super) fn io(&self, path: &Path, source: io::Error) -> Error {
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
        refused(Refused { path, reason })
    }
}

/// Error for a file that is not read: a link, one that is too large, no regular file, or a path that leaves the
/// skills directory. Its path is relative to the project root.
pub fn refused(file: Refused) -> Error {
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
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
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
