//! Files that memctl shares with other programs: settings of agent hosts, `AGENTS.md`,
//! `.gitattributes`.
//!
//! A file of a project, whose content may come from a clone: neither a link on the way nor a link in its place is
//! followed. Or a file of the user, which may be a link: programs that manage dotfiles make links.
//!
//! Invariant: a file of a project that is read or written has no other constructor than
//! [`SharedFile::of_project`].

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::directory::Directory;
use super::{named, system::files as sys};

/// File that other programs use too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedFile {
    /// Directory below which no link is followed.
    project: Directory,
    /// Path relative to it.
    name: PathBuf,
    /// Absolute path, for messages and for other programs.
    path: PathBuf,
    /// Path of a file of the user as it was named, with its links.
    named: Option<PathBuf>,
}

impl SharedFile {
    /// Returns the file `name` of a project. The project itself may be a link: the user named it.
    pub fn of_project(project: &Path, name: impl AsRef<Path>) -> Self {
        let project = named::directory(project);
        let name = name.as_ref().to_owned();
        Self {
            path: project.join(&name),
            project,
            name,
            named: None,
        }
    }

    /// Returns a file of the user, with its links resolved. The path is the same before and after
    /// the file has been created.
    ///
    /// # Errors
    ///
    /// `NotFound` if the path is a link to a missing file.
    pub fn of_user(path: impl Into<PathBuf>) -> io::Result<Self> {
        let named = path.into();
        let is_link = named::link_metadata(&named).is_ok_and(|m| m.is_symlink());
        let path = if is_link || named::exists(&named) {
            named::real(&named)?
        } else {
            named::real_or_new(&named)
        };
        let mut above = path.ancestors().skip(1);
        let above = above
            .find(|above| named::is_dir(above))
            .unwrap_or(Path::new("."));
        let name = path.strip_prefix(above).unwrap_or(&path).to_owned();
        Ok(Self {
            project: Directory::at(above),
            name,
            path,
            named: Some(named),
        })
    }

    /// Returns the absolute path of the file that is read and written, for messages and for other programs.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path for a plan: with the target, if the file is a link.
    pub fn shown(&self) -> String {
        let path = self.path().display();
        match self.named.as_deref().filter(|named| *named != self.path()) {
            Some(named) => format!("{} -> {path}", named.display()),
            None => path.to_string(),
        }
    }

    /// Returns a file below this path.
    ///
    /// # Errors
    ///
    /// `NotFound` if that is a link to a missing file.
    pub fn join(&self, name: &str) -> io::Result<Self> {
        match &self.named {
            Some(named) => Self::of_user(named.join(name)),
            None => Ok(Self::of_project(&self.project, self.name.join(name))),
        }
    }

    /// Reads UTF-8 text of at most `limit` bytes; `None` if the file does not exist.
    pub fn read_text(&self, limit: u64) -> io::Result<Option<String>> {
        self.project.read_text(&self.name, limit)
    }

