//! The place of a session: the projects and skills that count as its own.
//!
//! Deliberately absent: trust, which is bound to the real memory directory.

use std::path::{Component, Path, PathBuf};

use memctl_files::named;

use super::project::{Project, is_known, same_project, shown_project};
use crate::model::Reflexion;

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
