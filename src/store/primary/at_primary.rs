//! A writer's turn at the primary database: a write reaches the database before a file.
//!
//! Location of a memory's primary store, and return to the files.
//!
//! A file in the directory names the location, not an environment variable. A caller without the
//! variable would write only to this copy, and the other copies would never see the change.

use std::sync::Arc;
use std::time::Duration;

use memctl_files::Directory;
use serde::{Deserialize, Serialize};

use crate::model::Kind;
use crate::store::access::scoped::Scoped;
use crate::store::atomic;
use crate::store::database::{Primary, PrimaryRow, Reached, Turn};
use crate::store::error::Error;
use crate::store::files::directory;
use crate::store::files::directory::{Identity, Lock, PRIMARY, REPLICA, SMALL_FILE};
use crate::store::primary::follow;
use crate::store::primary::follow::{fetch, keep, reached};

/// A writer's turn at the database.
#[derive(Debug)]
pub(crate) struct AtPrimary {
    turn: Box<dyn Turn>,
    /// Progress of the database.
    there: Reached,
    /// `true` if a file write has failed, so that the change must be fetched again.
    is_behind: bool,
    /// `true` while the database has a change that is not in a file yet.
    is_ahead: bool,
}

impl AtPrimary {
    /// Takes the turn, and fetches earlier changes of other writers. Returns `None` if the files
    /// are the primary store.
    pub(crate) fn begin(
        store: &Scoped,
        lock: &Lock,
        limit: Duration,
    ) -> Result<Option<Self>, Error> {
        let Some(primary) = store.primary() else {
            if store.primary_name()?.is_some() {
                let path = store.directory().to_path_buf();
                return Err(Error::NoPrimary { path });
            }
            return Ok(None);
        };
        let turn = primary.turn(limit).map_err(Error::Primary)?;
        let there = fetch(store, lock, primary.as_ref())?;
        Ok(Some(Self {
            turn,
            there,
            is_behind: false,
            is_ahead: false,
        }))
    }
}

impl AtPrimary {
    /// Adds or changes records.
    pub(crate) fn put(&mut self, kind: Kind, rows: &[(&str, &str)]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let rows: Vec<PrimaryRow> = rows
            .iter()
            .map(|(id, text)| PrimaryRow::new(id, text))
            .collect();
        let done = self.turn.put(self.there.seq, kind, &rows);
        self.there = done.map_err(Error::Primary)?;
        self.is_ahead = true;
        Ok(())
    }

    /// Removes records, each with its tombstone line.
    pub(crate) fn bury(&mut self, kind: Kind, gone: &[(String, String)]) -> Result<(), Error> {
        if gone.is_empty() {
            return Ok(());
        }
        let done = self.turn.bury(self.there.seq, kind, gone);
        self.there = done.map_err(Error::Primary)?;
        self.is_ahead = true;
        Ok(())
    }

    /// Records that a file has what was sent last, or has failed to take it.
    pub(crate) fn followed(&mut self, is_written: bool) {
        self.is_behind |= !is_written;
        self.is_ahead = false;
    }

    /// Saves the progress of the files.
    pub(crate) fn keep_reached(&self, directory: &Directory) {
        let known = reached(directory).unwrap_or_default();
        if !self.is_behind && !self.is_ahead && self.there != known {
            keep(directory, self.there);
        }
    }
}

/// Identity of a primary database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrimaryName {
    /// Unique identifier of the database and of the user in it.
    pub database: String,
    /// Host and name of the database, for display.
    pub shown: String,
    /// Name of the memory in the database.
    pub origin: String,
}

impl Scoped {
    /// Returns the primary database; `None` if the files are the primary store.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read: the location is then unknown, and writes are forbidden.
    pub fn primary_name(&self) -> Result<Option<PrimaryName>, Error> {
        let path = self.directory().join(PRIMARY);
        match self.directory().read(PRIMARY, SMALL_FILE) {
            Ok(Some(bytes)) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| Error::io("read", &path)(error.into())),
            Ok(None) => Ok(None),
            Err(error) => Err(Error::io("read", &path)(error)),
        }
    }

    /// Sets the primary database.
    #[must_use]
    pub fn backed_by(mut self, primary: Arc<dyn Primary>) -> Self {
        self.primary = Some(primary);
        self
    }

    /// Returns the primary database, if the store has one.
    pub fn primary(&self) -> Option<&Arc<dyn Primary>> {
        self.primary.as_ref()
    }

    /// Returns `true` if the primary store is a database that this store has no connection to.
    pub fn is_apart(&self) -> Result<bool, Error> {
        Ok(self.primary.is_none() && self.primary_name()?.is_some())
    }
}

impl Scoped {
    /// Makes the files the primary store again, as a workspace with a new identity. Fetches nothing
    /// first, and leaves the database unchanged.
    pub fn leave_primary(&self, random: &mut dyn FnMut() -> String) -> Result<(), Error> {
        if !self.sees_all() {
            let what = "the whole memory".to_owned();
            return Err(Error::OutOfScope { what });
        }
        let lock = Lock::take(self.directory(), self.lock_limit())?;
        if let Some(old) = directory::identity(self.directory()) {
            let origin = random();
            let tombstone_key = old.tombstone_key;
            let identity = Identity {
                origin,
                tombstone_key,
            };
            directory::name(&lock, &identity)?;
        }
        atomic::remove(self.directory(), REPLICA)?;
        follow::forget(self.directory())?;
        atomic::remove(self.directory(), PRIMARY)
    }
}
