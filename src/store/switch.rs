//! The switch that turns a memory off: while the file `disabled` lies in the directory, nothing is
//! read from it and nothing is written to it.
//!
//! The marker is a file and no setting, so that a hook sees it without reading anything, a person can
//! make or remove it by hand, and no settings file has to be edited by a program. Readers ask for it
//! before they begin; writers are refused here, under the lock, so that a long run which began before
//! the switch writes nothing after it.
//!
//! Deliberately absent: the environment variable that does the same for one process. The edge asks
//! for that.

use std::path::PathBuf;

use crate::platform::Directory;

use super::atomic;
use super::directory::Lock;
use super::error::Error;
use super::scoped::Scoped;

/// The name of the marker.
pub(super) const MARKER: &str = "disabled";

/// What the marker says to whoever opens it.
const SAYS: &str = "The memory in this directory is switched off: memctl reads and writes none of it.\n\
    `memctl memory enable`, or deleting this file, switches it on again.\n";

/// Whether a memory directory is switched off.
pub fn is_disabled(directory: &Directory) -> bool {
    // Whatever lies there, a broken link too, says that somebody wanted no memory.
    matches!(directory.kind(MARKER), Ok(Some(_)))
}

fn marker(directory: &Directory) -> PathBuf {
    directory.join(MARKER)
}

impl Scoped {
    /// The same store, for those who look after the data itself while the memory is off: what takes
    /// it away, and what puts it back.
    #[must_use]
    pub fn even_if_disabled(mut self) -> Self {
        self.regardless = true;
        self
    }

    /// Refuses to begin a write while the memory is off.
    pub(super) fn must_be_enabled(&self) -> Result<(), Error> {
        if !self.regardless && is_disabled(self.directory()) {
            return Err(Error::Disabled {
                path: marker(self.directory()),
            });
        }
        Ok(())
    }

    /// Switches the memory off; whether it was on. When this returns, whoever was writing has ended.
    /// Makes the directory where it is missing: the marker has to lie somewhere.
    pub fn disable(&self) -> Result<bool, Error> {
        let lock = Lock::take(self.directory(), self.lock_limit())?;
        if is_disabled(lock.directory()) {
            return Ok(false);
        }
        atomic::replace(lock.directory(), MARKER, SAYS.as_bytes())?;
        Ok(true)
    }

    /// Switches the memory on; whether it was off.
    pub fn enable(&self) -> Result<bool, Error> {
        let removed = self.directory().remove(MARKER);
        removed.map_err(Error::io("remove", &marker(self.directory())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[cfg(unix)]
    #[test]
    fn a_broken_link_is_a_marker_too() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join(MARKER)).unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        assert!(is_disabled(store.directory()));
        assert!(store.enable().unwrap());
        assert!(!is_disabled(store.directory()));
    }
}
