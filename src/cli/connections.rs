//! Connections of a workspace: its models, and the choice between files and a database for its memory.
//!
//! A key goes to no host but its own.
//!
//! A directory that holds no records yet becomes a copy of a memory in the database, under the name of its
//! project, as with `memctl remote join`. Records in files stay there, and a line names the commands that
//! move or share them: nothing of a person is sent to a database without a request.
//!
//! Many shells have a `DATABASE_URL` for something else. A database without our schema is never touched.
//! The first command in a directory names such a database, and so does a command that asked for it: nobody
//! should believe that records went there. The answer of a database is cached for an hour, so that no
//! command waits for one that does not respond. Hooks do not come here: they answer from the files.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use memctl_files::{Directory, hex, named};
use memctl_llm::{EmbeddingsProtocol, Endpoint, Limits, Secret};
use memctl_search::embedder::config::Patience;
use memctl_search::embedder::{EmbedderConfig, EmbedderName, RemoteEmbedderConfig};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::cli::config::{Config, Environment};
use crate::cli::ending::wait;
use crate::cli::output::{Printer, plural};
use crate::model::error::UserError;
use crate::model::{Kind, Scope};
use crate::remote::{self, Address, PgStore, SharedEmbedder};
use crate::store::workspace::redacting_writer::write_output;
use crate::store::workspace::{Providers, Workspace};
use crate::store::{PrimaryName, Scoped, is_origin};
use crate::upkeep::StatusReport;

/// Default base URLs of the embedding services.
const OPENAI: &str = "https://api.openai.com/v1";
const OLLAMA: &str = "http://127.0.0.1:11434";

/// Maximum time for embedding at the end of a command.
const EMBEDDING: Duration = Duration::from_secs(5);

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
    let protocol = match config.parsed("embedding.provider")? {
        EmbedderName::BuiltIn => return Ok(EmbedderConfig::BuiltIn),
        EmbedderName::Remote(protocol) => protocol,
    };
    let key = |name: &str| environment.var(name).map(|key| Secret::new(&key));
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
    let number = |name: &str| config.parsed(name).map(NonZero::<usize>::get);
    let dimensions = config.text("embedding.dimensions");
    let dimensions = dimensions.map(|_| number("embedding.dimensions"));
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
    Ok(EmbedderConfig::Remote(Box::new(RemoteEmbedderConfig {
        protocol,
        endpoint,
        dimensions: dimensions.transpose()?,
        batch: number("embedding.batch")?.min(LARGEST_BATCH),
    })))
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
    /// Embedder of the settings; `None` in a hook, which has no time for it.
    embedder: Option<EmbedderConfig>,
    opened: Arc<OnceLock<Arc<SharedEmbedder>>>,
}

/// Returns the primary of a store; `None` if the memory is in its files, or no variable names a
/// database. Does not log in yet.
pub(crate) fn primary(
    environment: &Environment,
    store: &Scoped,
) -> Result<Option<Arc<PgStore>>, UserError> {
    let (Some(name), Some((_, url))) = (store.primary_name()?, database_url(environment)) else {
        return Ok(None);
    };
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = store.directory().clone();
    if let Some(last_opened) = &mut *last
        && (&last_opened.name, &last_opened.url) == (&name, &url)
    {
        last_opened.directory = directory;
        return Ok(Some(Arc::clone(&last_opened.primary)));
    }
    let primary = Arc::new(PgStore::new(Address::parse(&url)?, name.clone())?);
    *last = Some(Last {
        name,
        url,
        directory,
        primary: Arc::clone(&primary),
        embedder: None,
        opened: Arc::default(),
    });
    Ok(Some(primary))
}

/// Sets the embedder for the records that are written to the database.
pub(crate) fn embed_with(embedder: EmbedderConfig) {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(last) = &mut *last {
        last.embedder = Some(embedder);
    }
}

