//! Context of every command: settings, workspace, clock and user.

use std::io::Read as _;
use std::num::NonZero;
use std::path::Path;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::config::{Config, Environment, LONGEST, Places};
use crate::embedder::{EmbedderConfig, EmbedderName, RemoteEmbedderConfig};
use crate::error::UserError;
use crate::llm::{EmbeddingsProtocol, Secret};
use crate::model::{Scope, USER_STORE, Viewer, split_origin};
use crate::platform::{Directory, named, process};
use crate::remote;
use crate::store::{AuditContext, Scoped};
use crate::workspace::{Error, Providers};
use crate::workspace::{Settings, Workspace};

use super::global::Global;
use super::off::Off;
use super::output::Printer;
use super::primary::primary;

/// Maximum size of a text from standard input or a file: 16 MiB.
const MAX_GIVEN: u64 = 16 << 20;

/// Default base URLs of the embedding services.
const OPENAI: &str = "https://api.openai.com/v1";
const OLLAMA: &str = "http://127.0.0.1:11434";

/// Maximum number of texts in one request: their vectors have to fit into one answer.
const LARGEST_BATCH: usize = 512;

pub(super) struct Context {
    pub(in crate::cli) environment: Environment,
    pub(super) places: Places,
    pub(super) printer: Printer,
    /// Reason why memory is switched off; `None` while it is on.
    pub(super) off: Option<Off>,
    /// Scope as given on the command line; `None` without the flag.
    pub(super) given_scope: Option<String>,
    scope: Scope,
    user: Option<String>,
    pub(super) verbose: bool,
    /// Name of the command in audit events and the undo journal.
    why: String,
    /// Name of the change that the command makes.
    change: String,
}

impl Context {
    pub(super) fn new(
        environment: Environment,
        global: &Global,
        printer: Printer,
        why: String,
    ) -> Self {
        let places = Places::find(&environment, global.root.as_deref());
        Self {
            why,
            change: AuditContext::change_name(&random()),
            off: Off::of(&environment, &places, global.user.as_deref()),
            places,
            given_scope: global.scope.clone(),
            scope: global.scope.as_deref().map_or(Scope::All, Scope::parse),
            user: global.user.clone(),
            verbose: global.verbose,
            environment,
            printer,
        }
    }

    /// Returns the context for another workspace, without scope or user.
    pub(super) fn elsewhere(&self, places: Places) -> Self {
        Self {
            off: Off::of(&self.environment, &places, None),
            places,
            environment: self.environment.clone(),
            printer: self.printer.clone(),
            given_scope: None,
            scope: Scope::All,
            user: None,
            verbose: self.verbose,
            why: self.why.clone(),
            change: self.change.clone(),
        }
    }

    /// Returns this context for one more change, which is undone by itself.
    pub(super) fn for_next_change(&self) -> Self {
        Self {
            change: AuditContext::change_name(&random()),
            given_scope: self.given_scope.clone(),
            scope: self.scope.clone(),
            user: self.user.clone(),
            ..self.elsewhere(self.places.clone())
        }
    }

    /// Opens the store for the caller's scope and user, at the current time.
    pub(super) fn store(&self, config: &Config) -> Result<Scoped, UserError> {
        let viewer = config.viewer()?;
        let audit_context = audit_context(
            &self.environment,
            &viewer,
            self.why.clone(),
            self.change.clone(),
        );
        let store = Scoped::new(&self.places.memory, self.scope.clone());
        let store = store
            .at(self.environment.now)
            .seen_by(viewer)
            .acting(audit_context);
        let store = store.trusting(self.environment.approvals(&self.places.memory));
        if matches!(self.off, Some(Off::Marker(_) | Off::Variable(_))) {
            // No file of the memory is read.
            return Ok(store);
        }
        Ok(match primary(&self.environment, &store)? {
            Some(primary) => store.backed_by(primary),
            None => store,
        })
    }

    /// Returns the user of the command line.
    pub(super) fn given_user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Loads the settings and prints their warnings.
    pub(super) fn config(&self, flags: &[(&str, String)]) -> Result<Config, UserError> {
        let user = self.user.iter().map(|user| ("user", user.clone()));
        let flags: Vec<(&str, String)> = flags.iter().cloned().chain(user).collect();
        let config = Config::load(&self.environment, &self.places.memory, &flags)?;
        for warning in &config.warnings {
            self.printer.warn(warning);
        }
        Ok(config)
    }

    /// Loads the settings without printing their warnings.
    pub(super) fn config_quietly(&self) -> Result<Config, UserError> {
        Ok(Config::load(&self.environment, &self.places.memory, &[])?)
    }

    /// Opens the workspace and applies what other copies of the memory have written. `model` is the
    /// model of the command line.
    pub(super) fn workspace(&self, model: Option<&str>) -> Result<Workspace, UserError> {
        let workspace = self.workspace_over_files(model)?;
        if self.off.is_none() {
            remote::catch_up(&workspace.store)?;
        }
        Ok(workspace)
    }

