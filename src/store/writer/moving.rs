//! Move of a memory to a database.

use crate::store::access::scoped::Scoped;
use crate::store::atomic;
use crate::store::error::Error;
use crate::store::files::directory::{self, Identity};
use crate::store::files::file_names::{PRIMARY, REPLICA};
use crate::store::primary::follow;
use crate::store::primary::location::PrimaryName;

use super::Writer;

/// Exclusive access for moving a memory to a database. No other writer can change the files
/// meanwhile.
#[derive(Debug)]
pub struct Moving(Writer);

impl Scoped {
    /// Waits for the lock to move the current memory to a database. `random` supplies the identity
    /// of a workspace that has none.
    pub fn begin_to_move(&self, random: &mut dyn FnMut() -> String) -> Result<Moving, Error> {
        Ok(Moving(self.write(random)?))
    }
}

impl Moving {
    /// Returns the store to move.
    pub fn store(&self) -> &Scoped {
        self.0.store()
    }

    /// Returns the identity of the workspace.
    pub fn identity(&self) -> &Identity {
        self.0.identity()
    }

    /// Makes a database the primary store, under the identity that the memory has there.
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
        // Last: from here on, nothing is written without the database.
        atomic::replace(directory, PRIMARY, &text)
    }
}
