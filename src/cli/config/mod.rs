//! Settings and their sources, and the models that they name; the only reader of the environment.
//!
//! Later sources override earlier ones: defaults, the user's file, the workspace's file, the
//! environment, flags. Every value keeps its source, for `config show` and error messages.
//!
//! A workspace may come from an untrusted source. Its programs to execute and hosts to send data to
//! count only after `memctl trust`, and only until the file changes. A key goes to no host but its own.

use std::fmt::Display;
use std::io;
use std::num::NonZero;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

pub use environment::{Environment, Places, digest};
pub(crate) use environment::{prompt, prompts};
use memctl_files::{Directory, named};
use memctl_llm::{Endpoint, Limits, Secret, in_directory};
use memctl_search::embedder::{EmbedderConfig, EmbedderName, RemoteEmbedderConfig};

use crate::model::Viewer;
use crate::model::error::UserError;
use crate::store::workspace::{Error, Providers};
use crate::store::{Scoped, advice};

mod environment;

/// Name of a settings file.
pub const FILE: &str = "config.toml";
/// Maximum size of a settings file or a prompt: 1 MiB.
pub(crate) const LONGEST: u64 = 1 << 20;

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
    /// Every setting, in the order of the documentation.
    pub settings: Vec<Setting>,
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
    ) -> Result<Self, UserError> {
        let mut config = Self::defaults();
        if let Some(directory) = &environment.config_dir {
            let path = directory.join(FILE);
            let text = match named::read_decoded(&path, LONGEST) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                text => text.map(Some),
            };
            config.file(&path, text, FileTrust::Settings, directory)?;
        }
        let text = Directory::at(workspace).read_decoded(FILE, LONGEST);
        // Most workspaces have no settings, and a hook does not read the user's decisions for them.
        if !matches!(text, Ok(None)) {
            let trust = match environment.trusts_settings(workspace) {
                true => FileTrust::Settings,
                false if environment.approvals(workspace).is_trusted() => FileTrust::Records,
                false => FileTrust::Nothing,
            };
            let project = workspace.parent().unwrap_or(workspace);
            match config.file(&workspace.join(FILE), text, trust, project) {
                // A file of others stops nothing.
                Err(error) if trust == FileTrust::Nothing => {
                    let warning = format!("{}: it is ignored", error.message);
                    config.warnings.push(warning);
                }
                read => read?,
            }
        }
        for key in KEYS {
            let own = format!("MEMCTL_{}", key.name.to_uppercase().replace('.', "_"));
            for variable in key.variables.iter().copied().chain([own.as_str()]) {
                // An empty variable is unset, except for the user: a script with an empty user name
                // must not get the owner's access.
                let value = match key.name {
                    "user" => environment.given(variable),
                    _ => environment.var(variable),
                };
                if let Some(value) = value {
                    config.set(key.name, value, format!("${variable}"));
                }
            }
        }
        for (name, value) in flags {
            config.set(name, value.clone(), "command line".to_owned());
        }
        Ok(config)
    }

    /// Applies the settings of a file that count with this trust. A program with a relative path is in `directory`.
    fn file(
        &mut self,
        path: &Path,
        text: io::Result<Option<String>>,
        trust: FileTrust,
        directory: &Path,
    ) -> Result<(), UserError> {
        let shown = path.display();
        let text = text.map_err(|source| {
            let hint = advice(path, &source);
            let path = path.to_owned();
            let error = UserError::from(Error::Unreadable { path, source });
            let hint = error.hint.or(Some(hint));
            UserError { hint, ..error }
        })?;
        let table: toml::Table =
            text.unwrap_or_default()
                .parse()
                .map_err(|error: toml::de::Error| {
                    let message = format!("`{shown}` is not TOML: {}", error.message());
                    UserError::input(message, format!("repair or remove `{shown}`"))
                })?;
        let mut found = Vec::new();
        flatten("", &table, &mut found);
        for (name, value) in found {
            let Some(key) = KEYS.iter().find(|key| key.name == name) else {
                let likeness = |key: &Key| strsim::jaro_winkler(key.name, &name);
                let similar = KEYS
                    .iter()
                    .max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
                let similar = similar.filter(|key| likeness(key) > 0.8);
                let hint = similar.map(|key| format!("; did you mean `{}`?", key.name));
                self.warnings.push(format!(
                    "`{shown}` sets `{name}`, which is not a setting{}",
                    hint.unwrap_or_default()
                ));
                continue;
            };
            if key.is_guarded(&value, trust) {
                self.warnings.push(format!(
                    "`{shown}` sets `{name}`, which is ignored until you run `memctl trust`"
                ));
                self.held_back.push((name, value));
                continue;
            }
            let program = value
                .strip_prefix("exec:")
                .filter(|_| key.guard == Guard::Model);
            let program = program.and_then(|line| in_directory(line, directory));
            let value = program.map_or(value, |line| format!("exec:{line}"));
            self.set(key.name, value, format!("`{shown}`"));
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: String, origin: String) {
        if let Some(setting) = self.settings.iter_mut().find(|s| s.name == name) {
            setting.value = value;
            setting.origin = origin;
        }
    }

    fn get(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.name == name)
    }

    /// Returns the value of a setting; `None` if it has none.
    pub fn text(&self, name: &str) -> Option<&str> {
        let value = self.get(name).map(|setting| setting.value.as_str());
        value.filter(|value| !value.is_empty())
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
    pub fn viewer(&self) -> Result<Viewer, UserError> {
        if !self.is_set("user") {
            return Ok(Viewer::Owner);
        }
        self.parsed("user").map(Viewer::User)
    }

    /// Returns `true` if any source sets this, even to the default.
    pub fn is_set(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|setting| setting.origin != "default")
    }

    /// Parses the value of a setting.
    pub fn parsed<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T, UserError> {
        let setting = self.get(name);
        let value = setting.map_or("", |setting| setting.value.as_str());
        value.parse().map_err(|reason: T::Err| {
            let origin = setting.map_or("", |setting| setting.origin.as_str());
            let message = format!("`{name}` is `{value}` in {origin}: {reason}");
            UserError::input(message, "memctl config show")
        })
    }
}

