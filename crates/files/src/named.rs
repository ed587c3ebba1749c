//! Files that a user names, or that belong to other programs: transcripts, `--output`, settings of
//! agent hosts, keys, the user's own settings. They are opened by path, and links are followed,
//! because the user chose the path.
//!
//! Files below `.agentura` or `skills` never pass through here.
//!
//! A [`SharedFile`] is one that memctl shares with other programs: settings of agent hosts, `AGENTS.md`,
//! `.gitattributes`. It is a file of a project, whose content may come from a clone: neither a link on the way nor a link
//! in its place is followed. Or a file of the user, which may be a link: programs that manage dotfiles make links.
//!
//! Invariant: a file of a project that is read or written has no other constructor than
//! [`SharedFile::of_project`].
#![expect(
    clippy::disallowed_methods,
    reason = "files that a user names are opened by their path"
)]

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::directory::Directory;
use super::file::{FileState, Reason, Refused};
use super::system::files as sys;
use super::{file, text};

/// Opens a file of any kind for reading.
pub fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Reads a regular file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open_plain(path)?;
    file::read(file, path, limit)
}

/// Opens a regular file; fails at once on a pipe or a device.
pub fn open_plain(path: &Path) -> io::Result<File> {
    let file = sys::without_waiting(OpenOptions::new().read(true)).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(Refused::error(path, Reason::NotAFile))
    }
}

/// Reads UTF-8 text of at most `limit` bytes from a regular file.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let bytes = read(path, limit)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads the text of a file of a person, which may be in UTF-16.
pub fn read_decoded(path: &Path, limit: u64) -> io::Result<String> {
    let text = text::decoded(read(path, limit)?);
    text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads UTF-8 text from a file of any kind.
pub fn read_any_text(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Returns the metadata of a path, following links.
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    fs::metadata(path)
}

/// Returns the state of the file at a path, following links.
pub fn state(path: &Path) -> io::Result<FileState> {
    sys::state_of_path(path)
}

/// Returns the metadata of a link itself.
pub fn link_metadata(path: &Path) -> io::Result<Metadata> {
    fs::symlink_metadata(path)
}

/// Returns `true` if anything is there, at the end of its links.
pub fn exists(path: &Path) -> bool {
    path.exists()
}

/// Returns `true` for a file, at the end of its links.
pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// Returns `true` for a directory, at the end of its links.
pub fn is_dir(path: &Path) -> bool {
    path.is_dir()
}

/// Returns the entries of a directory, sorted by name.
pub fn list(path: &Path) -> io::Result<Vec<fs::DirEntry>> {
    let mut entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    Ok(entries)
}

/// Creates a directory and its missing parents, private to the user.
pub fn create_dir(path: &Path) -> io::Result<()> {
    sys::make_directories(path)
}

/// Replaces a regular file and keeps its mode, or creates a private one. Fails on a device or a
/// pipe.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    refuse_special(path)?;
    let (directory, name) = place(path);
    directory.replace_and_keep_mode(name, bytes)
}

/// Writes a text over the text of an existing private file, in place and without waiting for the disk: for
/// notes that may be lost, at a quarter of the time of a replacement. The rest of a longer text becomes
/// spaces. Creates the file if it is missing.
pub fn overwrite_note(path: &Path, text: &[u8]) -> io::Result<()> {
    refuse_special(path)?;
    let mut file = sys::private(OpenOptions::new().create(true).write(true)).open(path)?;
    let old = usize::try_from(file.metadata()?.len()).unwrap_or_default();
    let mut bytes = text.to_vec();
    bytes.resize(old.max(text.len()), b' ');
    file.write_all(&bytes)
}

/// Fails if a path, after all links, leads to something other than a regular file.
pub fn refuse_special(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(Refused::error(path, Reason::Special)),
        _ => Ok(()),
    }
}

/// Creates a file with these bytes, or keeps the existing one. The first of several concurrent
/// callers wins, and no reader sees a partial file.
pub fn create_once(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (directory, name) = place(path);
    let made = directory.replace_unchanged(name, None, |file| file.write_all(bytes));
    made.map(drop)
}

