//! What every command works with: the settings, the workspace, the clock.

use std::io::Read as _;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::value::RawValue;

use crate::config::{Config, Environment, LONGEST, Places};
use crate::engine::{Embedder, EmbedderName, Engine, Error, Providers, RemoteEmbedder, Settings};
use crate::llm::{EmbeddingsProtocol, Progress, Secret};
use crate::model::{Scope, Viewer};
use crate::platform::{Directory, named};
use crate::store::{Act, Scoped};

use super::Global;
use super::error::CliError;
use super::output::{Printer, Spinner};
use super::primary::primary;
use super::switch::Off;

/// The longest text that is taken from standard input or a file: 16 MiB.
const MAX_GIVEN: u64 = 16 << 20;

/// Where vectors are made where nobody says otherwise.
const OPENAI: &str = "https://api.openai.com/v1";
const OLLAMA: &str = "http://127.0.0.1:11434";

/// So many texts at most go into one request: their vectors have to fit into one answer.
const LARGEST_BATCH: usize = 512;

pub(super) struct Context {
    pub(super) environment: Environment,
    pub(super) places: Places,
    pub(super) printer: Printer,
    /// Whether memory is switched off, and why.
    pub(super) off: Option<Off>,
    /// The domains as they were given, if they were.
    pub(super) given_scope: Option<String>,
    scope: Scope,
    user: Option<String>,
    pub(super) verbose: bool,
    /// The command, as the audit and the journal name it.
    why: String,
    /// The name of the change that it makes.
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
            change: Act::change_name(&random()),
            off: Off::of(&environment, &places),
            places,
            given_scope: global.scope.clone(),
            scope: global.scope.as_deref().map_or(Scope::All, Scope::parse),
            user: global.user.clone(),
            verbose: global.verbose,
            environment,
            printer,
        }
    }

    /// The same in another workspace.
    pub(super) fn elsewhere(&self, places: Places) -> Self {
        Self {
            off: Off::of(&self.environment, &places),
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

    /// The records as the caller may see them, now.
    pub(super) fn store(&self, config: &Config) -> Result<Scoped, CliError> {
        let viewer = config.viewer()?;
        let act = act(
            &self.environment,
            &viewer,
            self.why.clone(),
            self.change.clone(),
        );
        let store = Scoped::new(&self.places.memory, self.scope.clone());
        let store = store.at(self.environment.now).seen_by(viewer).acting(act);
        let store = store.trusting(self.environment.approvals(&self.places.memory));
        if self.off.is_some() {
            // Nothing of the memory is looked at.
            return Ok(store);
        }
        Ok(match primary(&self.environment, &store)? {
            Some(primary) => store.backed_by(primary),
            None => store,
        })
    }

    /// The settings; what is odd about them is said.
    pub(super) fn config(&self, flags: &[(&str, String)]) -> Result<Config, CliError> {
        let user = self.user.iter().map(|user| ("user", user.clone()));
        let flags: Vec<(&str, String)> = flags.iter().cloned().chain(user).collect();
        let config = Config::load(&self.environment, &self.places.memory, &flags)?;
        for warning in &config.warnings {
            self.printer.warn(warning);
        }
        Ok(config)
    }

    /// The settings, where what is odd about them is said already.
    pub(super) fn config_quietly(&self) -> Result<Config, CliError> {
        Ok(Config::load(&self.environment, &self.places.memory, &[])?)
    }

    /// Everything, and what other copies of the memory have written until now. `model` is what the command
    /// line names.
    pub(super) fn engine(&self, model: Option<&str>) -> Result<Engine, CliError> {
        let engine = self.engine_over_files(model)?;
        if self.off.is_none() {
            engine.catch_up()?;
        }
        Ok(engine)
    }

    /// The same with the files as they are.
    pub(super) fn engine_over_files(&self, model: Option<&str>) -> Result<Engine, CliError> {
        let flags: Vec<(&str, String)> =
            model.map(|m| ("model", m.to_owned())).into_iter().collect();
        let config = self.config(&flags)?;
        if self.verbose {
            self.printer
                .note(&format!("memory: {}", self.places.memory.display()));
            self.printer
                .note(&format!("skills: {}", self.places.skills.display()));
        }
        Ok(Engine {
            store: self.store(&config)?,
            skills_dir: self.places.skills.clone(),
            settings: Settings {
                rules_tokens: config.parsed("prompt.rules_tokens")?,
                max_output_tokens: config.parsed("llm.max_output_tokens")?,
                min_similarity: config.parsed("offline.min_similarity")?,
                reflect_prompt: self.prompt("reflect.md"),
                analyse_prompt: self.prompt("analyse_failure.md"),
                judge_prompt: self.prompt("judge.md"),
                rewrite_prompt: self.prompt("rewrite_query.md"),
                rewrite: config.parsed("search.rewrite")?,
                withhold: config.parsed("experiment.withhold")?,
                audit_reads: config.parsed("audit.reads")?,
                task_days: config.parsed("memory.task_days")?,
            },
            providers: self.providers(&config)?,
            spare_dir: self.environment.temp_dir.clone(),
            now: self.environment.now,
            random,
        })
    }

    fn providers(&self, config: &Config) -> Result<Providers, CliError> {
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
            embedder: self.embedder(config)?,
            kept: None,
            answer_within: Duration::from_secs(config.parsed("llm.timeout_seconds")?),
            max_retries: config.parsed("llm.retries")?,
        })
    }

    /// Who makes the vectors.
    pub(super) fn embedder(&self, config: &Config) -> Result<Embedder, CliError> {
        let text = |name: &str| config.text(name).map(str::to_owned);
        let protocol = match config.parsed("embedding.provider")? {
            EmbedderName::BuiltIn => return Ok(Embedder::BuiltIn),
            EmbedderName::Folder => {
                let Some(folder) = config.text("embedding.folder") else {
                    let message =
                        "`embedding.provider` is `folder`, and `embedding.folder` is not set";
                    return Err(CliError::usage(message, "memctl config show"));
                };
                let project = self.places.memory.parent().unwrap_or(&self.places.memory);
                return Ok(Embedder::Folder(project.join(folder)));
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
        // The key for one host goes to no other.
        let is_home = given.as_ref().is_none_or(|given| *given == home);
        let dimensions = config.text("embedding.dimensions");
        let dimensions: Option<NonZero<usize>> = dimensions
            .map(|_| config.parsed("embedding.dimensions"))
            .transpose()?;
        let batch: NonZero<usize> = config.parsed("embedding.batch")?;
        Ok(Embedder::Remote(RemoteEmbedder {
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

    /// A prompt that the user has put in place of the shipped one: the workspace's, where that is
    /// trusted, else the user's own.
    fn prompt(&self, name: &str) -> Option<String> {
        let prompts = Directory::at(&self.places.memory).below("prompts");
        let of_workspace = prompts.read_text(name, LONGEST).ok().flatten();
        if of_workspace.is_some() {
            if self.environment.trusts_settings(&self.places.memory) {
                return of_workspace;
            }
            self.printer.warn(&format!(
                "`{}` counts only after `memctl trust`",
                self.places.memory.join("prompts").join(name).display()
            ));
        }
        let of_user = self.environment.config_dir.as_deref()?;
        named::read_text(&of_user.join("prompts").join(name), LONGEST).ok()
    }

    /// The names of the prompts that the workspace brings.
    pub(super) fn prompts_of_workspace(&self) -> Vec<String> {
        let prompts = Directory::at(&self.places.memory).below("prompts");
        let found = prompts.list().unwrap_or_default().into_iter();
        let mut names: Vec<String> = found
            .map(|found| found.name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// The session that a command is part of, as it is named: by a flag, else by the variable
    /// `MEMCTL_SESSION`.
    pub(super) fn session(&self, given: Option<String>) -> Option<String> {
        given.or_else(|| self.environment.var("MEMCTL_SESSION"))
    }

    /// Text that was given as it is, or as `-` for standard input.
    pub(super) fn text(&self, given: &str) -> Result<String, CliError> {
        if given == "-" {
            self.read(Path::new("-"))
        } else {
            Ok(given.to_owned())
        }
    }

    /// A JSON document from a file, or from standard input for `-`.
    pub(super) fn json(&self, path: &Path) -> Result<Box<RawValue>, CliError> {
        let text = self.read(path)?;
        let text = text.trim_start_matches('\u{feff}').trim();
        serde_json::from_str(text).map_err(|source| {
            let path = path.to_owned();
            Error::NotJson { path, source }.into()
        })
    }

    /// The text of a file, or of standard input for `-`.
    fn read(&self, path: &Path) -> Result<String, CliError> {
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
            return Err(unreadable(std::io::Error::other("it is longer than 16 MiB")).into());
        }
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            unreadable(std::io::Error::other(format!(
                "it is not UTF-8 at byte {at}"
            )))
            .into()
        })
    }

    /// Whether somebody sits there who can be asked.
    pub(super) fn is_interactive(&self) -> bool {
        use std::io::IsTerminal as _;
        !self.printer.is_json() && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }
}

/// Who does something now, and why.
pub(super) fn act(environment: &Environment, viewer: &Viewer, why: String, change: String) -> Act {
    let names = ["USER", "LOGNAME", "USERNAME"];
    let of_system = || names.into_iter().find_map(|name| environment.var(name));
    let user = viewer.user_id().map(str::to_owned);
    // A process without a login has a number still.
    let number = || format!("uid {}", rustix::process::getuid().as_raw());
    Act {
        who: user.or_else(of_system).unwrap_or_else(number),
        why,
        at: environment
            .now
            .to_rfc3339_opts(chrono::SecondsFormat::Micros, true),
        change,
    }
}

/// Waits for something that needs a runtime: one thread, made for this one wait. An interrupt gives
/// it up in order, so that a program that was started for it does not go on.
pub(super) fn wait<T>(future: impl Future<Output = T>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(async {
        let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|task| {
            if interrupt.as_mut().poll(task).is_ready() {
                return std::task::Poll::Ready(None);
            }
            // The interrupt is heard from here on.
            END_AT_ONCE.store(false, Ordering::SeqCst);
            future.as_mut().poll(task).map(Some)
        })
        .await
    });
    END_AT_ONCE.store(true, Ordering::SeqCst);
    ended.ok_or_else(CliError::interrupted)
}

/// Whether an interrupt ends the process where it stands.
pub(super) static END_AT_ONCE: LazyLock<Arc<AtomicBool>> =
    LazyLock::new(|| Arc::new(AtomicBool::new(true)));

/// A random name.
pub(super) fn random() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Tells a spinner how an answer is coming along.
pub(super) fn follow(spinner: &Spinner) -> impl FnMut(Progress<'_>) + Send + use<'_> {
    let mut received = 0;
    move |progress| match progress {
        Progress::Text(text) => {
            received += text.chars().count();
            spinner.say(format!("answering, {received} characters"));
        }
        Progress::Retry { after, reason } => {
            received = 0;
            spinner.say(format!("again in {:.1} s: {reason}", after.as_secs_f64()));
        }
        Progress::Repair { reason } => {
            received = 0;
            spinner.say(format!("asking again: {reason}"));
        }
    }
}