fn flatten(prefix: &str, table: &toml::Table, out: &mut Vec<(String, String)>) {
    for (name, value) in table {
        let name = format!("{prefix}{name}");
        match value {
            toml::Value::Table(table) => flatten(&format!("{name}."), table, out),
            toml::Value::String(text) => out.push((name, text.clone())),
            // No setting takes a list or a date; as text it is rejected with the setting's name.
            toml::Value::Integer(number) => out.push((name, number.to_string())),
            toml::Value::Float(number) => out.push((name, number.to_string())),
            toml::Value::Boolean(flag) => out.push((name, flag.to_string())),
            other => out.push((name, format!("{other:?}"))),
        }
    }
}

#[derive(Debug)]
pub(super) struct Key {
    /// Name in a settings file; dots join nested tables.
    pub(super) name: &'static str,
    /// Default value; empty for none.
    pub(super) default: &'static str,
    /// Variables of other programs that set it too. `MEMCTL_…` overrides them.
    pub(super) variables: &'static [&'static str],
    /// Restriction on values from an untrusted workspace.
    guard: Guard,
    /// Description.
    pub(super) about: &'static str,
}

/// Trust of the user in a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileTrust {
    /// None.
    Nothing,
    /// In the records beside it: the user began the workspace, or trusts it as a source.
    Records,
    /// In its settings: the file is the user's, or trusted as it is now.
    Settings,
}

#[derive(Debug, PartialEq, Eq)]
enum Guard {
    Open,
    /// Names a host for data, or files to read.
    Host,
    /// Can enable sending of data.
    EmbedderConfig,
    /// Can name a program or a file.
    Model,
    /// Amount of money; more than the default needs trust.
    Spending,
    /// Can silence the user's own rules; another value than the default counts in a workspace that
    /// the user began or trusts.
    Rules,
}

