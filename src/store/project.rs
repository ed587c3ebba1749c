//! The project of a directory, read from git's files.
//!
//! A linked work tree belongs to its main checkout, and subdirectories to the top of the work tree,
//! so that they share one memory and one name. Work trees of a bare repository share the memory of the
//! first one that has one. A clone in another directory is recognised by its root commit, or by the
//! name of the repository that it comes from. The root commit also distinguishes projects with the same name.
//!
//! Here too: the place of a session, with the projects and skills that count as its own.
//!
//! Invariant: a work tree counts as linked only if the repository names it too. The claim of a foreign
//! directory alone leads nowhere outside of it.
//!
//! Deliberately absent: trust, which is bound to the real memory directory.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use memctl_files::{Directory, named};
use xxhash_rust::xxh3::xxh3_64;

use crate::model::Reflexion;
use crate::store::files::directory;
use crate::store::{DERIVED, DIRECTORY};

/// Name of a project that a client gives by its name or its path, of any system; `None` if it
/// names no directory.
pub(crate) fn project_named(given: &str) -> Option<String> {
    let last = given
        .trim()
        .trim_end_matches(['/', '\\'])
        .rsplit(['/', '\\'])
        .next()?;
    let is_name = !matches!(last, "" | "." | "..");
    is_name.then(|| last.to_owned())
}

/// Maximum size of a file of git that is read, in bytes.
const LONGEST: u64 = 64 << 10;

/// Sign before the root commit in the name of a project: `shop#1a2b3c4d5e6f`.
const COMMIT: char = '#';
/// Length of the root commit in a name.
const COMMIT_LENGTH: usize = 12;
/// Maximum wait for git.
const PATIENCE: Duration = Duration::from_millis(200);

/// Project that a directory belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Project {
    /// Top of the work tree.
    pub root: PathBuf,
    /// Main checkout: the top of the work tree, unless that is a linked one. A bare repository has
    /// none, and is named itself.
    pub main: PathBuf,
    /// Directory of git, which all work trees share.
    git: PathBuf,
    /// Names of the project: the one that records get, then others that it is recognised by.
    names: Vec<String>,
}

impl Project {
    /// Returns the project of a directory: that of the repository around it, below the user's home.
    /// `None` without a repository.
    pub fn of(directory: &Path, home: Option<&Path>) -> Option<Self> {
        let mut above = directory::up_to_home(directory, home);
        let root = above.find(|path| named::link_metadata(&path.join(".git")).is_ok())?;
        let (main, git) = linked(root).unwrap_or_else(|| (root.to_owned(), root.join(".git")));
        let mut names: Vec<String> = Vec::new();
        let mut add = |name: Option<&OsStr>| {
            let name = name.map(|name| name.to_string_lossy().into_owned());
            names.extend(name.filter(|name| !name.is_empty()));
        };
        let is_bare = main == git;
        // `shop/.bare` is the repository of `shop`, and so is `shop.git`.
        let is_hidden = main
            .file_stem()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        add(match (is_bare, is_hidden) {
            (true, true) => main.parent().and_then(Path::file_name),
            (true, false) => main.file_stem(),
            (false, _) => main.file_name(),
        });
        add(root.file_name());
        add(remote(&git).as_deref().map(OsStr::new));
        Some(Self {
            root: root.to_owned(),
            main,
            git,
            names,
        })
    }

