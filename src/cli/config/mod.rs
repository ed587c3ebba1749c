//! Settings and their sources; the only reader of the environment.
//!
//! Later sources override earlier ones: defaults, the user's file, the workspace's file, the
//! environment, flags. Every value keeps its source, for `config show` and error messages.
//!
//! A workspace may come from an untrusted source. Its programs to execute and hosts to send data to
//! count only after `memctl trust`, and only until the file changes.

mod environment;
mod keys;
mod places;
mod trust;

use std::io;
use std::path::{Path, PathBuf};

use crate::model::Viewer;
use crate::model::error::{Explain, Explanation, Kind, of_io};
use crate::store::{Scoped, advice};
use memctl_files::{Directory, named};

use keys::{FileTrust, KEYS, Key};

pub use environment::Environment;
pub use places::Places;
pub use trust::digest;

/// Name of a settings file.
pub const FILE: &str = "config.toml";
/// Maximum size of a settings file or a prompt: 1 MiB.
pub(crate) const LONGEST: u64 = 1 << 20;

/// Reason why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A settings file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A settings file is not TOML.
    #[error("`{}` is not TOML: {reason}", path.display())]
    NotToml {
        /// Path of the file.
        path: PathBuf,
        /// Position and reason.
        reason: String,
    },
    /// A value is not valid for its setting.
    #[error("`{name}` is `{value}` in {origin}: {reason}")]
    Invalid {
        /// Name of the setting.
        name: &'static str,
        /// Invalid value.
        value: String,
        /// Source of the value.
        origin: String,
        /// Expected values.
        reason: String,
    },
    /// The settings cannot be written.
    #[error(transparent)]
    Store(#[from] crate::store::Error),
}

/// Setting with its value and source.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Setting {
    /// Name as in a settings file, e.g. `prompt.rules_tokens`.
    pub name: &'static str,
    /// Value; empty if it has none.
    pub value: String,
    /// Source of the value.
    pub origin: String,
    /// Description.
    pub about: &'static str,
}

/// All settings.
#[derive(Debug, Clone)]
pub struct Config {
    settings: Vec<Setting>,
    /// Ignored entries, one sentence each.
    pub warnings: Vec<String>,
    /// Settings of the workspace that count only after `memctl trust`: names and values.
    pub held_back: Vec<(String, String)>,
}

impl Config {
    /// Returns the settings without any source.
    pub fn defaults() -> Self {
        let settings = KEYS.iter().map(|key| Setting {
            name: key.name,
            value: key.default.to_owned(),
            origin: "default".to_owned(),
            about: key.about,
        });
        Self {
            settings: settings.collect(),
            warnings: Vec::new(),
            held_back: Vec::new(),
        }
    }

    /// Reads all sources. `flags` are the settings from the command line.
    pub fn load(
        environment: &Environment,
        workspace: &Path,
        flags: &[(&str, String)],
    ) -> Result<Self, Error> {
        let mut config = Self::defaults();
        if let Some(directory) = &environment.config_dir {
            let path = directory.join(FILE);
            let text = absent(named::read_decoded(&path, LONGEST));
            config.file(&path, text, FileTrust::Settings)?;
        }
        let text = Directory::at(workspace).read_decoded(FILE, LONGEST);
        // Most workspaces have no settings, and a hook does not read the user's decisions for them.
        if !matches!(text, Ok(None)) {
            let trust = match environment.trusts_settings(workspace) {
                true => FileTrust::Settings,
                false if environment.approvals(workspace).stands() => FileTrust::Records,
                false => FileTrust::Nothing,
            };
            let read = config.file(&workspace.join(FILE), text, trust);
            match (read, trust) {
                // A file of others stops nothing.
                (Err(error), FileTrust::Nothing) => {
                    config.warnings.push(format!("{error}: it is ignored"));
                }
                (read, _) => read?,
            }
        }
        for key in KEYS {
            let own = format!("MEMCTL_{}", key.name.to_uppercase().replace('.', "_"));
            let names = key.variables.iter().copied().chain([own.as_str()]);
            for variable in names {
                // An empty variable is unset, except for the user: a script with an empty user name
                // must not get the owner's access.
                let value = match key.name {
                    "user" => environment.given(variable),
                    _ => environment.var(variable),
                };
                if let Some(value) = value {
                    config.set(key, value, format!("${variable}"));
                }
            }
        }
        for (name, value) in flags {
            if let Some(key) = KEYS.iter().find(|key| key.name == *name) {
                config.set(key, value.clone(), "command line".to_owned());
            }
        }
        Ok(config)
    }