/// Sends the lines of logs and the vectors of the records that this process has written, if it is connected to a
/// database. Ignores failure: the next command that writes sends them, or `memctl sync`.
pub(crate) fn share_rest() {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(last) = last.filter(|last| last.primary.is_connected()) else {
        return;
    };
    let primary = Arc::clone(&last.primary);
    let store = Scoped::new(last.directory, Scope::All).backed_by(primary);
    drop(store.share_lines());
    let Some(config) = last.embedder else {
        return;
    };
    let open = || {
        if let Some(opened) = last.opened.get() {
            return Ok(Arc::clone(opened));
        }
        let opened = Arc::new(SharedEmbedder::open(&config, Patience::Search)?);
        Ok(Arc::clone(last.opened.get_or_init(|| opened)))
    };
    drop(last.primary.embed_written(open, EMBEDDING));
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
        share_rest();
    })?)
}

/// Does this every second until the program ends, for programs that run for long.
pub(crate) fn every_second(work: impl Fn() + Send + 'static) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name("lines".to_owned());
    let every = move || loop {
        work();
        std::thread::sleep(Duration::from_secs(1));
    };
    thread.spawn(every).map(drop)
}

/// Command that prepares a database.
const INIT: &str = "memctl remote init --url ADMIN_URL";

/// Time for a database to say what it is.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Time for which the answer counts.
const FRESH: TimeDelta = TimeDelta::hours(1);
/// File in the state directory with the answers.
const FILE: &str = "databases.json";
/// Maximum size of that file.
const LARGEST_FILE: u64 = 1 << 20;

/// Setting `store`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreChoice {
    /// The database if it is ours and no records are in files, else files.
    Auto,
    /// Files.
    Json,
    /// The database, or an error.
    Postgres,
}

impl FromStr for StoreChoice {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "json" => Ok(Self::Json),
            "postgres" => Ok(Self::Postgres),
            _ => Err("it is `auto`, `json` or `postgres`"),
        }
    }
}

/// Relation of a database to this program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
enum Database {
    /// It has our schema, and the login is a user of it.
    Ours,
    /// It has no schema of ours.
    Foreign,
    /// It does not answer, or cannot be used with this login.
    Unusable { reason: String },
}

/// Last known relation of a database, and its time.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Answer {
    at: String,
    #[serde(flatten)]
    database: Database,
    /// `true` once it was ours: its absence is then no matter of another program.
    was_ours: bool,
    /// `true` if it was asked just now.
    #[serde(skip)]
    is_new: bool,
}

/// Database that the environment names.
struct Named {
    variable: &'static str,
    address: Address,
    /// Name of its answer, without the password.
    key: String,
}