    /// Returns a project at a path with these names.
    #[cfg(test)]
    pub(crate) fn with_names(root: &str, names: &[&str]) -> Self {
        Self {
            root: root.into(),
            main: root.into(),
            git: PathBuf::new(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    /// Returns the name that records of the project get.
    pub fn name(&self) -> Option<&str> {
        self.names.first().map(String::as_str)
    }

    /// Returns `true` if the project is recognised by this name: by its root commit where both are
    /// known, or else by a name.
    pub fn has_name(&self, name: &str) -> bool {
        self.names.iter().any(|own| same_project(own, name))
    }

    /// Returns the project with its root commit in its names. The derived files of a memory keep what
    /// git says. A repository elsewhere than its memory that has no commit yet is named by its place instead, and
    /// recognised by that later: another one can have its name.
    #[must_use]
    pub fn identified(mut self, memory: &Path) -> Self {
        let place = xxh3_64(self.git.as_os_str().as_encoded_bytes()) >> 16;
        let by_place = self
            .name()
            .map(|name| format!("{name}{COMMIT}{place:012x}"));
        let is_apart = memory.parent() != Some(&*self.main);
        if let Some(commit) = root_commit(&self.root, &self.git, &Directory::at(memory)) {
            for name in &mut self.names {
                *name = format!("{name}{COMMIT}{commit}");
            }
            self.names.extend(by_place);
        } else if is_apart && is_unborn(&self.git) {
            self.names = by_place.into_iter().collect();
        }
        self
    }

    /// Returns the top of the main checkout; that of the work tree if the repository is a bare one.
    pub fn top(&self) -> &Path {
        if self.main == self.git {
            &self.root
        } else {
            &self.main
        }
    }

    /// Returns the directories whose memory counts before any other: the main checkout of a linked
    /// work tree, or all work trees of a bare repository, this one first.
    pub fn sharing(&self) -> Vec<PathBuf> {
        if self.root == self.main {
            return Vec::new();
        }
        if self.main != self.git {
            return vec![self.main.clone()];
        }
        let trees = named::list(&self.git.join("worktrees")).unwrap_or_default();
        let trees = trees.into_iter().filter_map(|tree| {
            let back = named::read_text(&tree.path().join("gitdir"), LONGEST).ok()?;
            let root = tree.path().join(back.trim()).parent()?.to_owned();
            // The work tree has to name the repository too.
            linked(&root)
                .is_some_and(|(_, git)| git == self.git)
                .then_some(root)
        });
        std::iter::once(self.root.clone()).chain(trees).collect()
    }
}

/// Returns `true` if a repository has no commit yet.
fn is_unborn(git: &Path) -> bool {
    let branches = named::list(&git.join("refs/heads"));
    let is_there = |name: &str| named::exists(&git.join(name));
    branches.is_ok_and(|all| all.is_empty()) && !is_there("packed-refs") && !is_there("reftable")
}

/// Returns `true` if two names are of one project: they have one root commit, or where one has none,
/// one name.
pub fn same_project(a: &str, b: &str) -> bool {
    match (a.split_once(COMMIT), b.split_once(COMMIT)) {
        (Some((_, a)), Some((_, b))) => a == b,
        _ => shown_project(a) == shown_project(b),
    }
}

/// Returns `true` if git has named the project of this name for the memory of a workspace: it is on this machine.
pub(crate) fn is_known(workspace: &Path, name: &str) -> bool {
    let derived = Directory::at(workspace.join(DIRECTORY)).below(DERIVED);
    let Some((_, commit)) = name.split_once(COMMIT) else {
        return false;
    };
    let files = derived.list().unwrap_or_default().into_iter();
    let mut roots =
        files.filter(|file| Path::new(&file.name).extension() == Some(OsStr::new("root")));
    roots.any(|file| {
        derived.read(&file.name, LONGEST).ok().flatten().as_deref() == Some(commit.as_bytes())
    })
}

/// Returns the name of the project that a session began in, by its directory on any system: what git
/// says if the directory is here, or else its last part.
pub fn project_of_session(directory: &str) -> String {
    let path = Path::new(directory);
    let project = Some(path).filter(|path| path.is_absolute() && named::is_dir(path));
    let project = project.and_then(|path| Project::of(path, None));
    if let Some(name) = project.as_ref().and_then(Project::name) {
        return name.to_owned();
    }
    project_named(directory).unwrap_or_default()
}

/// Returns the name of a project without its root commit, for people.
pub fn shown_project(name: &str) -> &str {
    name.split_once(COMMIT).map_or(name, |(name, _)| name)
}

/// Returns the beginning of the first commit of a repository. Asks git once, and keeps the answer as
/// long as the directory of git is the same one; that it has none, until a branch or the index changes.
fn root_commit(root: &Path, git: &Path, memory: &Directory) -> Option<String> {
    let state = named::state(git).ok()?;
    let is_shallow = named::link_metadata(&git.join("shallow")).is_ok();
    if is_shallow {
        return None;
    }
    let key = format!("{} {} {}", git.display(), state.device, state.inode);
    let file = format!("{:016x}.root", xxh3_64(key.as_bytes()));
    let changes = ["refs/heads", "index"].map(|name| named::state(&git.join(name)).ok());
    let unknown = format!(
        "unknown {:?}",
        changes.map(|state| state.map(|one| one.modified))
    );
    let stored = memory.below(DERIVED).read(&file, LONGEST).ok().flatten();
    match stored.and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(stored) if is_commit(&stored) => return Some(stored),
        Some(stored) if stored == unknown => return None,
        _ => {}
    }
    let commit = first_commit(root);
    let answer = commit.as_deref().unwrap_or(&unknown);
    directory::keep_derived(memory, &file, &[answer.as_bytes()]);
    commit
}

/// Asks git for the first commit, for a short time.
fn first_commit(root: &Path) -> Option<String> {
    let args = ["rev-list", "--max-parents=0", "HEAD"];
    let output = memctl_files::git(root, args, Vec::new(), false, PATIENCE).ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let oldest = text.lines().next_back()?.get(..COMMIT_LENGTH)?;
    is_commit(oldest).then(|| oldest.to_owned())
}

fn is_commit(text: &str) -> bool {
    text.len() == COMMIT_LENGTH && text.bytes().all(|b| b.is_ascii_hexdigit())
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

/// Working directory of a session, and the workspace of its memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Here<'a> {
    /// Working directory; `None` if unknown.
    pub directory: Option<&'a Path>,
    /// Directory that holds the memory; `None` if unknown.
    pub root: Option<&'a Path>,
    /// Directory of the skills; `None` if unknown.
    pub skills: Option<&'a Path>,
    /// Project of the directory, as git says; `None` without a repository.
    pub project: Option<&'a Project>,
    /// Name of the project that a client gives, which knows no directory here.
    pub named: Option<&'a str>,
    /// Names that the folder of the memory has had.
    pub former: &'a [String],
    /// `true` if the memory is the user store: nothing of a session is learned into it.
    pub is_of_user: bool,
}

impl Here<'_> {
    /// Returns the name that records of this place get: that of the project, else of the workspace,
    /// else of the working directory. An agent changes directories, and its project stays.
    pub(crate) fn project_name(&self) -> Option<String> {
        if let Some(name) = self.project.and_then(Project::name) {
            return Some(name.to_owned());
        }
        let is_below = |root: &&Path| self.directory.is_none_or(|at| at.starts_with(root));
        let root = self.root.filter(|_| !self.is_of_user).filter(is_below);
        let name = root.or(self.directory)?.file_name()?;
        Some(name.to_string_lossy().into_owned())
    }

    /// Returns `true` if something is known of this place.
    pub(crate) fn is_known(&self) -> bool {
        self.directory.is_some() || self.project.is_some() || self.named.is_some()
    }

    /// Returns `true` if a project of this name is here: as git says, or by the name of the working
    /// directory or of a directory between it and the top of the project or the workspace.
    pub(crate) fn has_project(&self, name: &str) -> bool {
        if let Some(named) = self.named {
            return same_project(named, name);
        }
        let plain = shown_project(name);
        let is_named = |path: &Path| path.file_name().is_some_and(|last| last == plain);
        // A repository is its commit: no other folder is it by the name alone, and least by one that a file claims.
        if plain != name {
            let is_own = |project: &Project| self.is_memory_of(project) && project.has_name(plain);
            return match (self.project, self.root.zip(self.directory)) {
                (Some(project), _) => project.has_name(name) || is_own(project),
                (None, Some((root, at))) => at.starts_with(root) && is_named(root),
                (None, None) => false,
            };
        }
        let is_renamed = || self.former.iter().any(|former| former == plain);
        let (tops, own) = match self.project {
            Some(project) => (
                [self.root, Some(project.root.as_path())],
                project.has_name(name),
            ),
            None => ([self.root, self.directory], false),
        };
        own || self.directory.is_some_and(|at| {
            let is_below = |path: &Path| tops.iter().flatten().any(|top| path.starts_with(top));
            at.ancestors()
                .take_while(|path| is_below(path))
                .any(|path| is_named(path) || self.root == Some(path) && is_renamed())
        })
    }

    /// Returns `true` if the memory is inside the project. Its records with the name of the project keep their
    /// project after another first commit: a history that was rewritten or begun again.
    fn is_memory_of(&self, project: &Project) -> bool {
        self.root
            .is_some_and(|root| root == project.root || root == project.main)
    }

    /// Returns `true` if a rule is of every project, or people said it in one that is here.
    pub(crate) fn covers(&self, rule: &Reflexion) -> bool {
        let projects = rule.projects();
        projects.is_empty()
            || projects
                .iter()
                .any(|name| self.has_project(name) || self.is_part(name))
    }

    /// Returns `true` if nothing here has the name of a rule's project: its folder was renamed, or its rules were
    /// taken from elsewhere. They act nowhere until a person says that they hold here.
    pub(crate) fn is_strange_to(&self, rule: &Reflexion) -> bool {
        let is_below = |name: &str| self.folder(shown_project(name)).is_some();
        let is_inside = self
            .directory
            .zip(self.root)
            .is_some_and(|(at, root)| at.starts_with(root));
        let is_met = |name: &str| self.root.is_some_and(|root| is_known(root, name));
        let is_there = |name: &str| is_below(name) || is_met(name);
        is_inside && !self.covers(rule) && !rule.projects().into_iter().any(is_there)
    }

    /// Returns `true` if a directory of the workspace has this name, where a session works in the
    /// workspace as a whole. One that is a repository is a project of its own.
    fn is_part(&self, name: &str) -> bool {
        let is_whole = self.directory.is_some() && self.directory == self.root;
        let is_own = |part: PathBuf| !named::exists(&part.join(".git"));
        is_whole && self.folder(name).is_some_and(is_own)
    }

    /// Returns the directory of the workspace with this name, which comes from a file and must not lead anywhere else.
    fn folder(&self, name: &str) -> Option<PathBuf> {
        let mut parts = Path::new(name).components();
        let is_name = matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none();
        let path = self.root.filter(|_| is_name)?.join(name);
        named::is_dir(&path).then_some(path)
    }

    /// Returns `true` if the workspace has a skill of this path.
    pub(crate) fn has_skill(&self, path: &str) -> bool {
        let mut parts = Path::new(path).components();
        parts.all(|part| matches!(part, Component::Normal(_)))
            && self
                .skills
                .is_some_and(|skills| named::is_dir(&skills.join(path)))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

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
        assert_eq!((shop.name(), shop.sharing()), (Some("shop"), vec![]));
        assert!(!shop.has_name("src") && !shop.has_name("deep"));
        let fix = disk.of("fix/src").unwrap();
        assert_eq!(
            (fix.name(), fix.sharing()),
            (Some("shop"), vec![disk.path("shop")])
        );
        assert_eq!((fix.main, fix.root), (disk.path("shop"), disk.path("fix")));
        let copy = disk.of("copy").unwrap();
        assert_eq!(copy.name(), Some("copy"));
        assert!(copy.has_name("shop") && !copy.has_name("me"));
        assert_eq!(disk.of("elsewhere"), None);
        let session = |path: &str| project_of_session(&disk.path(path).display().to_string());
        assert_eq!(
            [
                session("shop/src/deep"),
                session("fix/src"),
                session("gone/x")
            ],
            ["shop", "shop", "x"]
        );
        assert_eq!(project_of_session("C:\\work\\shop\\"), "shop");
    }

    #[test]
    fn work_trees_of_a_bare_repository_share_a_memory_and_a_name() {
        let check = |repository: &str, name: &str| {
            let of = |tree: &str| format!("gitdir: DIR{repository}/worktrees/{tree}\n");
            let path = |rest: &str| format!("{repository}/{rest}");
            let disk = Disk::with(&[
                (&path("config"), CONFIG),
                (&path("worktrees/main/commondir"), "../..\n"),
                (&path("worktrees/main/gitdir"), "DIRmain/.git\n"),
                (&path("worktrees/fix/commondir"), "../..\n"),
                (&path("worktrees/fix/gitdir"), "DIRfix/.git\n"),
                // It names a tree that does not name it.
                (&path("worktrees/evil/gitdir"), "DIRevil/.git\n"),
                ("evil/.git/config", CONFIG),
                ("main/.git", &of("main")),
                ("fix/.git", &of("fix")),
            ]);
            let fix = disk.of("fix").unwrap();
            assert_eq!(fix.name(), Some(name));
            let mut sharing = fix.sharing();
            sharing.dedup();
            assert_eq!(sharing, ["fix", "main"].map(|tree| disk.path(tree)));
        };
        check("shop.git", "shop");
        check("shop/.bare", "shop");
    }

    #[test]
    fn root_commit_tells_projects_of_one_name_apart_and_finds_clones() {
        let check = |a: &str, b: &str, expected: bool| {
            assert_eq!(
                (same_project(a, b), same_project(b, a)),
                (expected, expected),
                "{a} {b}"
            );
        };
        check("shop", "shop", true);
        check("shop", "blog", false);
        check("shop#1a2b3c4d5e6f", "shop", true);
        check("shop#1a2b3c4d5e6f", "copy#1a2b3c4d5e6f", true);
        check("shop#1a2b3c4d5e6f", "shop#000000000000", false);
        assert_eq!(shown_project("shop#1a2b3c4d5e6f"), "shop");
    }

    #[test]
    #[cfg_attr(windows, ignore = "it needs git")]
    fn git_is_asked_once_for_the_root_commit() {
        let disk = Disk::with(&[("memory/.index/x", "")]);
        let git = |args: &[&str]| {
            let ran = Command::new("git")
                .args(["-c", "user.name=n", "-c", "user.email=n@example.org"])
                .args(args)
                .current_dir(disk.path(""))
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .env("HOME", disk.path(""))
                .output();
            assert!(ran.unwrap().status.success(), "{args:?}");
        };
        git(&["init", "-q", "shop"]);
        let named = |path: &str| disk.of(path).unwrap().identified(&disk.path("memory"));
        // Without a commit, only the place says something.
        let before = named("shop");
        assert_eq!(before.name().map(shown_project), Some("shop"));
        assert!(!before.has_name("shop#1a2b3c4d5e6f") && before.has_name("shop"));
        let in_it = disk.of("shop").unwrap();
        let in_it = in_it.identified(&disk.path("shop/.agentura"));
        assert_eq!(in_it.name(), Some("shop"));
        git(&["-C", "shop", "commit", "-q", "--allow-empty", "-m", "a"]);
        git(&["clone", "-q", "shop", "other"]);
        let (shop, other) = (named("shop"), named("other"));
        assert!(shop.has_name(before.name().unwrap()));
        assert!(other.has_name(shop.name().unwrap()) && shop.has_name(other.name().unwrap()));
        let files = std::fs::read_dir(disk.path("memory/.index"))
            .unwrap()
            .count();
        assert_eq!(files, 3);
        assert_eq!(named("shop"), shop);
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
                (evil.name(), evil.sharing()),
                (Some("evil"), vec![]),
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

    #[test]
    fn a_project_is_named_by_its_name_or_its_path() {
        let check = |given: &str, expected: Option<&str>| {
            assert_eq!(project_named(given).as_deref(), expected, "{given}");
        };
        check("shop", Some("shop"));
        check(" /home/a/shop/ ", Some("shop"));
        check("C:\\work\\shop\\", Some("shop"));
        check("/", None);
        check("", None);
        check("/home/a/..", None);
    }
}

#[cfg(test)]
mod tests_of_here {
    use super::*;

    #[test]
    fn project_is_here_by_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["work/shop/api/src", "work/blog/.git", "work/skills/hr/x"] {
            named::create_dir(&dir.path().join(name)).unwrap();
        }
        let work = dir.path().join("work");
        let check = |at: &str, root: &Path, name: &str, expected: bool| {
            let at = dir.path().join(at);
            let here = Here {
                directory: Some(&at),
                root: Some(root),
                ..Here::default()
            };
            assert_eq!(
                here.has_project(name),
                expected,
                "{name} in {}",
                at.display()
            );
        };
        let shop = work.join("shop");
        check("work/shop", &shop, "shop", true);
        check("work/shop", &shop, "api", false);
        check("work/shop/api/src", &shop, "shop", true);
        check("work/shop/api/src", &shop, "work", false);
        check("work/shop/api", &work, "shop", true);
        check("work/shop/api", &work, "work", true);
        check("work/shop", &work, "blog", false);
        check("work", &work, "shop", false);
        check("work", &work, "work", true);
        check("work/shop/api", &work, "api#1a2b3c4d5e6f", false);
        check("work/shop/api", &work, "work#1a2b3c4d5e6f", true);
        check("elsewhere", &work, "elsewhere", true);
        check("elsewhere", &work, "elsewhere#1a2b3c4d5e6f", false);
        check("elsewhere", &work, "work", false);
        let rule = |project: &str| -> Reflexion {
            let rule = serde_json::json!({ "said": [{ "quote": "q", "workspace": project }] });
            serde_json::from_value(rule).unwrap()
        };
        let whole = Here {
            directory: Some(&work),
            root: Some(&work),
            ..Here::default()
        };
        assert!(whole.covers(&rule("shop")) && !whole.covers(&rule("blog")));
        assert!(!whole.covers(&rule("..")) && !whole.covers(&rule("shop/api")));
        let part = Here {
            directory: Some(&shop),
            ..whole
        };
        assert!(part.covers(&rule("shop")) && !part.covers(&rule("blog")));
        let skills = work.join("skills");
        let here = Here {
            skills: Some(&skills),
            ..Here::default()
        };
        assert!(here.has_skill("hr/x") && !here.has_skill("hr/y") && !here.has_skill("../shop"));
        assert!(!here.has_project("shop"));
    }

    #[test]
    fn a_memory_in_its_project_outlives_the_first_commit() {
        let project = Project::with_names("/work/shop", &["shop#1a2b3c4d5e6f"]);
        let former = ["stall".to_owned()];
        let check = |root: &str, name: &str, expected: bool| {
            let here = Here {
                directory: Some(Path::new("/work/shop/src")),
                root: Some(Path::new(root)),
                project: Some(&project),
                former: &former,
                ..Here::default()
            };
            assert_eq!(here.has_project(name), expected, "{name}, memory in {root}");
        };
        check("/work/shop", "shop#1a2b3c4d5e6f", true);
        check("/work/shop", "shop#000000000000", true);
        check("/work/shop", "blog#000000000000", false);
        check("/work/shop", "src#000000000000", false);
        check("/work/shop", "src", true);
        // Former names in a file hold for no repository that git knows.
        check("/work/shop", "stall", true);
        check("/work/shop", "stall#000000000000", false);
        check("/work", "shop#1a2b3c4d5e6f", true);
        check("/work", "shop#000000000000", false);
        check("/work", "shop", true);
    }
}
