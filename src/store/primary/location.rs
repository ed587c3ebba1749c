//! Location of a memory's primary store, and return to the files.
//!
//! A file in the directory names the location, not an environment variable. A caller without the
//! variable would write only to this copy, and the other copies would never see the change.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::store::access::scoped::Scoped;
use crate::store::atomic;
use crate::store::database::Primary;
use crate::store::error::Error;
use crate::store::files::directory::{self, Identity, Lock, SMALL_FILE};
use crate::store::files::file_names::{PRIMARY, REPLICA};

use super::follow;

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
