//! Connections of a workspace: its models and prompts, and the database that holds its memory.
//!
//! A key goes to no host but its own. The prompts of a workspace count only if that is trusted.

use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use memctl_files::{Directory, named};
use memctl_llm::{EmbeddingsProtocol, Endpoint, Limits, Secret};
use memctl_search::embedder::{EmbedderConfig, EmbedderName, RemoteEmbedderConfig};

use crate::cli::config::{Config, Environment, LONGEST};
use crate::cli::context::Context;
use crate::cli::database::DATABASE;
use crate::model::Scope;
use crate::model::error::UserError;
use crate::remote::{Address, PgStore};
use crate::store::workspace::{Providers, Workspace};
use crate::store::{PrimaryName, Scoped};

/// Default base URLs of the embedding services.
const OPENAI: &str = "https://api.openai.com/v1";
const OLLAMA: &str = "http://127.0.0.1:11434";

/// Maximum number of texts in one request: their vectors have to fit into one answer.
const LARGEST_BATCH: usize = 512;

impl Context {
    /// Returns the models that the settings and the environment name.
    pub(crate) fn providers(&self, config: &Config) -> Result<Providers, UserError> {
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
    pub(crate) fn embedder(&self, config: &Config) -> Result<EmbedderConfig, UserError> {
        let text = |name: &str| config.text(name).map(str::to_owned);
        let protocol = match config.parsed("embedding.provider")? {
            EmbedderName::BuiltIn => return Ok(EmbedderConfig::BuiltIn),
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
        let mut limits = Limits {
            answer_within: Duration::from_secs(config.parsed("llm.timeout_seconds")?),
            ..Limits::default()
        };
        limits.retry.max_retries = config.parsed("llm.retries")?;
        let endpoint = Endpoint {
            provider: protocol.name().to_owned(),
            key: key("MEMCTL_EMBEDDING_API_KEY").or(key_of_home.filter(|_| is_home)),
            base_url: given.unwrap_or(home),
            model: text("embedding.model").unwrap_or_else(|| model.to_owned()),
            limits,
        };
        Ok(EmbedderConfig::Remote(RemoteEmbedderConfig {
            protocol,
            endpoint,
            dimensions: dimensions.map(NonZero::get),
            batch: batch.get().min(LARGEST_BATCH),
        }))
    }

    /// Returns a prompt that replaces the built-in one: from the workspace if that is trusted, else
    /// from the user's configuration.
    pub(crate) fn prompt(&self, name: &str) -> Option<String> {
        let prompts = Directory::at(&self.places.memory).below("prompts");
        let of_workspace = prompts.read_decoded(name, LONGEST).ok().flatten();
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
        named::read_decoded(&of_user.join("prompts").join(name), LONGEST).ok()
    }

    /// Lists the names of the prompts in the workspace, sorted.
    pub(crate) fn prompts_of_workspace(&self) -> Vec<String> {
        let prompts = Directory::at(&self.places.memory).below("prompts");
        let found = prompts.list().unwrap_or_default().into_iter();
        let mut names: Vec<String> = found
            .map(|found| found.name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// Last database used. A server opens the memory for every call, and a login takes longer than most
/// calls.
static LAST: Mutex<Option<Last>> = Mutex::new(None);

#[derive(Clone)]
struct Last {
    name: PrimaryName,
    url: String,
    /// Directory of the copy that was opened last.
    directory: Directory,
    primary: Arc<PgStore>,
}

/// Returns the primary of a store; `None` if the memory is in its files, or no variable names a
/// database. Does not log in yet.
pub(crate) fn primary(
    environment: &Environment,
    store: &Scoped,
) -> Result<Option<Arc<PgStore>>, UserError> {
    let Some(name) = store.primary_name()? else {
        return Ok(None);
    };
    let Some(url) = DATABASE.iter().find_map(|name| environment.var(name)) else {
        return Ok(None);
    };
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = store.directory().clone();
    if let Some(known) = &mut *last
        && (&known.name, &known.url) == (&name, &url)
    {
        known.directory = directory;
        return Ok(Some(Arc::clone(&known.primary)));
    }
    let primary = Arc::new(PgStore::new(Address::parse(&url)?, name.clone())?);
    *last = Some(Last {
        name,
        url,
        directory,
        primary: Arc::clone(&primary),
    });
    Ok(Some(primary))
}

/// Sends the lines of logs that this process has written, if it is connected to a database. Ignores failure:
/// the next command sends them, or `memctl sync`.
pub(crate) fn share_lines() {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(last) = last.filter(|last| last.primary.is_connected()) {
        let store = Scoped::new(last.directory, Scope::All).backed_by(last.primary);
        drop(store.share_lines());
    }
}

/// Sends these lines every second until the program ends, for programs that run for long.
pub(crate) fn share_lines_every_second() -> std::io::Result<()> {
    every_second(share_lines)
}

/// Fetches the writes of other copies, and sends the lines of this one, every second until the program
/// ends. Followers of the files then see them. Does nothing if the memory is in its files.
pub(crate) fn follow(environment: &Environment, workspace: &Workspace) -> Result<(), UserError> {
    if primary(environment, &workspace.store)?.is_none() {
        return Ok(());
    }
    let workspace = workspace.clone();
    Ok(every_second(move || {
        // The next caller fetches what fails here, and gets the error.
        drop(workspace.store.catch_up());
        share_lines();
    })?)
}

fn every_second(work: impl Fn() + Send + 'static) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name("lines".to_owned());
    let every = move || loop {
        work();
        std::thread::sleep(Duration::from_secs(1));
    };
    thread.spawn(every).map(drop)
}
