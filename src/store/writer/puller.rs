//! Pulling of remote records: the only writer below `remote/`, where each kind has one file.

use std::time::Duration;

use crate::model::Kind;
use crate::store::access::pulled::STATE;
use crate::store::access::query::Selection;
use crate::store::access::scoped::Scoped;
use crate::store::atomic;
use crate::store::error::Error;
use crate::store::files::data::apply::{PulledChange, PulledCount, apply, places};
use crate::store::files::data_files::DataFile;
use crate::store::files::directory::{Lock, SMALL_FILE};
use crate::store::files::directory::{directory_name, is_pulled_origin};

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
            let what = "what other workspaces share".to_owned();
            return Err(Error::OutOfScope { what });
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
        let places = places(&snapshot, kind, ids)?;
        Ok(places.len() as u64)
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
            let what = format!("the workspace `{}`", origin.escape_debug());
            return Err(Error::OutOfScope { what });
        }
        let directory = self.lock.directory().below(directory_name(origin));
        let lock = Lock::take(&directory, PATIENCE)?;
        let store = self.store.moved_to(directory, origin).held();
        apply(store.file(DataFile::shared(kind)), &lock, changes)
    }
}

#[cfg(test)]
mod tests;
