//! Remote records, pulled from a shared store: `remote/<origin>/`, with the same files as a memory.
//!
//! Each of these directories is a copy with a single writer, the workspace of that name. So there is nothing to
//! merge, and it can be pulled again. Only a pull changes its records: [`Puller`] is the only writer below
//! `remote/`, where each kind has one file. The records of the user store are read beside them.
//!
//! Deliberately absent: the source of the records, and their use.

use std::collections::HashSet;
use std::time::Duration;

use memctl_files::{Directory, FoundKind};

use crate::model::{Kind, Scope, USER_STORE};
use crate::store::files::data::write::apply;
use crate::store::files::directory::{REMOTE, directory_name, is_pulled_origin, origin_of};
use crate::store::{
    DataFile, Error, Lock, PulledChange, PulledCount, SMALL_FILE, Scoped, Selection, atomic,
};

/// Name of the file with the progress of pulling.
const STATE: &str = "state.json";

/// Maximum wait for another process that pulls.
const PATIENCE: Duration = Duration::from_secs(2);

/// Records of another workspace.
#[derive(Debug, Clone)]
pub struct Pulled {
    /// Origin of the workspace.
    pub origin: String,
    /// The records, filtered by the caller's access.
    pub store: Scoped,
}

/// Exclusive access for pulling.
#[derive(Debug)]
pub struct Puller {
    store: Scoped,
    lock: Lock,
}

impl Scoped {
    fn pulled_directory(&self) -> Directory {
        self.directory().below(REMOTE)
    }

    /// Returns the remote records by workspace, sorted by name, each filtered by the caller's
    /// access.
    pub fn pulled(&self) -> Vec<Pulled> {
        let names = directories_in(&self.pulled_directory()).into_iter();
        let mut origins: Vec<(String, String)> = names
            .filter_map(|name| Some((origin_of(&name)?, name)))
            .collect();
        // A clone must not pass its records off as those of the user store.
        origins.retain(|(origin, _)| !origin.eq_ignore_ascii_case(USER_STORE));
        origins.sort_unstable();
        origins
            .into_iter()
            .map(|(origin, name)| Pulled {
                store: self.moved_to(self.pulled_directory().below(name), &origin),
                origin,
            })
            .collect()
    }

    /// Returns the remote records, and after them those of the user store.
    pub fn others(&self) -> Vec<Pulled> {
        let mut others = self.pulled();
        others.extend(self.of_user());
        others
    }

    fn of_user(&self) -> Option<Pulled> {
        Some(Pulled {
            origin: USER_STORE.to_owned(),
            store: self.user_store()?.clone(),
        })
    }

    /// Returns the records of the only workspace with this name prefix, or those of the user store.
    pub fn pulled_as(&self, beginning: &str) -> Result<Pulled, Error> {
        if let Some(user) = self.of_user().filter(|_| beginning == USER_STORE) {
            return Ok(user);
        }
        let mut all = self.pulled();
        let names: Vec<String> = all.iter().map(|pulled| pulled.origin.clone()).collect();
        // A whole name is that workspace, even if another name begins with it.
        let is_whole = names.iter().any(|name| name == beginning);
        all.retain(|pulled| {
            let is_begun = !beginning.is_empty() && pulled.origin.starts_with(beginning);
            pulled.origin == beginning || is_begun && !is_whole
        });
        if let (Some(only), true) = (all.pop(), all.is_empty()) {
            Ok(only)
        } else {
            let beginning = beginning.escape_debug();
            Err(Error::missing(
                format!("no single pulled workspace has a name that starts with `{beginning}`"),
                if names.is_empty() {
                    "memctl sync".to_owned()
                } else {
                    format!("give a longer prefix: {}", names.join(", "))
                },
            ))
        }
    }

    /// Returns `true` if the memory is shared through a database, because it has pulled from one.
    pub fn is_shared(&self) -> bool {
        self.pulled_directory().is_file(STATE)
    }

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

impl Scoped {
    /// Begins a pull of all records for a copy, regardless of the caller's access. `None` while another process
    /// pulls.
    pub(crate) fn puller_of_copy(&self) -> Result<Option<Puller>, Error> {
        let lock = match Lock::take(self.pulled_directory(), Duration::ZERO) {
            Err(Error::Locked { .. }) => return Ok(None),
            lock => lock?,
        };
        let store = Self::new(self.directory().clone(), Scope::All);
        Ok(Some(Puller { store, lock }))
    }
}

/// Returns the names of the subdirectories, without links.
fn directories_in(directory: &Directory) -> Vec<String> {
    let found = directory.list().unwrap_or_default().into_iter();
    let directories = found.filter(|found| found.kind == FoundKind::Directory);
    let names = directories.map(|found| found.name.to_string_lossy().into_owned());
    names.collect()
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
        let changes = changes
            .iter()
            .map(|change| (&*change.id, change.text.as_deref()));
        let file = store.file(DataFile::shared(kind));
        apply(file, &lock, &changes.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests;