    /// Applies the settings of a file that count with this trust.
    fn file(
        &mut self,
        path: &Path,
        text: io::Result<Option<String>>,
        trust: FileTrust,
    ) -> Result<(), Error> {
        let text = match text {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(()),
            Err(source) => {
                return Err(Error::Unreadable {
                    path: path.to_owned(),
                    source,
                });
            }
        };
        let table: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| Error::NotToml {
                path: path.to_owned(),
                reason: error.message().to_owned(),
            })?;
        let mut found = Vec::new();
        flatten("", &table, &mut found);
        for (name, value) in found {
            let Some(key) = KEYS.iter().find(|key| key.name == name) else {
                let similar = KEYS
                    .iter()
                    .map(|key| (strsim::jaro_winkler(key.name, &name), key.name))
                    .max_by(|a, b| a.0.total_cmp(&b.0))
                    .filter(|(likeness, _)| *likeness > 0.8);
                let hint = similar.map_or(String::new(), |(_, name)| {
                    format!("; did you mean `{name}`?")
                });
                self.warnings.push(format!(
                    "`{}` sets `{name}`, which is not a setting{hint}",
                    path.display()
                ));
                continue;
            };
            if key.is_guarded(&value, trust) {
                self.warnings.push(format!(
                    "`{}` sets `{name}`, which is ignored until you run `memctl trust`",
                    path.display()
                ));
                self.held_back.push((name, value));
                continue;
            }
            self.set(key, value, format!("`{}`", path.display()));
        }
        Ok(())
    }

    fn set(&mut self, key: &Key, value: String, origin: String) {
        if let Some(setting) = self.settings.iter_mut().find(|s| s.name == key.name) {
            setting.value = value;
            setting.origin = origin;
        }
    }

    /// Returns every setting, in the order of the documentation.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Returns the value of a setting; `None` if it has none.
    pub fn text(&self, name: &str) -> Option<&str> {
        let setting = self.settings.iter().find(|setting| setting.name == name);
        setting
            .map(|setting| setting.value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// Returns the store with the user store beside it, if the user has one and wants it here.
    pub fn with_user_store(&self, store: Scoped, environment: &Environment) -> Scoped {
        let wanted = self.parsed("memory.user_store").unwrap_or(false);
        match Places::of_user(environment).filter(|_| wanted) {
            Some(Places { memory, .. })
                if named::is_dir(&memory) && memory != store.directory().path() =>
            {
                let approvals = environment.approvals(&memory);
                store.beside(memory, approvals)
            }
            _ => store,
        }
    }

    /// Returns the identity of the caller. A blank user name is an error.
    pub fn viewer(&self) -> Result<Viewer, Error> {
        if !self.is_set("user") {
            return Ok(Viewer::Owner);
        }
        self.parsed("user").map(Viewer::User)
    }

    /// Returns `true` if any source sets this, even to the default.
    pub fn is_set(&self, name: &str) -> bool {
        self.settings
            .iter()
            .any(|s| s.name == name && s.origin != "default")
    }

    /// Parses the value of a setting.
    pub fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
        &self,
        name: &str,
    ) -> Result<T, Error> {
        let found = self.settings.iter().find(|setting| setting.name == name);
        let (name, value, origin) = found.map_or(("", "", ""), |s| {
            (s.name, s.value.as_str(), s.origin.as_str())
        });
        value.parse().map_err(|error: T::Err| Error::Invalid {
            name,
            value: value.to_owned(),
            origin: origin.to_owned(),
            reason: error.to_string(),
        })
    }
}

/// Returns `None` for a missing file.
fn absent(text: io::Result<String>) -> io::Result<Option<String>> {
    match text {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn flatten(prefix: &str, table: &toml::Table, out: &mut Vec<(String, String)>) {
    for (name, value) in table {
        let name = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}.{name}")
        };
        match value {
            toml::Value::Table(table) => flatten(&name, table, out),
            toml::Value::String(text) => out.push((name, text.clone())),
            toml::Value::Integer(number) => out.push((name, number.to_string())),
            toml::Value::Float(number) => out.push((name, number.to_string())),
            toml::Value::Boolean(flag) => out.push((name, flag.to_string())),
            // No setting takes a list or a date; as text it is rejected with the setting's name.
            other => out.push((name, format!("{other:?}"))),
        }
    }
}

