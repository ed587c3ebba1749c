//! Owners of files below a directory.
//!
//! A command that root runs in a directory of another user leaves files that its owner can use: new
//! files and directories belong to the owner of the directory that they are made in (see
//! `unix::files`). What older versions left behind is found and given back here.
//!
//! Where the system has no such owners, nothing is foreign.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::directory::Directory;
use super::file::FoundKind;
use super::system::files as sys;

/// Maximum depth of the walk.
const DEEPEST: usize = 16;

/// A file or directory that belongs to somebody else than the directory that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Path of the file.
    pub path: PathBuf,
    /// Name of its owner.
    pub owner: String,
}

/// Owner of a file or directory that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    /// Path of the file.
    pub path: PathBuf,
    /// Name of its owner.
    pub owner: String,
    /// `true` if the directory that it is in belongs to somebody else.
    pub is_foreign: bool,
    /// `true` if it belongs to the user of this process.
    pub is_own: bool,
}

/// Returns the owner of a path, or of the nearest directory above it that exists.
pub fn owned(path: &Path) -> Option<Owned> {
    let (path, owner) = path
        .ancestors()
        .find_map(|path| Some((path, sys::owner_of_path(path)?)))?;
    let above = path.parent().and_then(sys::owner_of_path);
    let is_file = sys::kind_of_path(path).ok().flatten() == Some(FoundKind::File);
    Some(Owned {
        path: path.to_owned(),
        is_foreign: is_file && above.is_some_and(|above| above != owner),
        is_own: sys::is_own(path),
        owner,
    })
}

impl Directory {
    /// Returns what below this directory belongs to somebody else than the directory.
    pub fn foreign(&self) -> Vec<Foreign> {
        let mut found = Vec::new();
        self.each_foreign(&mut |directory, name, owner| {
            let path = directory.join(name);
            found.push(Foreign { path, owner });
        });
        found
    }

    /// Gives what belongs to somebody else to the owner of the directory; only root may. Returns the
    /// paths that changed.
    pub fn give_back(&self) -> Vec<PathBuf> {
        let mut given = Vec::new();
        self.each_foreign(&mut |directory, name, _| {
            let handle = directory.open_self();
            if handle.is_ok_and(|handle| sys::give_to_owner(&handle, name).is_ok()) {
                given.push(directory.join(name));
            }
        });
        given
    }

    fn each_foreign(&self, visit: &mut dyn FnMut(&Self, &OsString, String)) {
        let mut waiting = vec![(self.clone(), 0)];
        while let Some((directory, depth)) = waiting.pop() {
            let Ok(handle) = directory.open_self() else {
                continue;
            };
            for entry in directory.list().unwrap_or_default() {
                if let Some(owner) = sys::foreign_owner(&handle, &entry.name) {
                    visit(&directory, &entry.name, owner);
                }
                if entry.kind == FoundKind::Directory && depth < DEEPEST {
                    waiting.push((directory.below(&entry.name), depth + 1));
                }
            }
        }
    }
}
