//! Connection to memories in a database.

use std::sync::{Arc, Mutex, PoisonError};

use crate::config::Environment;
use crate::error::UserError;
use crate::remote::{self, Address, PgStore};
use crate::store::{PrimaryName, Scoped};
use crate::workspace::Workspace;

/// Variables that name the database, in order of precedence.
pub(in crate::cli) const DATABASE: [&str; 2] = ["MEMCTL_DATABASE_URL", "DATABASE_URL"];

/// Last database used. A server opens the memory for every call, and a login takes longer than most
/// calls.
static LAST: Mutex<Option<(PrimaryName, String, Arc<PgStore>)>> = Mutex::new(None);

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
    if let Some((known, at, store)) = &*last
        && (known, at) == (&name, &url)
    {
        return Ok(Some(Arc::clone(store)));
    }
    let opened = Arc::new(PgStore::new(Address::parse(&url)?, name.clone())?);
    *last = Some((name, url, Arc::clone(&opened)));
    Ok(Some(opened))
}

/// Fetches the writes of other copies until the program ends. Followers of the files then see them.
/// Does nothing if the memory is in its files.
pub(super) fn follow(environment: &Environment, workspace: &Workspace) -> Result<(), UserError> {
    let Some(primary) = primary(environment, &workspace.store)? else {
        return Ok(());
    };
    let workspace = workspace.clone();
    // The next caller fetches what fails here, and gets the error.
    primary.listen(Arc::new(move || drop(remote::catch_up(&workspace.store))));
    Ok(())
}