impl Key {
    /// Returns `true` if this value does not count from a file with this trust.
    pub(super) fn is_guarded(&self, value: &str, trust: FileTrust) -> bool {
        match self.guard {
            _ if trust == FileTrust::Settings => false,
            Guard::Rules if trust == FileTrust::Records => false,
            Guard::Open => false,
            Guard::Host => true,
            Guard::EmbedderConfig => value != "built-in",
            Guard::Rules => value != self.default,
            Guard::Model => value.contains(':'),
            Guard::Spending => {
                let amount = |text: &str| text.parse::<f64>().ok();
                amount(value)
                    .is_none_or(|value| value.is_nan() || amount(self.default) < Some(value))
            }
        }
    }
}

/// Makes the table: `"name" or "VARIABLE" = "default", guard, "description";`.
macro_rules! keys {
    ($($name:literal $(or $variable:literal)? = $default:literal, $guard:ident, $about:literal;)+) => {
        &[$(Key {
            name: $name,
            default: $default,
            variables: &[$($variable)?],
            guard: Guard::$guard,
            about: $about,
        }),+]
    };
}

/// All settings.
pub(super) const KEYS: &[Key] = keys! {
    "model" = "", Model, "model that answers: `provider/model`, `exec:PROGRAM`, `scripted:FILE` or `offline`";
    "user" = "", Open, "current user: reads and writes only this user's memories and sessions";
    "store" = "auto", Open,
        "where the memory is kept: `auto` (the database of `DATABASE_URL` if it is one of memctl, else files), `json` (files) or `postgres`";
    "memory.task_days" = "90", Open, "days until a task_memory expires; 0 means never";
    "memory.user_store" = "true", Rules,
        "use the rules and lessons of the user store, once `memory promote` has created it";
    "prompt.rules_tokens" = "2000", Rules, "token budget for learned rules in a prompt";
    "prompt.procedures_tokens" = "500", Rules, "token budget for learned procedures in a prompt";
    "offline.min_similarity" = "0.35", Open,
        "minimum similarity of a known case that may answer `--model offline`, 0 to 1";
    "llm.timeout_seconds" = "120", Open, "time limit of a model call in seconds, retries included";
    "llm.retries" = "2", Open, "number of retries after a failed request";
    "llm.max_output_tokens" = "8192", Open, "maximum length of an answer in tokens";
    "llm.ask_above_usd" = "0.50", Spending,
        "estimated cost in US dollars above which a command asks before it calls a model";
    "anthropic.base_url" or "ANTHROPIC_BASE_URL" = "", Host, "base URL of the Anthropic API";
    "openai.base_url" or "OPENAI_BASE_URL" = "", Host, "base URL of the OpenAI API";
    "openrouter.base_url" or "OPENROUTER_BASE_URL" = "", Host, "base URL of OpenRouter";
    "local.base_url" = "http://127.0.0.1:11434/v1", Host, "base URL of a local server with the OpenAI API";
    "local.probe" = "true", Open, "look for a local server if no model is configured";
    "local.model" = "", Open, "model of the local server; empty takes the first that it offers";
    "learning.chat" = "true", Open,
        "ask the agent to record what people's messages state for good; none acts before approval";
    "learning.ask" = "stop", Open,
        "when an agent is asked what its session found out: `stop`, `recovery` or `off`";
    "tests.export" = "false", Open, "also write the tests of corrections for DeepEval and Promptfoo";
    "embedding.provider" = "built-in", EmbedderConfig,
        "embedding provider: `built-in`, `openai` (or a compatible service) or `ollama`";
    "embedding.base_url" = "", Host, "base URL of the embedding service; empty takes the provider's default";
    "embedding.model" = "", Open, "embedding model; empty takes the provider's default";
    "embedding.dimensions" = "", Open, "vector size to request; empty takes the model's default";
    "embedding.batch" = "64", Open, "number of texts in one embedding request, 1 to 512";
};

/// Default base URLs of the embedding services.
const OPENAI: &str = "https://api.openai.com/v1";
const OLLAMA: &str = "http://127.0.0.1:11434/v1";

/// Maximum number of texts in one request: their vectors have to fit into one answer.
const LARGEST_BATCH: usize = 512;

