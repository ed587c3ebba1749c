//! Environment of the process, read once.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the place where the environment is read for all the others"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Datelike as _, Utc};

use memctl_files::process::noted_home;
use memctl_files::{named, user_directories};
use memctl_redact::Person;

use crate::store::DIRECTORY;

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
    pub(super) fn trusts_all(&self) -> bool {
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

/// Converts a system time to UTC, clamped to the range of RFC 3339.
fn of_system(time: SystemTime) -> DateTime<Utc> {
    const SECOND: i128 = 1_000_000_000;
    let since = |time: Duration| i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
    let time = time.duration_since(UNIX_EPOCH);
    let time = time.map_or_else(|error| -since(error.duration()), since);
    let seconds = i64::try_from(time.div_euclid(SECOND)).unwrap_or(LAST);
    let nanoseconds = u32::try_from(time.rem_euclid(SECOND)).unwrap_or_default();
    clamped(seconds, nanoseconds)
}

/// Clamps a time to the same range. A time zone can move the first hours of year 0 into the year
/// before.
fn written(time: DateTime<Utc>) -> DateTime<Utc> {
    clamped(time.timestamp(), time.timestamp_subsec_nanos())
}

fn clamped(seconds: i64, nanoseconds: u32) -> DateTime<Utc> {
    let time = DateTime::from_timestamp(seconds.clamp(FIRST, LAST), nanoseconds);
    time.unwrap_or_default()
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
}
