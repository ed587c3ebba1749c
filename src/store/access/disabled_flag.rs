//! The marker that disables a memory: while the file `disabled` exists in the directory, the memory
//! is neither read nor written.
//!
//! The marker is a file, not a setting. A hook sees it without parsing, a user can create or remove
//! it by hand, and no program has to edit a settings file. Readers check it before they start.
//! Writers are refused here, under the lock, so that a long-running process writes nothing
//! afterwards.
//!
//! Deliberately absent: the environment variable that disables one process, which the callers
//! check.

use std::path::PathBuf;

use crate::store::atomic;
use crate::store::error::Error;
use crate::store::files::directory::Lock;
use crate::store::files::file_names::DISABLED as MARKER;
use memctl_files::Directory;

use super::scoped::Scoped;

/// Content of the marker, for a user who opens it.
const SAYS: &str = "The memory in this directory is switched off: memctl reads and writes none of it.\n\
    `memctl memory enable`, or deleting this file, switches it on again.\n";

/// Returns `true` if the memory is disabled.
pub fn is_disabled(directory: &Directory) -> bool {
    // Any object counts, even a broken link.
    matches!(directory.kind(MARKER), Ok(Some(_)))
}

fn marker(directory: &Directory) -> PathBuf {
    directory.join(MARKER)
}

impl Scoped {
    /// Allows writes while the memory is disabled, for removing and restoring data.
    #[must_use]
    pub fn even_if_disabled(mut self) -> Self {
        self.regardless = true;
        self
    }

    /// Returns the user store; `None` if there is none here, or it is disabled.
    pub fn user_store(&self) -> Option<&Self> {
        let store = self.attached_user_store();
        store.filter(|store| !is_disabled(store.directory()))
    }

    /// Fails if the memory is disabled, for everybody or for the user who asks.
    pub(crate) fn must_be_enabled(&self) -> Result<(), Error> {
        self.must_be_enabled_for_all()?;
        if self.regardless {
            return Ok(());
        }
        self.must_be_enabled_for_viewer()
    }

    /// Fails if the memory is disabled for everybody.
    pub(crate) fn must_be_enabled_for_all(&self) -> Result<(), Error> {
        if !self.regardless && is_disabled(self.directory()) {
            return Err(Error::Disabled {
                path: marker(self.directory()),
            });
        }
        Ok(())
    }

    /// Disables the memory; `false` if it was disabled already. On return no writer is active.
    /// Creates a missing directory for the marker.
    pub fn disable(&self) -> Result<bool, Error> {
        let lock = Lock::take(self.directory(), self.lock_limit())?;
        if is_disabled(lock.directory()) {
            return Ok(false);
        }
        atomic::replace(lock.directory(), MARKER, SAYS.as_bytes())?;
        Ok(true)
    }

    /// Enables the memory; `false` if it was enabled already.
    pub fn enable(&self) -> Result<bool, Error> {
        let removed = self.directory().remove(MARKER);
        removed.map_err(Error::io("remove", &marker(self.directory())))
    }
}

#[cfg(test)]
mod tests {
    use super::super::disabled_flag::*;
    use crate::model::Scope;

    #[test]
    fn a_memory_that_is_off_takes_nothing_until_it_is_on() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path().join("m"), Scope::All);
        let random = &mut || "r".to_owned();
        assert!(!store.enable().unwrap());
        assert!(store.disable().unwrap());
        assert!(!store.disable().unwrap());
        assert!(is_disabled(store.directory()));
        let refused = store.write(random);
        assert!(matches!(refused, Err(Error::Disabled { .. })));
        assert!(matches!(store.notes("s"), Err(Error::Disabled { .. })));
        assert!(!store.directory().join("workspace.json").exists());
        assert!(store.clone().even_if_disabled().write(random).is_ok());
        assert!(store.enable().unwrap());
        assert!(store.write(random).is_ok());
    }

    #[test]
    #[cfg_attr(windows, ignore = "Wine makes no symbolic links")]
    fn a_broken_link_is_a_marker_too() {
        let dir = tempfile::tempdir().unwrap();
        memctl_files::make_link("nowhere", dir.path().join(MARKER)).unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        assert!(is_disabled(store.directory()));
        assert!(store.enable().unwrap());
        assert!(!is_disabled(store.directory()));
    }
}