impl Explain for Error {
    fn explain(&self) -> Explanation {
        match self {
            Self::Store(error) => error.explain(),
            Self::Invalid { .. } => (Kind::Input, Some("memctl config show".to_owned())),
            Self::Unreadable { path, source } => (of_io(source), Some(advice(path, source))),
            Self::NotToml { path, .. } => (
                Kind::Input,
                Some(format!("repair or remove `{}`", path.display())),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(home: &Path, vars: &[(&str, &str)]) -> Environment {
        Environment::fixed(home, home, vars)
    }

    #[test]
    fn later_sources_win_and_say_so() {
        let home = tempfile::tempdir().unwrap();
        let workspace = home.path().join("w/.agentura");
        named::create_dir(&workspace).unwrap();
        let env = environment(home.path(), &[("MEMCTL_PROMPT_RULES_TOKENS", "30")]);
        let user = env.config_dir.clone().unwrap();
        named::create_dir(&user).unwrap();
        named::replace(
            &user.join(FILE),
            b"model = \"offline\"\n[prompt]\nrules_tokens = 10\n",
        )
        .unwrap();
        named::replace(
            &workspace.join(FILE),
            b"[prompt]\nrules_tokens = 20\n[offline]\nmin_similarity = 0.7\n",
        )
        .unwrap();
        let approvals = env.approvals(&workspace);
        approvals.trust("now", &mut || "r".to_owned()).unwrap();
        let config = Config::load(&env, &workspace, &[("model", "local/x".into())]).unwrap();
        assert_eq!(config.parsed::<usize>("prompt.rules_tokens").unwrap(), 30);
        assert_eq!(config.text("model"), Some("local/x"));
        assert_eq!(
            config
                .parsed::<f64>("offline.min_similarity")
                .unwrap()
                .to_string(),
            "0.7"
        );
        let origin = |name| {
            config
                .settings()
                .iter()
                .find(|s| s.name == name)
                .unwrap()
                .origin
                .clone()
        };
        assert_eq!(origin("prompt.rules_tokens"), "$MEMCTL_PROMPT_RULES_TOKENS");
        assert_eq!(origin("model"), "command line");
        assert!(origin("offline.min_similarity").contains(".agentura"));
        assert_eq!(config.warnings, [""; 0]);
    }

    #[test]
    fn settings_of_a_clone_do_not_silence_rules_of_the_user() {
        let home = tempfile::tempdir().unwrap();
        let workspace = home.path().join("w/.agentura");
        named::create_dir(&workspace).unwrap();
        let env = environment(home.path(), &[]);
        let text =
            "[memory]\nuser_store = false\n[prompt]\nrules_tokens = 0\nprocedures_tokens = 0\n";
        named::replace(&workspace.join(FILE), text.as_bytes()).unwrap();
        let of_clone = Config::load(&env, &workspace, &[]).unwrap();
        let value = |config: &Config, name| config.text(name).map(str::to_owned);
        assert_eq!(
            value(&of_clone, "memory.user_store").as_deref(),
            Some("true")
        );
        assert_eq!(
            value(&of_clone, "prompt.rules_tokens").as_deref(),
            Some("2000")
        );
        assert_eq!(of_clone.held_back.len(), 3);
        // The user began this one, or trusts it as a source.
        let approvals = env.approvals(&workspace);
        approvals.trust("now", &mut || "r".to_owned()).unwrap();
        let own = Config::load(&env, &workspace, &[]).unwrap();
        assert_eq!(value(&own, "memory.user_store").as_deref(), Some("false"));
        assert_eq!(own.held_back, []);
    }

    #[test]
    fn a_workspace_names_no_program_and_no_host_until_it_is_trusted() {
        let home = tempfile::tempdir().unwrap();
        let workspace = home.path().join(".agentura");
        named::create_dir(&workspace).unwrap();
        let env = environment(home.path(), &[]);
        let write = |text: &str| named::replace(&workspace.join(FILE), text.as_bytes()).unwrap();
        let load = || Config::load(&env, &workspace, &[]).unwrap();
        write("model = \"exec:rm -rf /\"\n[anthropic]\nbase_url = \"https://evil.example\"\n");
        assert_eq!(load().text("model"), None);
        assert_eq!(load().text("anthropic.base_url"), None);
        assert_eq!(load().warnings.len(), 2);
        let approvals = env.approvals(&workspace);
        let digest = digest(&workspace);
        approvals
            .trust_settings(digest, &mut || "r".to_owned())
            .unwrap();
        assert_eq!(load().text("model"), Some("exec:rm -rf /"));
        write("model = \"exec:rm -rf /home\"\n");
        assert_eq!(load().text("model"), None);
        write("model = \"anthropic/claude-x\"\n");
        assert_eq!(load().text("model"), Some("anthropic/claude-x"));
    }

    #[test]
    fn mistakes_are_named() {
        let home = tempfile::tempdir().unwrap();
        let env = environment(home.path(), &[("MEMCTL_LLM_RETRIES", "many")]);
        named::replace(&home.path().join(FILE), b"[promt]\nrules_tokens = 1\n").unwrap();
        let config = Config::load(&env, home.path(), &[]).unwrap();
        assert!(config.warnings[0].contains("did you mean `prompt.rules_tokens`?"));
        let error = config.parsed::<u32>("llm.retries").unwrap_err().to_string();
        assert!(
            error.contains("`llm.retries` is `many` in $MEMCTL_LLM_RETRIES"),
            "{error}"
        );
        // A file of others is ignored with a warning, and one of the user is an error.
        named::replace(&home.path().join(FILE), b"= 1").unwrap();
        let warnings = Config::load(&env, home.path(), &[]).unwrap().warnings;
        assert!(warnings[0].contains("is not TOML"), "{warnings:?}");
        let mut own = env;
        own.config_dir = Some(home.path().to_owned());
        let error = Config::load(&own, &home.path().join("none"), &[]).unwrap_err();
        assert!(matches!(error, Error::NotToml { .. }), "{error}");
    }
}
