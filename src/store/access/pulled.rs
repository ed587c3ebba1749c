//! Records that are read beside those of this memory: remote records, and those of the user store.
//!
//! Remote records were pulled from a shared store: `remote/<origin>/`, with the same files as a memory.
//!
//! Each of these directories is a copy with a single writer, the workspace of that name. There is
//! nothing to merge, and it can be pulled again. Only a pull changes its records.
//!
//! Deliberately absent: the source of the records, and their use.

use crate::model::USER_STORE;
use crate::store::error::Error;
use crate::store::files::directory::REMOTE;
use crate::store::files::directory::origin_of;
use memctl_files::{Directory, FoundKind};

use super::scoped::Scoped;

/// Name of the file with the progress of pulling.
pub(crate) const STATE: &str = "state.json";

/// Records of another workspace.
#[derive(Debug, Clone)]
pub struct Pulled {
    /// Origin of the workspace.
    pub origin: String,
    /// The records, filtered by the caller's access.
    pub store: Scoped,
}

impl Scoped {
    pub(crate) fn pulled_directory(&self) -> Directory {
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
        let known: Vec<String> = all.iter().map(|pulled| pulled.origin.clone()).collect();
        all.retain(|pulled| !beginning.is_empty() && pulled.origin.starts_with(beginning));
        match (all.pop(), all.is_empty()) {
            (Some(only), true) => Ok(only),
            _ => Err(Error::NoOrigin {
                beginning: beginning.to_owned(),
                known,
            }),
        }
    }

    /// Returns `true` if the memory is shared through a database, because it has pulled from one.
    pub fn is_shared(&self) -> bool {
        self.pulled_directory().is_file(STATE)
    }
}

/// Returns the names of the subdirectories, without links.
fn directories_in(directory: &Directory) -> Vec<String> {
    let found = directory.list().unwrap_or_default().into_iter();
    let directories = found.filter(|found| found.kind == FoundKind::Directory);
    let names = directories.map(|found| found.name.to_string_lossy().into_owned());
    names.collect()
}
