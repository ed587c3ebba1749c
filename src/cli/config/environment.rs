//! Environment of the process, read once; location of a workspace, and trust in its settings and prompts, as they were
//! at the user's decision.
//!
//! They decide which programs are executed and where data goes, so that each change needs a new
//! decision, even in the user's own workspace. The decision is stored in the user's state directory
//! (`store::trust`).
#![expect(
    clippy::disallowed_methods,
    reason = "this is the place where the environment is read for all the others"
)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Datelike as _, Utc};
use memctl_files::process::noted_home;
use memctl_files::{Directory, hex, named, user_directories};
use memctl_redact::Person;
use sha2::{Digest as _, Sha256};

use super::{FILE, LONGEST};
use crate::model::USER_STORE;
use crate::store::{self, Approvals, DIRECTORY, Project};

/// Variables by which agent hosts mark what their agents run.
const OF_AGENTS: [&str; 4] = ["CLAUDECODE", "CODEX_SANDBOX", "GEMINI_CLI", "CURSOR_AGENT"];

/// Variable by which a call trusts everything.
const TRUSTS_ALL: &str = "MEMCTL_TRUST";

/// Environment variables, directories and time of a process.
#[derive(Debug, Clone)]
pub struct Environment {
    vars: BTreeMap<String, String>,
    /// Current directory.
    pub current_dir: PathBuf,
    /// Home directory of the user; `None` if unknown.
    pub home: Option<PathBuf>,
    /// Directory of the user's settings; `None` if unknown.
    pub config_dir: Option<PathBuf>,
    /// Directory in which programs of the system keep their settings; `None` if unknown.
    pub all_settings_dir: Option<PathBuf>,
    /// Directory of this program's own data about workspaces; `None` if unknown.
    pub state_dir: Option<PathBuf>,
    /// Path of this executable; `None` if unknown.
    pub program: Option<PathBuf>,
    /// Directory of temporary files.
    pub temp_dir: PathBuf,
    /// Current time; fixed by `MEMCTL_NOW` (RFC 3339) for repeatable examples and tests.
    pub now: DateTime<Utc>,
}

impl Environment {
    /// Reads the environment of this process.
    pub fn of_process() -> Self {
        let vars: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let current_dir = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let home = noted_home();
        let directories = user_directories(&|name| {
            let value = vars.get(name).filter(|value| !value.is_empty());
            let directory = value.map(PathBuf::from);
            directory.filter(|at| !is_of_project(at, &current_dir, home.as_deref()))
        });
        let now = vars
            .get("MEMCTL_NOW")
            .and_then(|at| DateTime::parse_from_rfc3339(at).ok())
            .map(|at| written(at.to_utc()));
        Self {
            current_dir,
            home: directories.home,
            config_dir: directories.settings,
            all_settings_dir: directories.all_settings,
            state_dir: directories.data,
            program: std::env::current_exe().ok(),
            temp_dir: std::env::temp_dir(),
            now: now.unwrap_or_else(of_clock),
            vars,
        }
    }

    /// Returns a copy with the current time, for long-running processes. A fixed time stays.
    #[must_use]
    pub fn later(&self) -> Self {
        let fixed = self.var("MEMCTL_NOW").is_some();
        let now = if fixed { self.now } else { of_clock() };
        Self {
            now,
            ..self.clone()
        }
    }

    /// Creates an environment with only these values, for tests.
    #[cfg(test)]
    pub(crate) fn fixed(current_dir: &Path, home: &Path, vars: &[(&str, &str)]) -> Self {
        Self {
            vars: vars
                .iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect(),
            current_dir: current_dir.to_owned(),
            home: Some(home.to_owned()),
            config_dir: Some(home.join(".config/memctl")),
            all_settings_dir: Some(home.join(".config")),
            state_dir: Some(home.join(".local/share/memctl")),
            program: None,
            temp_dir: home.join("tmp"),
            now: DateTime::UNIX_EPOCH,
        }
    }

