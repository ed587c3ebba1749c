//! The environment of the process, read once.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the place where the environment is read for all the others"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

/// What a process is told by its environment.
#[derive(Debug, Clone)]
pub struct Environment {
    vars: BTreeMap<String, String>,
    /// The current directory.
    pub current_dir: PathBuf,
    /// The user's home, if there is one.
    pub home: Option<PathBuf>,
    /// Where the user's settings for this program lie.
    pub config_dir: Option<PathBuf>,
    /// Where this program keeps what it knows of the user's workspaces.
    pub state_dir: Option<PathBuf>,
    /// The file of this program.
    pub program: Option<PathBuf>,
    /// Where temporary files go.
    pub temp_dir: PathBuf,
    /// Now; fixed by `MEMCTL_NOW` (RFC 3339), so that examples and tests can be repeated.
    pub now: DateTime<Utc>,
}

impl Environment {
    /// Reads the environment of this process.
    pub fn of_process() -> Self {
        let vars: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let base = directories::BaseDirs::new();
        let project = directories::ProjectDirs::from("", "", "memctl");
        let now = vars
            .get("MEMCTL_NOW")
            .and_then(|at| DateTime::parse_from_rfc3339(at).ok());
        Self {
            current_dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            home: base.map(|base| base.home_dir().to_owned()),
            config_dir: project
                .as_ref()
                .map(|project| project.config_dir().to_owned()),
            state_dir: project
                .as_ref()
                .map(|project| project.data_local_dir().to_owned()),
            program: std::env::current_exe().ok(),
            temp_dir: std::env::temp_dir(),
            now: now.map_or_else(Utc::now, |at| at.to_utc()),
            vars,
        }
    }

    /// The same later: for a process that lives longer than one command. A time that is fixed stays.
    #[must_use]
    pub fn later(&self) -> Self {
        let fixed = self.var("MEMCTL_NOW").is_some();
        let now = if fixed { self.now } else { Utc::now() };
        Self {
            now,
            ..self.clone()
        }
    }

    /// An environment with nothing in it but this, for tests.
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
            state_dir: Some(home.join(".local/share/memctl")),
            program: None,
            temp_dir: home.join("tmp"),
            now: DateTime::UNIX_EPOCH,
        }
    }

    /// A variable's value. An empty one is unset: that is how shells switch a variable off.
    pub fn var(&self, name: &str) -> Option<String> {
        self.vars
            .get(name)
            .filter(|value| !value.is_empty())
            .cloned()
    }

    /// What follows this beginning in the names of variables.
    pub fn names_after(&self, beginning: &str) -> Vec<String> {
        let names = self.vars.keys();
        names
            .filter_map(|name| name.strip_prefix(beginning))
            .map(str::to_owned)
            .collect()
    }

    /// A variable's value, be it empty.
    pub(super) fn given(&self, name: &str) -> Option<String> {
        self.vars.get(name).cloned()
    }

    /// What tells the time for as long as a process lives; it stands still where `MEMCTL_NOW` does.
    pub fn clock(&self) -> Box<dyn Fn() -> DateTime<Utc> + Send + Sync> {
        let fixed = self.var("MEMCTL_NOW").map(|_| self.now);
        Box::new(move || fixed.unwrap_or_else(Utc::now))
    }

    /// A path, seen from the current directory.
    pub fn absolute(&self, path: impl AsRef<Path>) -> PathBuf {
        self.current_dir.join(path)
    }
}