/// Appends bytes to a private file and syncs them to disk.
pub fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (directory, name) = place(path);
    directory.append(name, bytes, true)
}

/// Removes a file, or a link itself; `false` if it did not exist.
pub fn remove(path: &Path) -> io::Result<bool> {
    directory(above(path)).remove(path.file_name().unwrap_or_default())
}

/// Returns the directory that a user names, with links in its path resolved. Names below it are
/// opened without following links.
pub fn directory(path: &Path) -> Directory {
    Directory::at(resolved(path))
}

/// Resolves all links of a path.
pub fn real(path: &Path) -> io::Result<PathBuf> {
    sys::real(path)
}

/// Resolves all links of a path whose last names need not exist.
pub fn real_or_new(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let (Ok(mut real), Ok(rest)) = (real(above), path.strip_prefix(above)) {
            real.extend(rest.components());
            return real;
        }
    }
    path.to_owned()
}

/// Resolves all links of a path; returns the path itself if that fails.
pub fn resolved(path: &Path) -> PathBuf {
    real(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns a path relative to a directory, with `/` between its names on every system, as records
/// and reports hold it; the path itself if it is elsewhere.
pub fn relative(path: &Path, directory: &Path) -> PathBuf {
    let Ok(below) = path.strip_prefix(directory) else {
        return path.to_owned();
    };
    let mut slashed = OsString::new();
    for name in below.components() {
        if !slashed.is_empty() {
            slashed.push("/");
        }
        slashed.push(name);
    }
    slashed.into()
}

/// Returns the directory of a path with its links resolved, and the name in it.
fn place(path: &Path) -> (Directory, OsString) {
    let path = real_or_new(path);
    let name = path.file_name().unwrap_or_default().to_owned();
    (Directory::at(above(&path)), name)
}

/// Directory that a path is in.
pub(crate) fn above(path: &Path) -> &Path {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    above.unwrap_or(Path::new("."))
}

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
        let project = directory(project);
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
        let is_link = link_metadata(&named).is_ok_and(|m| m.is_symlink());
        let path = if is_link || exists(&named) {
            real(&named)?
        } else {
            real_or_new(&named)
        };
        let mut above = path.ancestors().skip(1);
        let above = above.find(|above| is_dir(above)).unwrap_or(Path::new("."));
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
                drop(fs::remove_dir(directory));
            } else if let Ok(below) = directory.strip_prefix(self.project.path()) {
                drop(self.project.remove_empty(below));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::make_link;

    #[test]
    fn paths_below_a_project_follow_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("clone");
        let outside = dir.path().join("v");
        create_dir(&project.join("sub")).unwrap();
        create_dir(&outside).unwrap();
        replace(&outside.join("conf.json"), b"{}").unwrap();
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
        let left: Vec<_> = list(&outside).unwrap();
        assert_eq!(left.len(), 1);
        assert_eq!(read(&outside.join("conf.json"), 9).unwrap(), b"{}");
    }

    #[test]
    fn files_of_the_user_may_be_links_and_the_plan_names_the_target() {
        let dir = tempfile::tempdir().unwrap();
        let home = real(dir.path()).unwrap();
        let target = home.join("dotfiles.json");
        replace(&target, b"{}").unwrap();
        let link = home.join("settings.json");
        if make_link(&target, &link).is_err() {
            return;
        }
        let file = SharedFile::of_user(&link).unwrap();
        file.replace(b"[]").unwrap();
        assert!(link_metadata(&link).unwrap().is_symlink());
        assert_eq!(read(&target, 9).unwrap(), b"[]");
        assert_eq!(
            file.shown(),
            format!("{} -> {}", link.display(), target.display())
        );
    }

    #[test]
    fn missing_directories_are_created_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let project = real(dir.path()).unwrap();
        let file = SharedFile::of_project(&project, "a/b/c.json");
        let missing = file.missing_parents();
        assert_eq!(missing, [project.join("a/b"), project.join("a")]);
        file.replace(b"{}").unwrap();
        assert_eq!(file.missing_parents(), Vec::<PathBuf>::new());
        assert!(file.remove().unwrap() && !file.remove().unwrap());
        file.remove_empty(&missing);
        assert!(!exists(&project.join("a")));
    }
}