    /// Returns the value of a variable; `None` if it is unset or empty.
    pub fn var(&self, name: &str) -> Option<String> {
        self.vars
            .get(name)
            .filter(|value| !value.is_empty())
            .cloned()
    }

    /// Returns the login of the user; `None` if no variable names it.
    pub(crate) fn login(&self) -> Option<String> {
        let names = ["USER", "LOGNAME", "USERNAME"];
        names.iter().find_map(|name| self.var(name))
    }

    /// Returns the person's home directory and login.
    pub(crate) fn person(&self) -> Person {
        let home = self.home.as_ref().map(|home| home.display().to_string());
        Person {
            home: home.unwrap_or_default(),
            login: self.login().unwrap_or_default(),
        }
    }

    /// Returns `true` if an agent runs this command: its host marks what its agents run.
    pub fn is_of_agent(&self) -> bool {
        OF_AGENTS.iter().any(|name| self.var(name).is_some())
    }

    /// Returns `true` if a directory came with the project that this process runs in.
    pub(crate) fn is_of_project(&self, directory: &Path) -> bool {
        let home = noted_home().or_else(|| self.home.clone());
        is_of_project(directory, &self.current_dir, home.as_deref())
    }

    /// Unsets the variable by which a call trusts everything. Agent hosts give what they start the variables that
    /// a project sets.
    pub(crate) fn distrust(&mut self) {
        self.vars.remove(TRUSTS_ALL);
    }

    /// Returns `true` if this call trusts everything in a workspace, settings included: for build servers. What an
    /// agent runs has the variables that a project sets.
    fn trusts_all(&self) -> bool {
        let value = self.var(TRUSTS_ALL).filter(|_| !self.is_of_agent());
        value.is_some_and(|value| value == "1" || value == "true")
    }

