//! The project of a directory: what git says, read from git's files.
//!
//! A linked work tree belongs to its main checkout, and subdirectories to the top of the work tree,
//! so that they share one memory and one name. A clone in another directory is recognised by the
//! name of the repository that it comes from.
//!
//! Invariant: a work tree counts as linked only if the repository names it too. What a foreign
//! directory says of itself leads nowhere outside of it.
//!
//! Deliberately absent: trust. It is bound to the real memory directory.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use memctl_files::named;

/// Maximum size of a file of git that is read, in bytes.
const LONGEST: u64 = 64 << 10;

/// Project that a directory belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Project {
    /// Top of the work tree.
    pub root: PathBuf,
    /// Main checkout: the top of the work tree, unless that is a linked one.
    pub main: PathBuf,
    /// Names of the project: the one that records get, then others that it is recognised by.
    names: Vec<String>,
}

impl Project {
    /// Returns the project of a directory: that of the repository around it, below the user's home.
    /// `None` without a repository.
    pub fn of(directory: &Path, home: Option<&Path>) -> Option<Self> {
        let above = directory.ancestors();
        let mut above = above.take_while(|path| Some(*path) != home || *path == directory);
        let root = above.find(|path| named::link_metadata(&path.join(".git")).is_ok())?;
        let (main, git) = linked(root).unwrap_or_else(|| (root.to_owned(), root.join(".git")));
        let mut names: Vec<String> = Vec::new();
        let mut add = |name: Option<&OsStr>| {
            let name = name.map(|name| name.to_string_lossy().into_owned());
            names.extend(name.filter(|name| !name.is_empty()));
        };
        let is_bare = main == git;
        add(if is_bare {
            main.file_stem()
        } else {
            main.file_name()
        });
        add(root.file_name());
        add(remote(&git).as_deref().map(OsStr::new));
        Some(Self {
            root: root.to_owned(),
            main,
            names,
        })
    }

    /// Returns the name that records of the project get.
    pub fn name(&self) -> Option<&str> {
        self.names.first().map(String::as_str)
    }

    /// Returns `true` if the project is recognised by this name.
    pub fn has_name(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }

    /// Returns `true` if the directory is in a linked work tree.
    pub fn is_linked(&self) -> bool {
        self.root != self.main
    }
}

/// Returns the main checkout of a linked work tree, and its directory of git: the file `.git` names
/// a directory of a repository, and that directory names the file.
fn linked(root: &Path) -> Option<(PathBuf, PathBuf)> {
    let file = root.join(".git");
    if !named::link_metadata(&file).ok()?.is_file() {
        return None;
    }
    let text = named::read_text(&file, LONGEST).ok()?;
    let of_tree = root.join(text.strip_prefix("gitdir:")?.trim());
    let common = named::read_text(&of_tree.join("commondir"), LONGEST).ok()?;
    let common = plain(&of_tree.join(common.trim()));
    let back = named::read_text(&of_tree.join("gitdir"), LONGEST).ok()?;
    let back = of_tree.join(back.trim());
    let is_mutual = named::real(&back).ok()? == named::real(&file).ok()?
        && named::real(&of_tree).ok()?.parent()
            == Some(&named::real(&common).ok()?.join("worktrees"));
    if !is_mutual {
        return None;
    }
    let main = if common.file_name().is_some_and(|name| name == ".git") {
        common.parent()?.to_owned()
    } else {
        common.clone()
    };
    Some((main, common))
}

/// Name of the repository that a clone comes from.
fn remote(git: &Path) -> Option<String> {
    let config = named::read_text(&git.join("config"), LONGEST).ok()?;
    let mut lines = config.lines().map(str::trim);
    lines.find(|line| line.replace(' ', "") == "[remote\"origin\"]")?;
    let mut own = lines.take_while(|line| !line.starts_with('['));
    let url =
        own.find_map(|line| Some(line.strip_prefix("url")?.trim().strip_prefix('=')?.trim()))?;
    let last = url.trim_end_matches('/').rsplit(['/', ':', '\\']).next()?;
    let name = last.strip_suffix(".git").unwrap_or(last);
    (!name.is_empty()).then(|| name.to_owned())
}

/// Removes `.` and `..` from a path.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            component => plain.push(component),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Disk(tempfile::TempDir);

    impl Disk {
        fn with(files: &[(&str, &str)]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let disk = Self(dir);
            for (path, text) in files {
                let path = disk.path(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(
                    path,
                    text.replace("DIR", &disk.path("").display().to_string()),
                )
                .unwrap();
            }
            disk
        }

        fn path(&self, path: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(path)
        }

        fn of(&self, path: &str) -> Option<Project> {
            std::fs::create_dir_all(self.path(path)).unwrap();
            Project::of(&self.path(path), Some(&self.path("")))
        }
    }

    const CONFIG: &str =
        "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@host.example:me/shop.git\n";

    #[test]
    fn subdirectories_work_trees_and_clones_are_one_project() {
        let disk = Disk::with(&[
            ("shop/.git/config", CONFIG),
            ("shop/.git/worktrees/fix/commondir", "../..\n"),
            ("shop/.git/worktrees/fix/gitdir", "DIRfix/.git\n"),
            ("fix/.git", "gitdir: DIRshop/.git/worktrees/fix\n"),
            ("copy/.git/config", CONFIG),
        ]);
        let shop = disk.of("shop/src/deep").unwrap();
        assert_eq!((shop.name(), shop.is_linked()), (Some("shop"), false));
        assert!(!shop.has_name("src") && !shop.has_name("deep"));
        let fix = disk.of("fix/src").unwrap();
        assert_eq!((fix.name(), fix.is_linked()), (Some("shop"), true));
        assert_eq!((fix.main, fix.root), (disk.path("shop"), disk.path("fix")));
        let copy = disk.of("copy").unwrap();
        assert_eq!(copy.name(), Some("copy"));
        assert!(copy.has_name("shop") && !copy.has_name("me"));
        assert_eq!(disk.of("elsewhere"), None);
    }

    #[test]
    fn a_file_that_no_repository_confirms_leads_nowhere() {
        let check = |back: &str, common: &str, of_tree: &str| {
            let file = format!("gitdir: DIR{of_tree}\n");
            let disk = Disk::with(&[
                ("shop/.git/config", CONFIG),
                ("shop/.git/worktrees/fix/commondir", "../..\n"),
                ("shop/.git/worktrees/fix/gitdir", "DIRfix/.git\n"),
                ("evil/own/commondir", common),
                ("evil/own/gitdir", back),
                ("evil/.git", &file),
            ]);
            let evil = disk.of("evil").unwrap();
            assert_eq!(
                (evil.name(), evil.is_linked()),
                (Some("evil"), false),
                "{of_tree}"
            );
            assert_eq!(evil.main, disk.path("evil"));
        };
        // Another tree of the user, and a directory of git in the clone itself.
        check("", "", "shop/.git/worktrees/fix");
        check("DIRevil/.git\n", "DIRshop/.git\n", "evil/own");
        check("DIRevil/.git\n", "../../shop/.git\n", "evil/own");
        check("DIRevil/.git\n", "../..\n", "missing");
    }
}
