//! Connection to memories in a database.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::cli::config::Environment;
use crate::model::Scope;
use crate::model::error::UserError;
use crate::remote::{self, Address, PgStore};
use crate::store::workspace::Workspace;
use crate::store::{PrimaryName, Scoped};
use memctl_files::Directory;

/// Variables that name the database, in order of precedence.
pub(crate) const DATABASE: [&str; 2] = ["MEMCTL_DATABASE_URL", "DATABASE_URL"];

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
pub(super) fn primary(
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
pub(super) fn share_lines() {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(last) = last.filter(|last| last.primary.is_connected()) {
        let store = Scoped::new(last.directory, Scope::All).backed_by(last.primary);
        drop(store.share_lines());
    }
}

/// Sends these lines every second until the program ends, for programs that run for long.
pub(super) fn share_lines_every_second() -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name("lines".to_owned());
    let every = || loop {
        std::thread::sleep(Duration::from_secs(1));
        share_lines();
    };
    thread.spawn(every).map(drop)
}

/// Fetches the writes of other copies until the program ends. Followers of the files then see them.
/// Does nothing if the memory is in its files.
pub(super) fn follow(environment: &Environment, workspace: &Workspace) -> Result<(), UserError> {
    let Some(primary) = primary(environment, &workspace.store)? else {
        return Ok(());
    };
    let workspace = workspace.clone();
    share_lines_every_second()?;
    // The next caller fetches what fails here, and gets the error.
    primary.listen(Arc::new(move || drop(remote::catch_up(&workspace.store))));
    Ok(())
}