    /// Returns the directories of `PATH`, in which programs are looked for.
    pub fn search_path(&self) -> Vec<PathBuf> {
        let path = self.var("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .filter(|dir| dir.is_absolute())
            .collect()
    }

    /// Returns the names of variables with this prefix, without the prefix.
    pub fn names_after(&self, beginning: &str) -> Vec<String> {
        let names = self.vars.keys();
        names
            .filter_map(|name| name.strip_prefix(beginning))
            .map(str::to_owned)
            .collect()
    }

    /// Returns the value of a variable, even if it is empty.
    pub(super) fn given(&self, name: &str) -> Option<String> {
        self.vars.get(name).cloned()
    }

    /// Returns a clock. It stands still if `MEMCTL_NOW` is set.
    pub fn clock(&self) -> Box<dyn Fn() -> DateTime<Utc> + Send + Sync> {
        let fixed = self.var("MEMCTL_NOW").map(|_| self.now);
        Box::new(move || fixed.unwrap_or_else(of_clock))
    }

    /// Returns `true` if the machine's clock shows a year that HTTP can write. The HTTP library
    /// panics on any other, even if `MEMCTL_NOW` is set.
    pub fn has_http_time() -> bool {
        (1970..=9998).contains(&of_clock().year())
    }

    /// Resolves a path from the current directory.
    pub fn absolute(&self, path: impl AsRef<Path>) -> PathBuf {
        self.current_dir.join(path)
    }
}

/// Returns `true` if a directory belongs to a project that `here` is in. A project can set variables for what is
/// started in it, and its files must not pass for the user's own. The home that the system notes, and what is above
/// it, belong to no project. A home that a variable moves may hold a memory.
fn is_of_project(directory: &Path, here: &Path, home: Option<&Path>) -> bool {
    // Such a path means another directory for each process.
    if ["/proc", "/dev"]
        .iter()
        .any(|of_process| directory.starts_with(of_process))
    {
        return true;
    }
    let (directory, here) = (named::real_or_new(directory), named::real_or_new(here));
    let has = |at: &Path, name: &str| named::link_metadata(&at.join(name)).is_ok();
    let is_top = |at: &Path| has(at, ".git") || (at != directory && has(at, DIRECTORY));
    let mut above = here.ancestors();
    above.any(|at| {
        let is_of_user = home.is_some_and(|home| home.starts_with(at));
        !is_of_user && directory.starts_with(at) && is_top(at)
    })
}

/// First and last second that RFC 3339 can write: years 0 to 9999.
const FIRST: i64 = -62_167_219_200;
const LAST: i64 = 253_402_300_799;

/// Returns the time of the machine's clock, which may be far off: some machines have no battery.
fn of_clock() -> DateTime<Utc> {
    of_system(SystemTime::now())
}

/// Converts a system time to UTC, clamped to the range of RFC 3339: the conversion panics far outside of it.
fn of_system(time: SystemTime) -> DateTime<Utc> {
    let first = UNIX_EPOCH.checked_sub(Duration::from_secs(FIRST.unsigned_abs()));
    let last = UNIX_EPOCH.checked_add(Duration::from_secs(LAST.unsigned_abs()));
    let time = first.map_or(time, |first| time.max(first));
    last.map_or(time, |last| time.min(last)).into()
}

/// Clamps a time to the same range. A time zone can move the first hours of year 0 into the year
/// before.
fn written(time: DateTime<Utc>) -> DateTime<Utc> {
    let ends = [FIRST, LAST].map(|seconds| DateTime::from_timestamp(seconds, 0));
    let [first, last] = ends.map(Option::unwrap_or_default);
    time.clamp(first, last)
}

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
    fn a_directory_within_a_project_is_not_the_users() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| named::resolved(dir.path()).join(path);
        for path in [
            "me/.agentura", "me/clone/.git", "me/clone/src", "me/unpacked/.agentura",
        ] {
            named::create_dir(&at(path)).unwrap();
        }
        memctl_files::make_link(at("me/clone"), at("me/link")).unwrap();
        let check = |directory: &str, here: &str, expected: bool| {
            let found = is_of_project(&at(directory), &at(here), Some(&at("me")));
            assert_eq!(found, expected, "{directory}, seen from {here}");
        };
        check("me/.local/share", "me/clone", false);
        check("me/.local/share", "me", false);
        check("me/clone/.x/new", "me/clone/src", true);
        check("me/link/.x", "me/clone", true);
        check("me/clone", "me/clone", true);
        check("me/unpacked/data", "me/unpacked", true);
        check("me/unpacked", "me/unpacked", false);
        check("me/clone/.x", "me/unpacked", false);
        assert!(is_of_project(
            Path::new("/proc/self/cwd/x"),
            &at("me"),
            None
        ));
    }

    #[test]
    fn any_clock_has_a_time_that_can_be_written() {
        let check = |time: Option<SystemTime>, expected: &str| {
            let Some(time) = time else {
                return;
            };
            assert_eq!(of_system(time).to_rfc3339(), expected);
        };
        let before = |seconds| UNIX_EPOCH.checked_sub(Duration::from_millis(seconds));
        let after = |seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        check(before(0), "1970-01-01T00:00:00+00:00");
        check(before(1), "1969-12-31T23:59:59.999+00:00");
        check(before(315_619_200_000), "1960-01-01T00:00:00+00:00");
        check(before(36_028_797_018_963_000), "0000-01-01T00:00:00+00:00");
        check(after(1 << 31), "2038-01-19T03:14:08+00:00");
        check(after(1 << 50), "9999-12-31T23:59:59+00:00");
        let zoned = |at: &str| written(DateTime::parse_from_rfc3339(at).unwrap().to_utc());
        assert_eq!(zoned("0000-01-01T00:00:00+09:00").year(), 0);
        assert_eq!(zoned("9999-12-31T23:59:59-09:00").year(), 9999);
    }

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