/// Returns the models that the settings and the environment name.
pub(crate) fn providers(
    environment: &Environment,
    config: &Config,
) -> Result<Providers, UserError> {
    let key = |name: &str| environment.var(name).map(|key| Secret::new(&key));
    let url = |name: &str| config.text(name).map(str::to_owned);
    Ok(Providers {
        named: url("model"),
        anthropic_key: key("ANTHROPIC_API_KEY"),
        anthropic_url: url("anthropic.base_url"),
        openai_key: key("OPENAI_API_KEY"),
        openai_url: url("openai.base_url"),
        openrouter_key: key("OPENROUTER_API_KEY"),
        openrouter_url: url("openrouter.base_url"),
        local_url: url("local.base_url").unwrap_or_default(),
        local_key: key("MEMCTL_LOCAL_API_KEY"),
        local_model: url("local.model"),
        local_configured: config.is_set("local.base_url") || config.is_set("local.model"),
        local_probe: config.parsed("local.probe")?,
        search_path: environment.search_path(),
        embedder: embedder(environment, config)?,
        embedder_cache: None,
        answer_within: Duration::from_secs(config.parsed("llm.timeout_seconds")?),
        max_retries: config.parsed("llm.retries")?,
    })
}

/// Returns the embedder that the settings name.
pub(crate) fn embedder(
    environment: &Environment,
    config: &Config,
) -> Result<EmbedderConfig, UserError> {
    let text = |name: &str| config.text(name).map(str::to_owned);
    let key = |name: &str| environment.var(name).map(|key| Secret::new(&key));
    let given = text("embedding.base_url");
    let (provider, home, model, key_of_home) = match config.parsed("embedding.provider")? {
        EmbedderName::BuiltIn => return Ok(EmbedderConfig::BuiltIn),
        EmbedderName::OpenAi => (
            "openai",
            text("openai.base_url").unwrap_or_else(|| OPENAI.to_owned()),
            "text-embedding-3-small",
            key("OPENAI_API_KEY"),
        ),
        EmbedderName::Ollama => ("ollama", OLLAMA.to_owned(), "nomic-embed-text", None),
    };
    // The key of the default host goes to no other host.
    let is_home = given.as_ref().is_none_or(|given| *given == home);
    let number = |name: &str| config.parsed(name).map(NonZero::<usize>::get);
    let dimensions = config.text("embedding.dimensions");
    let dimensions = dimensions.map(|_| number("embedding.dimensions"));
    let limits = Limits {
        answer_within: Duration::from_secs(config.parsed("llm.timeout_seconds")?),
        max_retries: config.parsed("llm.retries")?,
        ..Limits::default()
    };
    let endpoint = Endpoint {
        provider: provider.to_owned(),
        key: key("MEMCTL_EMBEDDING_API_KEY").or(key_of_home.filter(|_| is_home)),
        base_url: given.unwrap_or(home),
        model: text("embedding.model").unwrap_or_else(|| model.to_owned()),
        limits,
    };
    Ok(EmbedderConfig::Remote(Box::new(RemoteEmbedderConfig {
        endpoint,
        dimensions: dimensions.transpose()?,
        batch: number("embedding.batch")?.min(LARGEST_BATCH),
    })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Basis;

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
        approvals
            .trust(Basis::Trusted, "now", &mut || "r".to_owned())
            .unwrap();
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
                .settings
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
        approvals
            .trust(Basis::Trusted, "now", &mut || "r".to_owned())
            .unwrap();
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
        write("model = \"exec:bin/m.sh -x\"\n");
        assert_eq!(load().text("model"), None);
        let digest = super::digest(&workspace);
        approvals
            .trust_settings(digest, &mut || "r".to_owned())
            .unwrap();
        let program = home.path().join("bin/m.sh");
        let expected = format!("exec:{} -x", program.display());
        assert_eq!(load().text("model"), Some(expected.as_str()));
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
        let error = config.parsed::<u32>("llm.retries").unwrap_err().message;
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
        assert!(error.message.contains("is not TOML"), "{error:?}");
    }
}