impl Named {
    fn of(environment: &Environment) -> Result<Option<Self>, UserError> {
        let Some((variable, url)) = database_url(environment) else {
            return Ok(None);
        };
        let address = match Address::parse(&url) {
            Ok(address) => address,
            // A URL of another kind of database is of another program.
            Err(_) if variable == "DATABASE_URL" => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(Some(Self {
            variable,
            address,
            key: hex(&Sha256::digest(url)),
        }))
    }

    /// Returns what the database is: as it was known within the last hour, or as it says now.
    fn answer(&self, environment: &Environment, is_asked_anew: bool) -> Result<Answer, UserError> {
        let file = environment.state_dir.as_ref().map(|dir| dir.join(FILE));
        let text = file
            .as_ref()
            .and_then(|file| named::read_text(file, LARGEST_FILE).ok());
        let text = text.unwrap_or_default();
        let mut answers: BTreeMap<String, Answer> = serde_json::from_str(&text).unwrap_or_default();
        let cached = answers.get(&self.key);
        let is_fresh = |answer: &&Answer| {
            let at = DateTime::parse_from_rfc3339(&answer.at);
            at.is_ok_and(|at| (environment.now - at.to_utc()).abs() < FRESH)
        };
        if let Some(cached) = cached.filter(is_fresh).filter(|_| !is_asked_anew) {
            return Ok(cached.clone());
        }
        let is_ours = remote::is_ours(&self.address);
        let is_ours = wait(async { tokio::time::timeout(ANSWER_WITHIN, is_ours).await })?;
        let unusable = |reason| Database::Unusable { reason };
        let database = match is_ours {
            Ok(Ok(true)) => Database::Ours,
            Ok(Ok(false)) => Database::Foreign,
            Ok(Err(error)) => unusable(error.to_string()),
            Err(_) => unusable(format!("no answer within {} s", ANSWER_WITHIN.as_secs())),
        };
        let answer = Answer {
            at: environment.now.to_rfc3339(),
            was_ours: database == Database::Ours || cached.is_some_and(|cached| cached.was_ours),
            database,
            is_new: true,
        };
        answers.insert(self.key.clone(), answer.clone());
        if let Some(file) = file
            && let Ok(bytes) = serde_json::to_vec_pretty(&answers)
            && file
                .parent()
                .is_some_and(|dir| named::create_dir(dir).is_ok())
        {
            // Without the file, the next command asks again.
            drop(write_output(&file, &bytes));
        }
        Ok(answer)
    }
}

/// Facts that decide between files and the database of the environment.
pub(crate) struct Choice<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) printer: &'a Printer,
    /// Directory of the memory.
    pub(crate) memory: &'a Path,
    /// Setting `store`.
    pub(crate) setting: StoreChoice,
    /// `true` if the command begins a memory where there is none.
    pub(crate) begins: bool,
    /// Returns the name of the project.
    pub(crate) project: &'a dyn Fn() -> Option<String>,
}

