//! Database of a memory: its connection, and the page of the choice between files and a database.
//!
//! The choice itself is data ([`remote::Choice`]). A command that chooses joins the memory, or says why its records
//! are in files. Hooks choose nothing: they answer from the files.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use memctl_files::Directory;
use memctl_search::embedder::EmbedderConfig;
use memctl_search::embedder::Patience;

use crate::cli::config::Environment;
use crate::cli::context::{Context, random};
use crate::cli::ending::wait;
use crate::cli::output::plural;
use crate::model::Scope;
use crate::model::error::UserError;
use crate::remote::{
    self, Address, Choice, ChosenStore, PgStore, SharedEmbedder, StoreSetting, Undecided,
};
use crate::store::workspace::Workspace;
use crate::store::{PrimaryName, Scoped};
use crate::upkeep::StatusReport;
use crate::upkeep::merge::git::{self, ATTRIBUTES};

/// Maximum time for embedding at the end of a command.
const EMBEDDING: Duration = Duration::from_secs(5);
/// Command that prepares a database.
const INIT: &str = "memctl remote init --url ADMIN_URL";

/// Connection of this process to the database of its memory. A server opens the memory for every call, and a
/// login takes longer than most calls.
#[derive(Clone, Default)]
pub(crate) struct Connection(Arc<Mutex<Option<Primary>>>);

/// Database used last.
#[derive(Clone)]
struct Primary {
    name: PrimaryName,
    url: String,
    /// Directory of the copy that was opened last.
    directory: Directory,
    store: Arc<PgStore>,
    /// Embedder of the settings; `None` in a hook, which has no time for it.
    embedder: Option<EmbedderConfig>,
    opened: Arc<OnceLock<Arc<SharedEmbedder>>>,
}

impl Connection {
    /// Returns the store with its primary, if the memory is in a database that a variable names. Does not log in
    /// yet.
    pub(crate) fn back(
        &self,
        environment: &Environment,
        store: Scoped,
    ) -> Result<Scoped, UserError> {
        let (Some(name), Some((_, url))) = (store.primary_name()?, database_url(environment))
        else {
            return Ok(store);
        };
        let directory = store.directory().clone();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let primary = match &mut *last {
            Some(last) if (&last.name, &last.url) == (&name, &url) => {
                last.directory = directory;
                last
            }
            other => other.insert(Primary {
                store: Arc::new(PgStore::new(Address::parse(&url)?, name.clone())?),
                name,
                url,
                directory,
                embedder: None,
                opened: Arc::default(),
            }),
        };
        Ok(store.backed_by(Arc::clone(&primary.store) as _))
    }

    /// Sets the embedder for the records that are written to the database.
    pub(crate) fn embed_with(&self, embedder: EmbedderConfig) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &mut *last {
            last.embedder = Some(embedder);
        }
    }

    /// Sends the lines of logs and the vectors of the records that this process has written, if it is connected to a
    /// database. Ignores failure: the next command that writes sends them, or `memctl sync`.
    pub(crate) fn share_rest(&self) {
        let last = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let Some(last) = last.filter(|last| last.store.is_connected()) else {
            return;
        };
        let primary = Arc::clone(&last.store);
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
        drop(last.store.embed_written(open, EMBEDDING));
    }

    /// Fetches the writes of other copies, and sends the lines of this one, every second until the program ends.
    /// Followers of the files then see them. Does nothing if the memory is in its files.
    pub(crate) fn follow(&self, workspace: &Workspace) -> Result<(), UserError> {
        if workspace.store.primary().is_none() {
            return Ok(());
        }
        let (connection, store) = (self.clone(), workspace.store.clone());
        Ok(every_second(move || {
            // The next caller fetches what fails here, and gets the error.
            drop(store.catch_up());
            connection.share_rest();
        })?)
    }
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

/// Chooses the store of the memory that a command works on; `None` if it is chosen already, or nothing names a
/// database.
fn choose(context: &Context, asks_anew: bool) -> Result<Option<Choice>, UserError> {
    let environment = &context.environment;
    let setting = setting(context)?;
    let store = whole(context);
    let is_chosen = match setting {
        StoreSetting::Json => true,
        StoreSetting::Auto => store.primary_name()?.is_some() || store.is_shared(),
        StoreSetting::Postgres => store.primary_name()?.is_some(),
    };
    if is_chosen {
        return Ok(None);
    }
    let Some((variable, url)) = database_url(environment) else {
        return match setting {
            StoreSetting::Postgres => Err(no_url(
                "`store` is `postgres`, and no variable names a database",
            )),
            _ => Ok(None),
        };
    };
    let undecided = Undecided {
        store: &store,
        setting,
        begins: context.begins_memory(),
        is_of_git: git::shares_memory(context.project()),
        project: &|| context.project_name(),
        state_dir: environment.state_dir.as_deref(),
        now: environment.now,
        asks_anew,
    };
    Ok(wait(undecided.choose(variable, &url))??)
}

