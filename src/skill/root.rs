//! The fence around the skills directory: every read of this module passes through here.
//!
//! A path is checked by where it really leads, after all symbolic links, and what was checked is
//! what is opened. Links that stay inside are followed: an alias of a skill is nobody's harm.
//! Somebody who can change the tree between the check and the read can also change the skill
//! itself; that race is not closed.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::{Component, Path, PathBuf};

use super::Error;

/// No file of a skill may be larger: 1 MiB, some two hundred times what fits a prompt well.
pub const MAX_BYTES: u64 = 1024 * 1024;

/// A skills directory and the project that it lies in.
#[derive(Debug, Clone)]
pub(super) struct Root {
    /// As it was given, absolute; may be a symbolic link itself.
    pub(super) skills: PathBuf,
    /// The parent of `skills`.
    pub(super) project: PathBuf,
    real_skills: PathBuf,
    real_project: PathBuf,
}

/// How far a file may lie from the skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    /// In the skills directory.
    Skills,
    /// Directly in the project root.
    Project,
}

/// The text of a file, without a byte order mark and with `\n` at the end of lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) text: String,
    /// Whether bytes that are no UTF-8 had to be replaced.
    pub(super) lossy: bool,
}

impl Root {
    pub(super) fn open(dir: &Path) -> Result<Self, Error> {
        let missing = || Error::NoDirectory {
            path: dir.to_owned(),
        };
        let real_skills = dir.canonicalize().map_err(|_| missing())?;
        if !real_skills.is_dir() {
            return Err(missing());
        }
        // The parent of `a/..` is not `a`, and the one of `skills` is not the empty path.
        let plain = dir.is_absolute() && !dir.components().any(|c| c == Component::ParentDir);
        let skills = if plain {
            dir.to_owned()
        } else {
            real_skills.clone()
        };
        let project = skills.parent().unwrap_or(&skills).to_owned();
        let real_project = project.canonicalize().map_err(|_| missing())?;
        Ok(Self {
            skills,
            project,
            real_skills,
            real_project,
        })
    }

