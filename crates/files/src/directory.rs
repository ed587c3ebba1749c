//! Directories below which files are opened without following links.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::file::{self, Access, FoundKind, Reason, Refused};
use super::system::files as sys;
use super::system::files::Handle;
use super::text;

/// Maximum depth of a tree to remove or scan.
const DEEPEST: usize = 64;

/// A directory with possibly untrusted content.
///
/// The directory is at or below a base. The base is opened by path and must not be a link. The
/// directory need not exist. Names are relative to it, or absolute as [`Path::join`] makes them.
/// `Deref` and `Debug` give its path, for messages.
#[derive(Clone)]
pub struct Directory {
    base: Arc<Path>,
    path: Arc<Path>,
    /// An open handle at or above this directory, after [`Self::hold`].
    open: Option<OpenDirectory>,
    /// `true` if every change fails.
    read_only: bool,
}

#[derive(Clone)]
struct OpenDirectory {
    path: Arc<Path>,
    handle: Arc<Handle>,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// File name.
    pub name: OsString,
    /// Kind of the entry.
    pub kind: FoundKind,
}

/// An open directory, and a name in it.
pub(super) struct Place {
    pub(super) parent: Arc<Handle>,
    pub(super) name: OsString,
    /// Path for error messages.
    pub(super) shown: PathBuf,
}

impl Directory {
    /// Returns the directory at a path, which must not be a link when opened.
    pub fn at(path: impl AsRef<Path>) -> Self {
        // With a trailing slash, the system would follow a link.
        let path: Arc<Path> = path.as_ref().components().collect::<PathBuf>().into();
        Self {
            base: Arc::clone(&path),
            path,
            open: None,
            read_only: false,
        }
    }

    /// Returns a directory below this one.
    #[must_use]
    pub fn below(&self, name: impl AsRef<Path>) -> Self {
        Self {
            base: Arc::clone(&self.base),
            path: self.path.join(name).into(),
            open: self.open.clone(),
            read_only: self.read_only,
        }
    }

