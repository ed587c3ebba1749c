//! Pulling of remote records: the only writer below `remote/`, where each kind has one file.
//!
//! Name of this copy of a memory: copies of a workspace share its identity and differ in this name.
//!
//! It stays out of version control, and a purge keeps it.
//!
//! Move of a memory to a database.

use std::collections::HashSet;
use std::time::Duration;

use crate::model::Kind;
use crate::store::access::scoped::STATE;
use crate::store::files::data::apply::apply;
use crate::store::files::directory::{self, PRIMARY, REPLICA, directory_name, is_pulled_origin};
use crate::store::{
    DataFile, Error, Identity, Lock, PrimaryName, PulledChange, PulledCount, SMALL_FILE, Scoped,
    Selection, Writer, atomic, is_origin, primary,
};

/// Maximum wait for another process that pulls.
const PATIENCE: Duration = Duration::from_secs(2);

/// Exclusive access for pulling.
#[derive(Debug)]
pub struct Puller {
    store: Scoped,
    lock: Lock,
}

impl Scoped {
    fn pulled_from(&self, origin: &str) -> Self {
        let directory = self.pulled_directory().below(directory_name(origin));
        self.moved_to(directory, origin)
    }

    /// Begins a pull. Requires full access, because remote records may be of any user and domain.
    pub fn pull(&self) -> Result<Puller, Error> {
        self.must_be_enabled()?;
        if !self.sees_all() {
            return Err(Error::OutOfScope("what other workspaces share".to_owned()));
        }
        Ok(Puller {
            store: self.clone(),
            lock: Lock::take(self.pulled_directory(), PATIENCE)?,
        })
    }
}

impl Puller {
    /// Returns the origins with a damaged file.
    pub fn damaged(&self) -> Vec<String> {
        // A valid file is never empty: it holds at least an object.
        let is_empty = |store: &Scoped, kind: Kind| {
            let state = store.directory().state(kind.file());
            state.is_ok_and(|state| state.is_some_and(|state| state.size == 0))
        };
        let is_damaged = |store: &Scoped, kind| match store.file(DataFile::shared(kind)).snapshot()
        {
            Ok(snapshot) => snapshot.table.header.problems > 0 || is_empty(store, kind),
            Err(Error::NewerFormat { .. }) => false,
            Err(_) => true,
        };
        let pulled = self.store.pulled().into_iter();
        pulled
            .filter(|pulled| {
                Kind::ALL
                    .iter()
                    .any(|kind| is_damaged(&pulled.store, *kind))
            })
            .map(|pulled| pulled.origin)
            .collect()
    }

    /// Removes all records of an origin, so that they can be pulled again.
    pub fn discard(&self, origin: &str) -> Result<(), Error> {
        let (above, name) = (self.lock.directory(), directory_name(origin));
        match above.remove_tree(&name) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove", &above.join(name))(error))
            }
            _ => Ok(()),
        }
    }

    /// Returns the saved progress of pulling.
    pub fn state(&self) -> Option<Vec<u8>> {
        self.lock.directory().read(STATE, SMALL_FILE).ok().flatten()
    }

    /// Saves the progress of pulling.
    pub fn keep_state(&self, state: &[u8]) -> Result<(), Error> {
        atomic::replace(self.lock.directory(), STATE, state)
    }

    /// Returns the number of these records that are present.
    pub fn count_held(&self, origin: &str, kind: Kind, ids: &[&str]) -> Result<u64, Error> {
        let store = self.store.pulled_from(origin);
        let Ok(snapshot) = store.file(DataFile::shared(kind)).snapshot() else {
            // A damaged file is pulled again as a whole.
            return Ok(0);
        };
        let found = snapshot.of_ids(&ids.iter().copied().collect())?.into_iter();
        let found: HashSet<String> = found.map(|(_, entry)| entry.id).collect();
        Ok(found.len() as u64)
    }

    /// Returns the ids of the records of an origin.
    pub fn ids(&self, origin: &str, kind: Kind) -> Result<Vec<String>, Error> {
        let store = self.store.pulled_from(origin);
        let mut ids = Vec::new();
        store.each_entry(kind, &Selection::default(), &mut |entry| ids.push(entry.id))?;
        Ok(ids)
    }

    /// Returns the total number of remote records.
    pub fn total(&self) -> Result<u64, Error> {
        let mut total = 0;
        for pulled in self.store.pulled() {
            for kind in Kind::ALL {
                let snapshot = pulled.store.file(DataFile::shared(kind)).snapshot();
                total += snapshot.map_or(0, |snapshot| snapshot.table.header.count);
            }
        }
        Ok(total)
    }

    /// Applies changes to the records of another workspace. The last of several changes to one
    /// record wins. All changes are on disk when this returns. After a crash, applying the same
    /// changes again completes them.
    pub fn apply(
        &self,
        origin: &str,
        kind: Kind,
        changes: &[PulledChange],
    ) -> Result<PulledCount, Error> {
        if !is_pulled_origin(origin) {
            return Err(Error::OutOfScope(format!(
                "the workspace `{}`",
                origin.escape_debug()
            )));
        }
        let directory = self.lock.directory().below(directory_name(origin));
        let lock = Lock::take(&directory, PATIENCE)?;
        let store = self.store.moved_to(directory, origin).held();
        apply(store.file(DataFile::shared(kind)), &lock, changes)
    }
}

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
        primary::forget(directory)?;
        let mut text = serde_json::to_vec_pretty(name)?;
        text.push(b'\n');
        // Last: from here on, nothing is written without the database.
        atomic::replace(directory, PRIMARY, &text)
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod tests_of_replica {
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