    /// Opens the workspace with the user store beside it, for commands that read for the user or
    /// their agents.
    pub(super) fn workspace_of_user(&self, model: Option<&str>) -> Result<Workspace, UserError> {
        let mut workspace = self.workspace(model)?;
        if self.off.is_none() {
            let config = self.config_quietly()?;
            workspace.store = config.with_user_store(workspace.store, &self.environment);
        }
        Ok(workspace)
    }

    /// Returns the context of the user store, for the commands that change it.
    pub(super) fn of_user_store(&self) -> Result<Self, UserError> {
        let places = Places::of_user(&self.environment).ok_or_else(|| {
            UserError::usage("there is no data directory for a user store", "set HOME")
        })?;
        Ok(self.elsewhere(places))
    }

    /// Opens the workspace that holds the record of an id: this one, or the user store for
    /// `REFL-001@user`. Returns it with the id in it.
    pub(super) fn workspace_of_id(&self, id: &str) -> Result<(Workspace, String), UserError> {
        match split_origin(id) {
            (own, Some(USER_STORE)) => Ok((self.of_user_store()?.workspace(None)?, own.to_owned())),
            _ => Ok((self.workspace(None)?, id.to_owned())),
        }
    }

    /// Says how to revert a change of the user store. The last change of this workspace is another.
    pub(super) fn note_change_of_user_store(&self) {
        self.printer
            .note("to undo it: memctl memory undo --user-store");
    }

    /// Opens the workspace over the files as they are.
    pub(super) fn workspace_over_files(&self, model: Option<&str>) -> Result<Workspace, UserError> {
        let flags: Vec<(&str, String)> =
            model.map(|m| ("model", m.to_owned())).into_iter().collect();
        let config = self.config(&flags)?;
        if self.verbose {
            self.printer
                .note(&format!("memory: {}", self.places.memory.display()));
            self.printer
                .note(&format!("skills: {}", self.places.skills.display()));
        }
        Ok(Workspace {
            store: self.store(&config)?,
            skills_dir: self.places.skills.clone(),
            settings: Settings {
                rules_tokens: config.parsed("prompt.rules_tokens")?,
                procedures_tokens: config.parsed("prompt.procedures_tokens")?,
                max_output_tokens: config.parsed("llm.max_output_tokens")?,
                min_similarity: config.parsed("offline.min_similarity")?,
                reflect_prompt: self.prompt("reflect.md"),
                analyse_prompt: self.prompt("analyse_failure.md"),
                consolidate_prompt: self.prompt("consolidate.md"),
                judge_prompt: self.prompt("judge.md"),
                rewrite_prompt: self.prompt("rewrite_query.md"),
                rewrite: config.parsed("search.rewrite")?,
                withhold: config.parsed("experiment.withhold")?,
                audit_reads: config.parsed("audit.reads")?,
                export_tests: config.parsed("tests.export")?,
                task_days: config.parsed("memory.task_days")?,
            },
            providers: self.providers(&config)?,
            spare_dir: self.environment.temp_dir.clone(),
            group_commit: std::sync::Arc::default(),
            seen_memories: std::sync::Arc::default(),
            now: self.environment.now,
            random,
        })
    }