    /// Returns the directory without write access: every change in it, and below it, fails.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self {
            read_only: true,
            ..self
        }
    }

    /// Returns `true` if every change fails.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Fails if the directory is read-only.
    pub(super) fn writable(&self) -> io::Result<()> {
        if self.read_only {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        Ok(())
    }

    /// Fails if no new file can be made in the directory. Makes none.
    pub fn check_writable(&self) -> io::Result<()> {
        self.writable()?;
        sys::check_writable(&*self.open_self()?)
    }

    /// Fails if a file that exists cannot be written. Writes nothing.
    pub fn check_file(&self, name: impl AsRef<Path>) -> io::Result<()> {
        absent(self.open_as(name.as_ref(), Access::Update)).map(drop)
    }

    /// Returns the directory with an open handle, from which later calls resolve names. Use it for
    /// one command or lock, not in a process that may outlive the directory.
    pub fn hold(&self) -> io::Result<Self> {
        let open = OpenDirectory {
            path: Arc::clone(&self.path),
            handle: self.open_self()?,
        };
        Ok(Self {
            open: Some(open),
            ..self.clone()
        })
    }

    /// Path for messages and for other programs.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns `true` if the directory exists.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the path is a link or a file.
    pub fn check(&self) -> io::Result<bool> {
        absent(self.open_self()).map(|handle| handle.is_some())
    }

    /// Returns `true` if the directory exists and is a directory.
    pub fn is_there(&self) -> bool {
        self.check().unwrap_or(false)
    }

    /// Creates the directory and its missing parents, private to the user. Returns `true` if it was
    /// missing.
    pub fn create(&self) -> io::Result<bool> {
        if self.check()? {
            return Ok(false);
        }
        self.writable()?;
        if sys::kind_of_path(&self.base).is_ok_and(|kind| kind.is_none()) {
            sys::make_directories(&self.base)?;
        }
        let parts = self.parts(Path::new(""))?;
        self.walk(&parts, sys::make_directory).map(|_| true)
    }

    /// Removes the permissions of group and others, if the user owns the directory.
    pub fn make_private(&self) -> io::Result<()> {
        self.writable()?;
        sys::make_private(&*self.open_self()?);
        Ok(())
    }

    /// Opens a file for reading; `None` if it does not exist.
    pub fn open(&self, name: impl AsRef<Path>) -> io::Result<Option<File>> {
        absent(self.open_as(name.as_ref(), Access::Read))
    }

    pub(super) fn open_as(&self, name: &Path, access: Access) -> io::Result<File> {
        let place = self.place(name)?;
        file::open(&place.parent, &place.name, &place.shown, access)
    }

    /// Reads a file of at most `limit` bytes; `None` if it does not exist.
    pub fn read(&self, name: impl AsRef<Path>, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let name = name.as_ref();
        self.open(name)?
            .map(|file| file::read(file, &self.path.join(name), limit))
            .transpose()
    }

    /// Reads UTF-8 text of at most `limit` bytes; `None` if the file does not exist.
    pub fn read_text(&self, name: impl AsRef<Path>, limit: u64) -> io::Result<Option<String>> {
        let bytes = self.read(name, limit)?;
        let text = bytes.map(String::from_utf8).transpose();
        text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Reads the text of a file of a person, which may be in UTF-16; see [`Directory::read`].
    pub fn read_decoded(&self, name: impl AsRef<Path>, limit: u64) -> io::Result<Option<String>> {
        let text = self.read(name, limit)?.map(text::decoded).transpose();
        text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Returns the kind of an entry without following links; `None` if it does not exist.
    pub fn kind(&self, name: impl AsRef<Path>) -> io::Result<Option<FoundKind>> {
        let Some(place) = absent(self.place(name.as_ref()))? else {
            return Ok(None);
        };
        sys::kind(&place.parent, &place.name)
    }

    /// Returns `true` if a regular file with this name exists.
    pub fn is_file(&self, name: impl AsRef<Path>) -> bool {
        matches!(self.kind(name), Ok(Some(FoundKind::File)))
    }

    /// Returns all entries, sorted by name; empty if the directory does not exist.
    pub fn list(&self) -> io::Result<Vec<Found>> {
        let Some(handle) = absent(self.open_self())? else {
            return Ok(Vec::new());
        };
        let mut found: Vec<Found> = sys::list(&handle)?
            .into_iter()
            .map(|(name, kind)| Found { name, kind })
            .collect();
        found.sort();
        Ok(found)
    }

    /// Changes an entry; `None` if it does not exist.
    fn change<T>(
        &self,
        name: &Path,
        act: impl FnOnce(&Place) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        self.writable()?;
        absent(self.place(name).and_then(|place| act(&place)))
    }

    /// Removes a file, or a link itself; `false` if it did not exist.
    pub fn remove(&self, name: impl AsRef<Path>) -> io::Result<bool> {
        let done = self.change(name.as_ref(), |at| sys::unlink(&at.parent, &at.name))?;
        Ok(done.is_some())
    }

    /// Removes an empty directory; `false` if it did not exist.
    pub fn remove_empty(&self, name: impl AsRef<Path>) -> io::Result<bool> {
        let remove = |at: &Place| sys::remove_directory(&at.parent, &at.name);
        Ok(self.change(name.as_ref(), remove)?.is_some())
    }

    /// Removes a file, a link itself, or a directory with its content.
    pub fn remove_tree(&self, name: impl AsRef<Path>) -> io::Result<()> {
        let remove = |at: &Place| remove_tree(&at.parent, &at.name, &at.shown, DEEPEST);
        self.change(name.as_ref(), remove).map(drop)
    }

    /// Renames a file within the directory tree; `false` if it did not exist.
    pub fn rename(&self, name: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<bool> {
        self.writable()?;
        let Some(from) = absent(self.place(name.as_ref()))? else {
            return Ok(false);
        };
        let to = self.place(to.as_ref())?;
        let moved = sys::rename(&from.parent, &from.name, &to.parent, &to.name);
        absent(moved).map(|done| done.is_some())
    }

    /// Syncs the directory to disk.
    pub fn sync(&self) -> io::Result<()> {
        sys::sync(&*self.open_self()?)
    }

    /// Returns all links, pipes and devices in the tree. With `hard_links`, also files with more
    /// than one name, which are not written in place.
    pub fn irregular(&self, hard_links: bool) -> Vec<Refused> {
        let mut found = Vec::new();
        let mut waiting = vec![(self.clone(), 0)];
        while let Some((directory, depth)) = waiting.pop() {
            let entries = match directory.list() {
                Ok(entries) => entries,
                Err(error) => {
                    found.extend(Refused::in_error(&error).cloned());
                    continue;
                }
            };
            for entry in entries {
                let reason = match entry.kind {
                    FoundKind::Link => Reason::Link,
                    FoundKind::Other => Reason::NotAFile,
                    FoundKind::File if hard_links && directory.is_shared(&entry.name) => {
                        Reason::HardLink
                    }
                    FoundKind::File => continue,
                    FoundKind::Directory => {
                        if depth < DEEPEST {
                            waiting.push((directory.below(&entry.name), depth + 1));
                        }
                        continue;
                    }
                };
                let path = directory.path.join(&entry.name);
                found.push(Refused { path, reason });
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found
    }

    fn is_shared(&self, name: &OsStr) -> bool {
        let names = |file: File| Some(sys::names(&file, &file.metadata().ok()?));
        let file = self.open(name).ok().flatten();
        file.and_then(names).is_some_and(|names| names > 1)
    }

    /// Path components from the start of the walk down to `name`.
    fn parts(&self, name: &Path) -> io::Result<Vec<OsString>> {
        let outside = || Refused::error(&self.path.join(name), Reason::Outside);
        let whole = self.path.join(name);
        let below = whole
            .strip_prefix(self.start_path())
            .map_err(|_| outside())?;
        // A name must not lead to a sibling of the directory either.
        if !whole.starts_with(&self.path) {
            return Err(outside());
        }
        below
            .components()
            .map(|part| match part {
                Component::Normal(part) => Ok(part.to_owned()),
                _ => Err(outside()),
            })
            .collect()
    }

    /// Opens the directory itself.
    pub(super) fn open_self(&self) -> io::Result<Arc<Handle>> {
        self.walk(&self.parts(Path::new(""))?, |_, _| Ok(true))
    }

    /// Opens the parent directory of a name.
    pub(super) fn place(&self, name: &Path) -> io::Result<Place> {
        let shown = self.path.join(name);
        let mut parts = self.parts(name)?;
        let Some(last) = parts.pop() else {
            return Err(Refused::error(&shown, Reason::Outside));
        };
        let parent = self.walk(&parts, |_, _| Ok(true))?;
        Ok(Place {
            parent,
            name: last,
            shown,
        })
    }

    /// Start of a walk: the held directory, or the base.
    fn start_path(&self) -> &Path {
        self.open.as_ref().map_or(&self.base, |open| &open.path)
    }

    /// Opens the directories down to a place, one in the other. `make` creates a missing one before it is opened.
    fn walk(
        &self,
        parts: &[OsString],
        make: impl Fn(&Handle, &OsStr) -> io::Result<bool>,
    ) -> io::Result<Arc<Handle>> {
        let mut at = match &self.open {
            Some(open) => Arc::clone(&open.handle),
            None => Arc::new(open_base(&self.base)?),
        };
        let mut shown = self.start_path().to_path_buf();
        for part in parts {
            shown.push(part);
            make(&at, part)?;
            at = Arc::new(open_step(&at, part, &shown)?);
        }
        Ok(at)
    }
}

fn open_base(path: &Path) -> io::Result<Handle> {
    let kind = || sys::kind_of_path(path).ok().flatten();
    sys::open_base(path).map_err(|error| refused(kind, path, error))
}

fn open_step(at: &Handle, name: &OsStr, shown: &Path) -> io::Result<Handle> {
    let kind = || sys::kind(at, name).ok().flatten();
    sys::open_directory(at, name).map_err(|error| refused(kind, shown, error))
}

fn refused(kind: impl Fn() -> Option<FoundKind>, shown: &Path, error: io::Error) -> io::Error {
    let kind = sys::is_of_kind(&error).then(kind).flatten();
    file::explain(kind, FoundKind::Directory, shown, error)
}

fn remove_tree(at: &Handle, name: &OsStr, shown: &Path, depth: usize) -> io::Result<()> {
    match sys::kind(at, name)? {
        None => return Ok(()),
        Some(FoundKind::Directory) if depth > 0 => {}
        Some(FoundKind::Directory) => {
            return Err(io::Error::other("the directories are nested too deep"));
        }
        Some(_) => return absent(sys::unlink(at, name)).map(drop),
    }
    sys::remove_open_tree(at, name)?;
    let Some(directory) = absent(open_step(at, name, shown))? else {
        return Ok(());
    };
    for (name, _) in sys::list(&directory)? {
        remove_tree(&directory, &name, &shown.join(&name), depth - 1)?;
    }
    // An open directory cannot be removed on Windows.
    drop(directory);
    absent(sys::remove_directory(at, name)).map(drop)
}

/// Maps `NotFound` to `None`.
pub(super) fn absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Deref for Directory {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for Directory {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.path.fmt(f)
    }
}

impl PartialEq for Directory {
    fn eq(&self, other: &Self) -> bool {
        self.base == other.base && self.path == other.path
    }
}

impl Eq for Directory {}

impl From<&Path> for Directory {
    fn from(path: &Path) -> Self {
        Self::at(path)
    }
}

impl From<PathBuf> for Directory {
    fn from(path: PathBuf) -> Self {
        Self::at(path)
    }
}

impl From<&PathBuf> for Directory {
    fn from(path: &PathBuf) -> Self {
        Self::at(path)
    }
}

impl From<&Self> for Directory {
    fn from(directory: &Self) -> Self {
        directory.clone()
    }
}
