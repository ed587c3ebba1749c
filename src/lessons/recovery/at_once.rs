//! Learns a recovery in the moment that a hook sees it, for this session and every other one.
//!
//! The end of the session reads the session file and only refines what is known. Nothing is learned
//! here if the records are in a database without a connection: an agent waits for the answer.

use chrono::{DateTime, Utc};

use crate::lessons::recovery::episodes::{self, Known, Stored};
use crate::lessons::telling::table::prepare;
use crate::model::{Origin, Pattern};
use crate::store::Error::Locked;
use crate::store::workspace::Error;
use crate::store::{Scoped, Writer};

/// Stores the pattern of a running session. Does nothing if another process holds the lock; the end
/// of the session learns it then.
pub(crate) fn learn_at_once(
    store: &Scoped,
    pattern: &Pattern,
    (session, project): (&str, &str),
    now: DateTime<Utc>,
    random: fn() -> String,
) -> Result<(), Error> {
    let Some(mut writer) = writer(store, random)? else {
        return Ok(());
    };
    let mut known = Known::read(&writer)?;
    let origin = Origin {
        session: session.to_owned(),
        workspace: project.to_owned(),
        step: 0,
        live: true,
        call: String::new(),
    };
    let mut stored = Stored::default();
    episodes::store(&mut writer, &mut known, pattern, origin, now, &mut stored)?;
    known.write_counts(&mut writer, &crate::store::workspace::stamp(now))?;
    prepare(writer.store())
}

/// Opens the store for a hook. `None` if the records are elsewhere, or another process writes.
fn writer(store: &Scoped, random: fn() -> String) -> Result<Option<Writer>, Error> {
    if store.is_apart()? {
        return Ok(None);
    }
    match store.write(&mut || random()) {
        Err(Locked { .. }) => Ok(None),
        opened => Ok(Some(opened?)),
    }
}