    fn providers(&self, config: &Config) -> Result<Providers, UserError> {
        let key = |name: &str| self.environment.var(name).map(|key| Secret::new(&key));
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
            search_path: self.environment.search_path(),
            embedder: self.embedder(config)?,
            kept: None,
            answer_within: Duration::from_secs(config.parsed("llm.timeout_seconds")?),
            max_retries: config.parsed("llm.retries")?,
        })
    }

    /// Returns the embedder that the settings name.
    pub(super) fn embedder(&self, config: &Config) -> Result<EmbedderConfig, UserError> {
        let text = |name: &str| config.text(name).map(str::to_owned);
        let protocol = match config.parsed("embedding.provider")? {
            EmbedderName::BuiltIn => return Ok(EmbedderConfig::BuiltIn),
            EmbedderName::Folder => {
                let Some(folder) = config.text("embedding.folder") else {
                    let message =
                        "`embedding.provider` is `folder`, but `embedding.folder` is not set";
                    return Err(UserError::usage(message, "memctl config show"));
                };
                let project = self.places.memory.parent().unwrap_or(&self.places.memory);
                return Ok(EmbedderConfig::Folder(project.join(folder)));
            }
            EmbedderName::Remote(protocol) => protocol,
        };
        let key = |name: &str| self.environment.var(name).map(|key| Secret::new(&key));
        let given = text("embedding.base_url");
        let (home, model, key_of_home) = match protocol {
            EmbeddingsProtocol::OpenAi => (
                text("openai.base_url").unwrap_or_else(|| OPENAI.to_owned()),
                "text-embedding-3-small",
                key("OPENAI_API_KEY"),
            ),
            EmbeddingsProtocol::Ollama => (OLLAMA.to_owned(), "nomic-embed-text", None),
        };
        // The key of the default host goes to no other host.
        let is_home = given.as_ref().is_none_or(|given| *given == home);
        let dimensions = config.text("embedding.dimensions");
        let dimensions: Option<NonZero<usize>> = dimensions
            .map(|_| config.parsed("embedding.dimensions"))
            .transpose()?;
        let batch: NonZero<usize> = config.parsed("embedding.batch")?;
        Ok(EmbedderConfig::Remote(RemoteEmbedderConfig {
            protocol,
            key: key("MEMCTL_EMBEDDING_API_KEY").or(key_of_home.filter(|_| is_home)),
            base_url: given.unwrap_or(home),
            model: text("embedding.model").unwrap_or_else(|| model.to_owned()),
            dimensions: dimensions.map(NonZero::get),
            batch: batch.get().min(LARGEST_BATCH),
            answer_within: Duration::from_secs(config.parsed("llm.timeout_seconds")?),
            max_retries: config.parsed("llm.retries")?,
        }))
    }

    /// Returns a prompt that replaces the built-in one: from the workspace if that is trusted, else
    /// from the user's configuration.
    fn prompt(&self, name: &str) -> Option<String> {
        let prompts = Directory::at(&self.places.memory).below("prompts");
        let of_workspace = prompts.read_text(name, LONGEST).ok().flatten();
        if of_workspace.is_some() {
            if self.environment.trusts_settings(&self.places.memory) {
                return of_workspace;
            }
            self.printer.warn(&format!(
                "`{}` is ignored until you run `memctl trust`",
                self.places.memory.join("prompts").join(name).display()
            ));
        }
        let of_user = self.environment.config_dir.as_deref()?;
        named::read_text(&of_user.join("prompts").join(name), LONGEST).ok()
    }

    /// Lists the names of the prompts in the workspace, sorted.
    pub(super) fn prompts_of_workspace(&self) -> Vec<String> {
        let prompts = Directory::at(&self.places.memory).below("prompts");
        let found = prompts.list().unwrap_or_default().into_iter();
        let mut names: Vec<String> = found
            .map(|found| found.name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Returns the session of a command: from the flag, else from the variable `MEMCTL_SESSION`.
    pub(super) fn session(&self, given: Option<String>) -> Option<String> {
        given.or_else(|| self.environment.var("MEMCTL_SESSION"))
    }

    /// Returns the given text, or standard input for `-`.
    pub(super) fn text(&self, given: &str) -> Result<String, UserError> {
        if given == "-" {
            self.read(Path::new("-"))
        } else {
            Ok(given.to_owned())
        }
    }

    /// Reads a JSON document from a file, or from standard input for `-`.
    pub(super) fn json(&self, path: &Path) -> Result<Box<RawValue>, UserError> {
        let text = self.read(path)?;
        let text = text.trim_start_matches('\u{feff}').trim();
        serde_json::from_str(text).map_err(|source| {
            let path = path.to_owned();
            Error::NotJson { path, source }.into()
        })
    }

    /// Reads the text of a file, or of standard input for `-`.
    fn read(&self, path: &Path) -> Result<String, UserError> {
        let unreadable = |source| Error::Unreadable {
            path: path.to_owned(),
            source,
        };
        let mut bytes = Vec::new();
        let limit = MAX_GIVEN + 1;
        if path == Path::new("-") {
            std::io::stdin()
                .lock()
                .take(limit)
                .read_to_end(&mut bytes)
                .map_err(unreadable)?;
        } else {
            let file = named::open(&self.environment.absolute(path)).map_err(unreadable)?;
            file.take(limit)
                .read_to_end(&mut bytes)
                .map_err(unreadable)?;
        }
        if bytes.len() as u64 > MAX_GIVEN {
            return Err(unreadable(invalid("larger than 16 MiB")).into());
        }
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            unreadable(invalid(&format!("not valid UTF-8 at byte {at}"))).into()
        })
    }

    /// Directory of the project: the one that holds the memory.
    pub(super) fn project(&self) -> &Path {
        self.places.memory.parent().unwrap_or(&self.places.memory)
    }

    /// Returns `true` if a person at a terminal can answer questions.
    pub(super) fn is_interactive(&self) -> bool {
        use std::io::IsTerminal as _;
        !self.printer.is_json() && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }
}

/// Returns the audit context of a command: user, command and time.
pub(super) fn audit_context(
    environment: &Environment,
    viewer: &Viewer,
    why: String,
    change: String,
) -> AuditContext {
    let names = ["USER", "LOGNAME", "USERNAME"];
    let of_system = || names.into_iter().find_map(|name| environment.var(name));
    let user = viewer.user_id().map(str::to_owned);
    // A process without a login still has a user id.
    AuditContext {
        who: user.or_else(of_system).unwrap_or_else(process::user),
        why,
        at: environment
            .now
            .to_rfc3339_opts(chrono::SecondsFormat::Micros, true),
        change,
    }
}

/// Returns a random UUID.
pub(super) fn random() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Error about the content of a file that the user named.
fn invalid(reason: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, reason)
}
