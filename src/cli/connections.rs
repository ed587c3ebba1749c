//! Connection of a process to the database of its memory.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use memctl_files::Directory;
use memctl_search::embedder::EmbedderConfig;
use memctl_search::embedder::Patience;

use crate::cli::config::Environment;
use crate::model::Scope;
use crate::model::error::UserError;
use crate::remote::{Address, PgStore, SharedEmbedder};
use crate::store::workspace::Workspace;
use crate::store::{PrimaryName, Scoped};

/// Maximum time for embedding at the end of a command.
const EMBEDDING: Duration = Duration::from_secs(5);

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

/// Returns the URL of the database that the environment names, with the variable.
pub(crate) fn database_url(environment: &Environment) -> Option<(&'static str, String)> {
    let mut names = ["MEMCTL_DATABASE_URL", "DATABASE_URL"].into_iter();
    names.find_map(|name| Some((name, environment.var(name)?)))
}

/// Error where a command needs the URL of a database.
pub(crate) fn no_url(message: &str) -> UserError {
    UserError::usage(message, "memctl remote user add NAME --url ADMIN_URL")
}
