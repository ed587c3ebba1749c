//! Where a memory lies, and how it comes to lie elsewhere.
//!
//! The directory says it, and not a variable of whoever calls: what is written to a copy as if its files were
//! all there is would be lost to every other one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::atomic;
use super::super::directory::{self, Identity, Lock, SMALL_FILE};
use super::super::error::Error;
use super::super::replica::REPLICA;
use super::super::scoped::Scoped;
use super::super::writer::Writer;
use super::{Primary, follow};

/// The file that says where the memory lies.
pub(in super::super) const PRIMARY: &str = "primary.json";

/// Where a memory lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrimaryName {
    /// What tells the database, and the user in it, from every other.
    pub database: String,
    /// Host and name of the database, to be shown.
    pub shown: String,
    /// The name of the memory there.
    pub origin: String,
}

impl Scoped {
    /// Where the memory lies, if that is a database.
    ///
    /// # Errors
    ///
    /// That the file cannot be read: then nobody knows, and nothing may be written.
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

    /// The same, with the database that the memory lies in.
    #[must_use]
    pub fn backed_by(mut self, primary: Arc<dyn Primary>) -> Self {
        self.primary = Some(primary);
        self
    }

    /// The database that the memory lies in, if this store has one.
    pub fn primary(&self) -> Option<&Arc<dyn Primary>> {
        self.primary.as_ref()
    }

    /// Whether the memory lies in a database that this store has no way to.
    pub fn is_apart(&self) -> Result<bool, Error> {
        Ok(self.primary.is_none() && self.primary_name()?.is_some())
    }
}

/// The right to say that a memory lies in a database from now on. While it lives, nothing is written to the
/// files.
#[derive(Debug)]
pub struct Moving(Writer);

impl Scoped {
    /// Waits for the lock, so that a memory can be taken to a database as it is. `random` makes the identity
    /// of a workspace that has none.
    pub fn begin_to_move(&self, random: &mut dyn FnMut() -> String) -> Result<Moving, Error> {
        Ok(Moving(self.write(random)?))
    }
}

impl Moving {
    /// What is to be taken there.
    pub fn store(&self) -> &Scoped {
        self.0.store()
    }

    /// Who the workspace is.
    pub fn identity(&self) -> &Identity {
        self.0.identity()
    }

    /// Says that the memory lies in a database from now on, under the identity that it has there.
    pub fn finish(
        self,
        name: &PrimaryName,
        identity: &Identity,
        replica: &str,
    ) -> Result<(), Error> {
        let lock = self.0.lock();
        let directory = lock.directory();
        directory::name(lock, identity)?;
        atomic::replace(directory, REPLICA, format!("{replica}\n").as_bytes())?;
        follow::forget(directory)?;
        let mut text = serde_json::to_vec_pretty(name)?;
        text.push(b'\n');
        // Last: from here on nothing is written without the database.
        atomic::replace(directory, PRIMARY, &text)
    }
}

impl Scoped {
    /// Says that the memory lies in its files again: a workspace of its own, with another name. Nothing is
    /// fetched before, and nothing changes in the database.
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