/// Chooses the store of the memory that a command works on, joins the database if it is that, and otherwise says why
/// the records are in files.
pub(crate) fn settle(context: &Context) -> Result<(), UserError> {
    let Some(choice) = choose(context, false)? else {
        return Ok(());
    };
    match &choice.store {
        ChosenStore::Database => return join(context, &choice),
        ChosenStore::FilesWithRecords => context.printer.note(&reason(&choice)),
        ChosenStore::FilesNotForeign | ChosenStore::FilesNotUnusable(_) if choice.is_news => {
            context.printer.warn(&reason(&choice));
        }
        _ => {}
    }
    Ok(())
}

/// Says in a status why a memory is in files although the environment names a database, or that it will not be.
pub(crate) fn explain(context: &Context, report: &mut StatusReport) -> Result<(), UserError> {
    let is_named = database_url(&context.environment).is_some();
    if is_named && setting(context)? == StoreSetting::Json {
        report.store_reason += "; the setting `store` is `json`";
    } else if is_named && let Some(choice) = choose(context, true)? {
        if choice.store == ChosenStore::DatabaseLater {
            report.store = "PgStore";
        }
        report.store_reason = reason(&choice);
    }
    Ok(())
}

/// Returns the reason for a store, one sentence.
fn reason(choice: &Choice) -> String {
    let (variable, name, database) = (choice.variable, &choice.name, choice.address.shown());
    match &choice.store {
        ChosenStore::FilesNotForeign => format!(
            "`{variable}` names {database}, which has no memctl schema, so records are kept in files: if it is \
             meant for memctl, `{INIT}`"
        ),
        ChosenStore::FilesNotUnusable(reason) => format!(
            "`{variable}` names a database that cannot be used, so records are kept in files: {reason}"
        ),
        ChosenStore::FilesOfGit => format!(
            "git shares these files (`{ATTRIBUTES}`), and `{variable}` names {database}: `memctl remote join {name}` \
             moves the records there"
        ),
        ChosenStore::FilesWithRecords | ChosenStore::Database => format!(
            "this memory is in files, and `{variable}` names {database}: `memctl sync` shares it, `memctl remote join \
             {name}` moves it, `store = \"json\"` keeps it in files without this line"
        ),
        ChosenStore::DatabaseLater => format!(
            "the first record begins the memory `{name}` in {database}, since `{variable}` names it"
        ),
    }
}

/// Joins the memory of the database, and says so. Without a demand for the database, a failure leaves files.
fn join(context: &Context, choice: &Choice) -> Result<(), UserError> {
    let (variable, name, database) = (choice.variable, &choice.name, choice.address.shown());
    let store = whole(context);
    let (random, on) = (&mut random, &mut |_| {});
    let joined = remote::join(&choice.address, &store, name, random, on);
    match wait(joined)? {
        Ok(joined) => {
            context.printer.note(&format!(
                "this memory is kept in {database} as `{name}`, since `{variable}` names it; `memctl remote leave` \
                 makes it files again, `--store json` keeps a new one in files"
            ));
            if joined.created {
                return Ok(());
            }
            // The directory joined unasked, and a project of the same name may be a stranger.
            let store = context.connection.back(&context.environment, store)?;
            store.catch_up()?;
            let count = plural(store.record_count()?, "record");
            let begun_by: String = joined.begun_by.chars().take(8).collect();
            context.printer.note(&format!(
                "`{name}` has {count} already, and was begun by the workspace `{begun_by}`; if that is another \
                 project: `memctl remote leave`, `memctl memory purge`, `memctl remote join ANOTHER_NAME`"
            ));
        }
        Err(error) if choice.setting == StoreSetting::Auto => context.printer.warn(&format!(
            "records are kept in files, not in the database that `{variable}` names: {error}"
        )),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn setting(context: &Context) -> Result<StoreSetting, UserError> {
    context.config_quietly()?.parsed("store")
}

/// Returns the memory of a command, with access to all of it.
fn whole(context: &Context) -> Scoped {
    Scoped::new(&context.places.memory, Scope::All).at(context.environment.now)
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