    /// Replaces the file and keeps its permissions, or creates a private one, with its directories.
    pub fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        let above = self.name.parent().unwrap_or(Path::new(""));
        self.project.below(above).create()?;
        self.project.replace_and_keep_mode(&self.name, bytes)
    }

    /// Removes the file; `false` if it did not exist. A link is refused.
    pub fn remove(&self) -> io::Result<bool> {
        match self.project.open(&self.name)? {
            Some(_) => self.project.remove(&self.name),
            None => Ok(false),
        }
    }

    /// Makes the file executable, where that is a permission.
    pub fn make_executable(&self) -> io::Result<()> {
        match self.project.open(&self.name)? {
            Some(file) => sys::make_open_executable(&file),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Returns the directories above the file that do not exist, innermost first.
    pub fn missing_parents(&self) -> Vec<PathBuf> {
        let parents = self.name.ancestors().skip(1);
        parents
            .filter(|parent| !parent.as_os_str().is_empty())
            .take_while(|parent| matches!(self.project.kind(parent), Ok(None)))
            .map(|parent| self.project.join(parent))
            .collect()
    }

    /// Returns the names beside the file, sorted; empty if the directory cannot be read.
    pub fn siblings(&self) -> Vec<OsString> {
        let above = self.name.parent().unwrap_or(Path::new(""));
        let found = self.project.below(above).list().unwrap_or_default();
        found.into_iter().map(|found| found.name).collect()
    }

    /// Removes directories that an installation created and that are empty, innermost first.
    pub fn remove_empty(&self, directories: &[PathBuf]) {
        for directory in directories {
            if self.named.is_some() {
                drop(named::remove_empty_dir(directory));
            } else if let Ok(below) = directory.strip_prefix(self.project.path()) {
                drop(self.project.remove_empty(below));
            }
        }
    }
}

#[cfg(test)]
#[cfg_attr(windows, expect(clippy::disallowed_methods, reason = "tests"))]
mod tests {
    use super::*;
    use crate::{Refused, make_link};

    #[test]
    fn paths_below_a_project_follow_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("clone");
        let outside = dir.path().join("v");
        named::create_dir(&project.join("sub")).unwrap();
        named::create_dir(&outside).unwrap();
        named::replace(&outside.join("conf.json"), b"{}").unwrap();
        if make_link(&outside, project.join(".vscode")).is_err() {
            return;
        }
        make_link(outside.join("conf.json"), project.join("sub/mcp.json")).unwrap();
        make_link(outside.join("missing"), project.join("sub/new.json")).unwrap();
        make_link("sub", project.join("inner")).unwrap();
        let check = |name: &str| {
            let file = SharedFile::of_project(&project, name);
            let refused = |done: io::Result<()>| {
                let error = done.expect_err(name);
                assert!(Refused::in_error(&error).is_some(), "{name}: {error}");
            };
            refused(file.read_text(9).map(drop));
            refused(file.replace(b"x"));
            refused(file.remove().map(drop));
            refused(file.make_executable());
            file.remove_empty(std::slice::from_ref(&outside));
            assert!(file.siblings().iter().all(|name| name != "conf.json"));
        };
        check(".vscode/conf.json");
        check(".vscode/made/conf.json");
        check("sub/mcp.json");
        check("sub/new.json");
        check("inner/file");
        check("../v/conf.json");
        let left: Vec<_> = named::list(&outside).unwrap();
        assert_eq!(left.len(), 1);
        assert_eq!(named::read(&outside.join("conf.json"), 9).unwrap(), b"{}");
    }

    #[test]
    fn files_of_the_user_may_be_links_and_the_plan_names_the_target() {
        let dir = tempfile::tempdir().unwrap();
        let home = named::real(dir.path()).unwrap();
        let target = home.join("dotfiles.json");
        named::replace(&target, b"{}").unwrap();
        let link = home.join("settings.json");
        if make_link(&target, &link).is_err() {
            return;
        }
        let file = SharedFile::of_user(&link).unwrap();
        file.replace(b"[]").unwrap();
        assert!(named::link_metadata(&link).unwrap().is_symlink());
        assert_eq!(named::read(&target, 9).unwrap(), b"[]");
        assert_eq!(
            file.shown(),
            format!("{} -> {}", link.display(), target.display())
        );
    }

    #[test]
    fn missing_directories_are_created_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let project = named::real(dir.path()).unwrap();
        let file = SharedFile::of_project(&project, "a/b/c.json");
        let missing = file.missing_parents();
        assert_eq!(missing, [project.join("a/b"), project.join("a")]);
        file.replace(b"{}").unwrap();
        assert_eq!(file.missing_parents(), Vec::<PathBuf>::new());
        assert!(file.remove().unwrap() && !file.remove().unwrap());
        file.remove_empty(&missing);
        assert!(!named::exists(&project.join("a")));
    }
}
