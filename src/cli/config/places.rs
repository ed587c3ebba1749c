//! Location of a workspace, and trust in its settings and prompts, as they were at the user's decision.
//!
//! They decide which programs are executed and where data goes, so that each change needs a new
//! decision, even in the user's own workspace. The decision is stored in the user's state directory
//! (`store::trust`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use memctl_files::{Directory, hex, named};
use sha2::{Digest as _, Sha256};

use super::{Environment, FILE, LONGEST};
use crate::model::USER_STORE;
use crate::store::{self, Approvals, DIRECTORY, Project};

/// Directories of a workspace; they may not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Memory directory.
    pub memory: PathBuf,
    /// Skills directory.
    pub skills: PathBuf,
}

impl Places {
    /// Finds the workspace. Order: the given root, `AGENTURA_KNOWLEDGE_DIR`, in a linked work tree of git the
    /// memory of its main checkout, the next `.agentura` upwards, below the user's home. If there is
    /// none, returns the place for a new one: beside the next `skills/` upwards, at the top of the repository, or
    /// here.
    pub fn find(environment: &Environment, root: Option<&Path>) -> Self {
        let here = &environment.current_dir;
        let skills_var = environment
            .var("AGENTURA_SKILLS_DIR")
            .map(|dir| reached(environment.absolute(dir)));
        let skills_above = || {
            let mut above = store::up_to_home(here, environment.home.as_deref());
            above.find(|directory| named::is_dir(&directory.join("skills")))
        };
        if let Some(root) = root {
            let root = environment.absolute(root);
            return Self {
                memory: root.join(DIRECTORY),
                skills: skills_var.unwrap_or_else(|| root.join("skills")),
            };
        }
        let given = environment
            .var("AGENTURA_KNOWLEDGE_DIR")
            .map(|dir| reached(environment.absolute(dir)));
        let memory = given
            .or_else(|| found(here, environment.home.as_deref()))
            .unwrap_or_else(|| {
                let project = Project::of(here, environment.home.as_deref());
                place_of_new(project.as_ref(), skills_above())
                    .unwrap_or(here)
                    .join(DIRECTORY)
            });
        let beside = memory.parent().map(|project| project.join("skills"));
        let skills = skills_var
            .or_else(|| beside.clone().filter(|skills| named::is_dir(skills)))
            .or_else(|| skills_above().map(|project| project.join("skills")))
            .or(beside)
            .unwrap_or_else(|| here.join("skills"));
        Self { memory, skills }
    }

    /// Finds the workspace of an agent's session.
    pub fn of_session(environment: &Environment, root: Option<&Path>) -> Self {
        let places = Self::find(environment, root);
        let is_given = root.is_some() || environment.var("AGENTURA_KNOWLEDGE_DIR").is_some();
        let above = own_above(&places.memory, environment).filter(|_| !is_given);
        above.map_or(places.clone(), |memory| Self { memory, ..places })
    }

    /// Returns the places of the user store; `None` without a data directory.
    pub fn of_user(environment: &Environment) -> Option<Self> {
        let root = environment.state_dir.as_deref()?.join(USER_STORE);
        Some(Self {
            memory: root.join(DIRECTORY),
            skills: root.join("skills"),
        })
    }

    /// Returns the directory of the workspace: the one that holds the memory, or the current
    /// directory if the memory is kept elsewhere.
    pub fn project(&self, environment: &Environment) -> PathBuf {
        let here = &environment.current_dir;
        let root = self.memory.parent().unwrap_or(here);
        let is_here = self
            .memory
            .file_name()
            .is_some_and(|name| name == DIRECTORY);
        if is_here || here.starts_with(root) {
            root.to_owned()
        } else {
            here.clone()
        }
    }
}

/// Returns the directory of a new memory: folders and work trees of a repository share the one at the top of its main
/// checkout, unless a folder has skills of its own.
fn place_of_new<'a>(project: Option<&'a Project>, skills: Option<&'a Path>) -> Option<&'a Path> {
    let Some(project) = project else {
        return skills;
    };
    let own = skills.filter(|path| path.starts_with(&project.root) && *path != project.root);
    own.or_else(|| Some(project.top()))
}

/// Finds the memory of a directory. Work trees of a repository share one.
fn found(here: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let sharing = Project::of(here, home).map(|project| project.sharing());
    let memories = sharing.into_iter().flatten();
    let mut memories = memories.map(|directory| directory.join(DIRECTORY));
    let shared = memories.find(|memory| named::is_dir(memory));
    shared.or_else(|| store::find(here, home))
}

/// Returns the memory that a repository has further up, begun or trusted by this user, for one that is neither: code
/// of others that was copied in must not silence the user's rules.
fn own_above(memory: &Path, environment: &Environment) -> Option<PathBuf> {
    let is_trusted = |memory: &Path| environment.approvals(memory).is_trusted();
    let project = Project::of(&environment.current_dir, environment.home.as_deref())?;
    let is_below = memory.parent()?.starts_with(&project.root) && !is_trusted(memory);
    let above = memory.ancestors().skip(2);
    let within = above.take_while(|directory| directory.starts_with(&project.root));
    let memories = within.map(|directory| directory.join(DIRECTORY));
    let mut own = memories.filter(|memory| named::is_dir(memory) && is_trusted(memory));
    own.next().filter(|_| is_below)
}