    /// The path as people are shown it: relative to the project root.
    pub(super) fn shown(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.project).unwrap_or(path).to_owned()
    }

    /// Where the path really leads; `None` where there is nothing.
    pub(super) fn resolve(&self, path: &Path, within: Within) -> Result<Option<PathBuf>, Error> {
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(source) => return Err(self.io(path, source)),
        };
        let allowed = match within {
            Within::Skills => real.starts_with(&self.real_skills),
            Within::Project => real.parent() == Some(&self.real_project),
        };
        if allowed {
            Ok(Some(real))
        } else {
            Err(Error::Outside {
                path: self.shown(path),
            })
        }
    }

    /// Reads a text file that may be missing.
    pub(super) fn read(&self, path: &Path, within: Within) -> Result<Option<Text>, Error> {
        let bytes = self.bytes(MAX_BYTES, path, within)?;
        Ok(bytes.map(|bytes| Text::from_bytes(&bytes)))
    }

    /// Reads a file that may be missing, as it is.
    pub(super) fn bytes(
        &self,
        limit: u64,
        path: &Path,
        within: Within,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some(real) = self.resolve(path, within)? else {
            return Ok(None);
        };
        let found = fs::metadata(&real).map_err(|source| self.io(path, source))?;
        // Opening a named pipe would wait for ever.
        if !found.is_file() {
            return Err(Error::NotAFile {
                path: self.shown(path),
            });
        }
        let mut bytes = Vec::new();
        let file = File::open(&real).map_err(|source| self.io(path, source))?;
        file.take(limit + 1)
            .read_to_end(&mut bytes)
            .map_err(|source| self.io(path, source))?;
        if bytes.len() as u64 > limit {
            return Err(Error::TooLarge {
                path: self.shown(path),
                bytes: found.len().max(bytes.len() as u64),
                limit,
            });
        }
        Ok(Some(bytes))
    }

    /// Checks that a file may be written there: neither it nor a directory on the way leads out.
    pub(super) fn place(&self, dir: &Path, relative: &Path) -> Result<PathBuf, Error> {
        let target = dir.join(relative);
        let outside = || Error::Outside {
            path: self.shown(&target),
        };
        if !relative
            .components()
            .all(|c| matches!(c, Component::Normal(_)))
        {
            return Err(outside());
        }
        let mut path = dir.to_owned();
        for part in relative.components() {
            path.push(part);
            // A link to something that does not exist yet resolves to nothing, and writing through
            // it would create that something, wherever it is.
            let is_link = path.symlink_metadata().is_ok_and(|m| m.is_symlink());
            if self.resolve(&path, Within::Skills)?.is_none() && is_link {
                return Err(outside());
            }
        }
        Ok(target)
    }

    pub(super) fn io(&self, path: &Path, source: std::io::Error) -> Error {
        Error::Io {
            path: self.shown(path),
            source,
        }
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

impl Text {
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let lossy = matches!(text, std::borrow::Cow::Owned(_));
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        Self {
            text: text.replace("\r\n", "\n").replace('\r', "\n"),
            lossy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_lines_of_text() {
        let check = |bytes: &[u8], text: &str, lossy: bool| {
            let text = text.to_owned();
            assert_eq!(Text::from_bytes(bytes), Text { text, lossy });
        };
        check(b"a\r\nb\rc\n", "a\nb\nc\n", false);
        check(b"\xef\xbb\xbf---\n", "---\n", false);
        check(b"caf\xe9", "caf\u{fffd}", true);
        check("日本\u{fffd}".as_bytes(), "日本\u{fffd}", false);
    }

    #[test]
    fn the_project_root_is_the_parent_of_the_skills_directory() {
        let tmp = tempfile::tempdir().unwrap();
        let project = tmp.path().canonicalize().unwrap();
        fs::create_dir_all(project.join("skills/hr")).unwrap();
        let check = |dir: &Path| {
            let root = Root::open(dir).unwrap();
            assert_eq!(root.project, project, "{}", dir.display());
            assert_eq!(
                root.shown(&root.skills.join("hr/x")),
                Path::new("skills/hr/x")
            );
        };
        check(&project.join("skills"));
        check(&project.join("skills/"));
        check(&project.join("skills/hr/.."));
        assert!(matches!(
            Root::open(&project.join("nothing")),
            Err(Error::NoDirectory { .. })
        ));
    }

    #[test]
    fn a_path_to_write_to_stays_inside() {
        let tmp = tempfile::tempdir().unwrap();
        let skill = tmp.path().join("skills/hr/x");
        fs::create_dir_all(&skill).unwrap();
        let root = Root::open(&tmp.path().join("skills")).unwrap();
        let check = |relative: &str, allowed: bool| {
            let placed = root.place(&skill, Path::new(relative));
            assert_eq!(placed.is_ok(), allowed, "{relative}: {placed:?}");
        };
        check("tests/generated/test_correction_1.py", true);
        check("GUARDRAILS.md", true);
        check("../y/SKILL.md", false);
        check("/etc/passwd", false);
        check("tests/../../../../x", false);
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_out_are_no_place_to_write_to() {
        use std::os::unix::fs::symlink;
        let tmp = tempfile::tempdir().unwrap();
        let skill = tmp.path().join("skills/hr/x");
        fs::create_dir_all(&skill).unwrap();
        fs::create_dir_all(tmp.path().join("elsewhere")).unwrap();
        symlink(tmp.path().join("elsewhere"), skill.join("tests")).unwrap();
        symlink(tmp.path().join("not-yet"), skill.join("GUARDRAILS.md")).unwrap();
        let root = Root::open(&tmp.path().join("skills")).unwrap();
        for relative in ["tests/generated/a.py", "GUARDRAILS.md"] {
            let placed = root.place(&skill, Path::new(relative));
            assert!(matches!(placed, Err(Error::Outside { .. })), "{relative}");
        }
    }
}
