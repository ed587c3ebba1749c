//! Name of this copy of a memory: copies of a workspace share its identity and differ in this name.
//!
//! It stays out of version control, and a purge keeps it.
//!
//! Move of a memory to a database.

use crate::store::access::scoped::Scoped;
use crate::store::atomic;
use crate::store::error::Error;
use crate::store::files::directory;
use crate::store::files::directory::{Identity, PRIMARY, REPLICA, SMALL_FILE, is_origin};
use crate::store::primary::at_primary::PrimaryName;
use crate::store::primary::follow;
use crate::store::writer::Writer;

impl Scoped {
    /// Returns the name of this copy, if it has one.
    pub fn replica(&self) -> Option<String> {
        let text = self.directory().read_text(REPLICA, SMALL_FILE).ok()??;
        let name = text.trim();
        is_origin(name).then(|| name.to_owned())
    }

    /// Returns the identity of the workspace and the name of this copy; creates missing ones.
    pub fn name_itself(
        &self,
        random: &mut dyn FnMut() -> String,
    ) -> Result<(Identity, String), Error> {
        let writer = self.write(random)?;
        let identity = writer.identity().clone();
        if let Some(name) = self.replica() {
            return Ok((identity, name));
        }
        let name = random();
        let text = format!("{name}\n");
        atomic::replace(self.directory(), REPLICA, text.as_bytes())?;
        Ok((identity, name))
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;

    #[test]
    fn a_copy_is_named_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        assert_eq!(store.replica(), None);
        let mut n = 0;
        let mut random = || {
            n += 1;
            format!("name-{n}")
        };
        let first = store.name_itself(&mut random).unwrap();
        assert_ne!(first.0.origin, first.1);
        assert_eq!(store.name_itself(&mut random).unwrap(), first);
        assert_eq!(store.replica(), Some(first.1));
    }
}