/// Returns the real path of a directory that the user has named, if it is a link. Below it no link
/// is followed.
fn reached(path: PathBuf) -> PathBuf {
    let is_link = named::link_metadata(&path).is_ok_and(|metadata| metadata.is_symlink());
    if is_link {
        named::resolved(&path)
    } else {
        path
    }
}

impl Environment {
    /// Returns the user's trust decisions for a memory directory.
    pub fn approvals(&self, directory: &Path) -> Approvals {
        Approvals::of(self.state_dir.as_deref(), directory, self.trusts_all())
    }

    /// Returns `true` if the current settings and prompts of a memory directory are trusted.
    pub fn trusts_settings(&self, directory: &Path) -> bool {
        let noted = || self.approvals(directory).settings();
        self.trusts_all() || noted().is_some_and(|noted| noted == digest(directory))
    }
}

/// Returns a prompt that replaces the built-in one: from the workspace if that is trusted, else from the user's
/// configuration; and `true` if that of the workspace is ignored.
pub(crate) fn prompt(
    environment: &Environment,
    memory: &Path,
    name: &str,
) -> (Option<String>, bool) {
    let prompts = Directory::at(memory).below("prompts");
    let of_workspace = prompts.read_decoded(name, LONGEST).ok().flatten();
    if of_workspace.is_some() && environment.trusts_settings(memory) {
        return (of_workspace, false);
    }
    let of_user = environment.config_dir.as_ref();
    let of_user = of_user.map(|dir| dir.join("prompts").join(name));
    let text = of_user.and_then(|file| named::read_decoded(&file, LONGEST).ok());
    (text, of_workspace.is_some())
}

/// Returns the names of the prompts in a memory directory, sorted.
pub(crate) fn prompts(memory: &Path) -> Vec<OsString> {
    let found = Directory::at(memory).below("prompts").list();
    let names = found
        .unwrap_or_default()
        .into_iter()
        .map(|found| found.name);
    let mut names: Vec<OsString> = names.collect();
    names.sort();
    names
}

/// Returns a hash of the settings and prompts in a memory directory. They decide which programs are
/// executed, where data goes and what a model reads.
pub fn digest(directory: &Path) -> String {
    let (settings, below) = (
        Directory::at(directory),
        Directory::at(directory).below("prompts"),
    );
    let of_prompts = prompts(directory).into_iter().map(|name| (&below, name));
    let mut hash = Sha256::new();
    for (directory, name) in std::iter::once((&settings, FILE.into())).chain(of_prompts) {
        // A file that cannot be read here cannot be read where it is used.
        let content = directory.read(&name, LONGEST).ok().flatten();
        let content = content.unwrap_or_default();
        hash.update(name.as_encoded_bytes());
        hash.update(content.len().to_le_bytes());
        hash.update(&content);
    }
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_found_from_below_or_by_name() {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("p");
        let below = project.join("src/deep");
        std::fs::create_dir_all(&below).unwrap();
        let find = |vars: &[(&str, &str)], root: Option<&str>| {
            let places = Places::find(
                &Environment::fixed(&below, home.path(), vars),
                root.map(Path::new),
            );
            let shown = |path: PathBuf| named::relative(&path, home.path()).display().to_string();
            (shown(places.memory), shown(places.skills))
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(
            find(&[], None),
            pair("p/src/deep/.agentura", "p/src/deep/skills")
        );
        std::fs::create_dir_all(project.join("skills")).unwrap();
        assert_eq!(find(&[], None), pair("p/.agentura", "p/skills"));
        std::fs::create_dir_all(project.join("src/.agentura")).unwrap();
        assert_eq!(find(&[], None), pair("p/src/.agentura", "p/skills"));
        assert_eq!(
            find(&[("AGENTURA_KNOWLEDGE_DIR", "")], None),
            pair("p/src/.agentura", "p/skills")
        );
        assert_eq!(
            find(&[("AGENTURA_KNOWLEDGE_DIR", "kd")], None),
            pair("p/src/deep/kd", "p/skills")
        );
        assert_eq!(
            find(&[("AGENTURA_SKILLS_DIR", "s")], None),
            pair("p/src/.agentura", "p/src/deep/s")
        );
        assert_eq!(
            find(&[], Some("x")),
            pair("p/src/deep/x/.agentura", "p/src/deep/x/skills")
        );
        std::fs::remove_dir(project.join("src/.agentura")).unwrap();
        std::fs::remove_dir(project.join("skills")).unwrap();
        std::fs::create_dir_all(home.path().join("skills")).unwrap();
        std::fs::create_dir_all(home.path().join(".agentura")).unwrap();
        let none = pair("p/src/deep/.agentura", "p/src/deep/skills");
        assert_eq!(find(&[], None), none);
        let at_home = Environment::fixed(home.path(), home.path(), &[]);
        let places = Places::find(&at_home, None);
        assert_eq!(places.memory, home.path().join(".agentura"));
        assert_eq!(places.skills, home.path().join("skills"));
    }
}