impl Choice<'_> {
    /// Makes this memory one of the database that the environment names, if the setting and the rules above say
    /// so.
    pub(crate) fn choose(&self) -> Result<(), UserError> {
        let is_auto = self.setting == StoreChoice::Auto;
        let store = Scoped::new(self.memory, Scope::All).at(self.environment.now);
        if store.primary_name()?.is_some() || is_auto && store.is_shared() {
            return Ok(());
        }
        let named = match Named::of(self.environment)? {
            Some(named) => named,
            None if is_auto => return Ok(()),
            None => {
                let why = "`store` is `postgres`, and no variable names a database";
                return Err(no_url(why));
            }
        };
        let answer = named.answer(self.environment, false)?;
        let (variable, database) = (named.variable, named.address.shown());
        let is_here = store.directory().is_there();
        match answer.database {
            Database::Ours => {}
            // The error says what to do.
            _ if !is_auto => {
                return Err(match wait(remote::is_ours(&named.address))? {
                    Ok(_) => remote::Error::Foreign(database).into(),
                    Err(error) => error.into(),
                });
            }
            other => {
                if answer.was_ours || answer.is_new || !is_here || variable != "DATABASE_URL" {
                    let why = match other {
                        Database::Unusable { reason } => {
                            format!(
                                "a database that cannot be used, so records are kept in files: {reason}"
                            )
                        }
                        _ => format!(
                            "{database}, which has no memctl schema, so records are kept in files: if it is meant \
                             for memctl, `{INIT}`"
                        ),
                    };
                    self.printer.warn(&format!("`{variable}` names {why}"));
                }
                return Ok(());
            }
        }
        let name = self.name();
        if (is_auto || !self.begins) && record_count(&store)? > 0 {
            self.printer.note(&if is_auto { format!(
                "`{variable}` names {database}, and this memory is in files: `memctl sync` shares it, \
                 `memctl remote join {name}` moves it, `store = \"json\"` keeps it without this line"
            ) } else { format!(
                "this memory is in files: `memctl remote join {name}`, or the next command that adds records, \
                 moves it to {database}, since `store` is `postgres`"
            ) });
            return Ok(());
        }
        let has_memory = || wait(remote::has_memory(&named.address, &name));
        if !is_here && !self.begins && !has_memory()?? {
            return Ok(());
        }
        let (random, on) = (&mut random, &mut |_| {});
        let joined = remote::join(&named.address, &store, &name, random, on);
        match wait(joined)? {
            Ok(joined) => {
                self.printer.note(&format!(
                    "this memory is kept in {database} as `{name}`, since `{variable}` names it; \
                     `memctl remote leave` makes it files again, `--store json` keeps a new one in files"
                ));
                if !joined.created {
                    self.tell_of_others(store, &name, &joined.begun_by)?;
                }
            }
            Err(error) if is_auto => self.printer.warn(&format!(
                "records are kept in files, not in the database that `{variable}` names: {error}"
            )),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Says that a memory which this directory has joined unasked has records of another one: a project of the same
    /// name may be a stranger.
    fn tell_of_others(&self, store: Scoped, name: &str, begun_by: &str) -> Result<(), UserError> {
        let store = match primary(self.environment, &store)? {
            Some(primary) => store.backed_by(primary),
            None => store,
        };
        store.catch_up()?;
        let count = plural(record_count(&store)?, "record");
        let begun_by: String = begun_by.chars().take(8).collect();
        self.printer.note(&format!(
            "`{name}` has {count} already, and was begun by the workspace `{begun_by}`; if that is another \
             project: `memctl remote leave`, `memctl memory purge`, `memctl remote join ANOTHER_NAME`"
        ));
        Ok(())
    }

    /// Name of this memory in a database: that of the project.
    fn name(&self) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let project = (self.project)().unwrap_or_default();
        let name = project.replace(|c| !is_plain(c), "-");
        let name: String = name.chars().take(64).collect();
        let name = name.trim_start_matches(['.', '_', '-']);
        let name = if is_origin(name) { name } else { "memory" };
        name.to_owned()
    }

    /// Says why a memory is in files although the environment names a database, or that it will not be.
    pub(crate) fn explain(&self, report: &mut StatusReport) -> Result<(), UserError> {
        let Some(named) = Named::of(self.environment)? else {
            return Ok(());
        };
        let (variable, database) = (named.variable, named.address.shown());
        if self.setting == StoreChoice::Json {
            report.store_reason += "; the setting `store` is `json`";
            return Ok(());
        }
        let why = match named.answer(self.environment, true)?.database {
            Database::Ours if !Directory::at(self.memory).is_there() => {
                let name = self.name();
                report.store = "PgStore";
                report.store_reason = format!(
                    "the first record begins the memory `{name}` in {database}, since `{variable}` names it"
                );
                return Ok(());
            }
            Database::Ours => format!(
                "{database}: `memctl sync` shares these records, `memctl remote join {}` moves them",
                self.name()
            ),
            Database::Foreign => format!(
                "{database}, which has no memctl schema: if it is meant for memctl, `{INIT}`; else nothing touches it"
            ),
            Database::Unusable { reason } => format!("a database that cannot be used: {reason}"),
        };
        let reason = std::mem::take(&mut report.store_reason);
        report.store_reason = format!("{reason}; `{variable}` names {why}");
        Ok(())
    }
}

/// Number of records of all kinds.
fn record_count(store: &Scoped) -> Result<u64, UserError> {
    let counts = Kind::ALL.into_iter().map(|kind| store.count(kind));
    Ok(counts.sum::<Result<u64, _>>()?)
}

/// Returns a random UUID.
pub(crate) fn random() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Forgets what the databases are, after a command that may have changed it.
pub(crate) fn forget(environment: &Environment) {
    if let Some(directory) = &environment.state_dir {
        drop(named::remove(&directory.join(FILE)));
    }
}

/// Returns the URL of the database that the environment names, with the variable.
pub(crate) fn database_url(environment: &Environment) -> Option<(&'static str, String)> {
    let mut names = ["MEMCTL_DATABASE_URL", "DATABASE_URL"].into_iter();
    names.find_map(|name| Some((name, environment.var(name)?)))
}

/// Error where a command needs the URL of a database.
pub(crate) fn no_url(message: &str) -> UserError {
    UserError::usage(message, "memctl remote user add NAME --url ADMIN_URL")
}
