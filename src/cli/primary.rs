//! Memories that lie in a database: the way there.

use std::sync::{Arc, Mutex, PoisonError};

use crate::config::Environment;
use crate::engine::Engine;
use crate::remote::{Address, PgStore};
use crate::store::{PrimaryName, Scoped};

use super::error::CliError;

/// The variables that name the database, the first one first.
pub(super) const DATABASE: [&str; 2] = ["MEMCTL_DATABASE_URL", "DATABASE_URL"];

/// The database that was asked last. A server opens the memory anew for every call, and logging in takes
/// longer than most of them.
static LAST: Mutex<Option<(PrimaryName, String, Arc<PgStore>)>> = Mutex::new(None);

/// The database that the memory of a store lies in; `None` where it lies in its files, or nobody says how
/// to get there. Nobody logs in yet.
pub(super) fn primary(
    environment: &Environment,
    store: &Scoped,
) -> Result<Option<Arc<PgStore>>, CliError> {
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

/// Fetches what other copies write as they write it, for as long as the program runs: whoever follows the
/// files is told of it then. Nothing to do where the memory lies in its files.
pub(super) fn follow(environment: &Environment, engine: &Engine) -> Result<(), CliError> {
    let Some(primary) = primary(environment, &engine.store)? else {
        return Ok(());
    };
    let engine = engine.clone();
    // What cannot be fetched now is fetched by whoever asks next, and that one is told what is wrong.
    primary.listen(Arc::new(move || drop(engine.catch_up())));
    Ok(())
}
