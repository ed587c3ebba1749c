//! Marks that disable a memory.
//!
//! A memory is disabled for all callers while the file `disabled` exists in its directory. Another file lists
//! users for whom alone it is disabled: their calls neither read nor write it. A copy of a memory in a database
//! fetches that list with the records. The list fails closed: while it is unreadable, every user except the
//! owner is refused.
//!
//! The mark is a file, not a setting. A hook sees it without parsing, a user can create or remove it by hand,
//! and no program has to edit a settings file. Readers check it before they start. Writers are refused here,
//! under the lock, so that a long-running process writes nothing afterwards.
//!
//! Deliberately absent: the environment variable that disables one process, which the callers check; and
//! hiding of a disabled user's records from the owner of the files.

use memctl_files::Directory;

use crate::model::{UserId, Viewer};
use crate::store::files::directory::{DISABLED as MARKER, DISABLED_USERS as FILE};
use crate::store::{AuditAction, Error, Lock, SMALL_FILE, Scoped, atomic};

/// Returns the users for whom a memory is disabled, sorted.
pub fn disabled_users(directory: &Directory) -> Result<Vec<String>, Error> {
    let path = directory.join(FILE);
    let failed = || Error::io("read", &path);
    match directory.read(FILE, SMALL_FILE).map_err(failed())? {
        Some(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed()(error.into())),
        None => Ok(Vec::new()),
    }
}

/// Writes the list, if it differs. Returns `true` if it did.
pub(crate) fn keep_disabled_users(lock: &Lock, users: &[String]) -> Result<bool, Error> {
    let mut users = users.to_vec();
    users.sort_unstable();
    users.dedup();
    if disabled_users(lock.directory()).is_ok_and(|listed| listed == users) {
        return Ok(false);
    }
    if users.is_empty() {
        atomic::remove(lock.directory(), FILE)?;
    } else {
        atomic::replace_json(lock.directory(), FILE, &users)?;
    }
    Ok(true)
}

impl Scoped {
    /// Disables the memory for a user, or enables it again, and audits that. Returns `false` if it was so
    /// already. For a memory in a database this holds for all copies.
    pub fn switch_user(&self, user: &UserId, is_disabled: bool) -> Result<bool, Error> {
        if let Some(primary) = self.connected_primary()? {
            primary.switch_user(user.as_str(), is_disabled)?;
        }
        let lock = Lock::take(self.directory(), self.lock_limit())?;
        let mut users = disabled_users(lock.directory())?;
        let is_listed = users.iter().any(|listed| listed == user.as_str());
        if is_listed == is_disabled {
            return Ok(false);
        }
        let what = if is_disabled {
            "memory of a user, off"
        } else {
            "memory of a user, on"
        };
        self.audit(AuditAction::Edited, &[(what, Some(user.as_str()))])?;
        users.retain(|listed| listed != user.as_str());
        if is_disabled {
            users.push(user.to_string());
        }
        keep_disabled_users(&lock, &users)
    }
}

/// Content of the marker, for a user who opens it.
const SAYS: &str = "The memory in this directory is switched off: memctl reads and writes none of it.\n\
    `memctl memory enable`, or deleting this file, switches it on again.\n";

/// Returns `true` if the memory is disabled.
pub fn is_disabled(directory: &Directory) -> bool {
    // Any object counts, even a broken link.
    matches!(directory.kind(MARKER), Ok(Some(_)))
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
        let store = self.user_store.as_deref();
        store.filter(|store| !is_disabled(store.directory()))
    }

    /// Fails if the memory is disabled, for everybody or for the user who asks.
    pub(crate) fn must_be_enabled(&self) -> Result<(), Error> {
        self.must_be_enabled_for_all()?;
        let Viewer::User(user) = self.viewer() else {
            return Ok(());
        };
        let is_listed = |users: Vec<String>| users.iter().any(|listed| listed == user.as_str());
        if !self.regardless && is_listed(disabled_users(self.directory())?) {
            return Err(Error::DisabledForUser(user.to_string()));
        }
        Ok(())
    }

    /// Fails if the memory is disabled for everybody.
    pub(crate) fn must_be_enabled_for_all(&self) -> Result<(), Error> {
        if !self.regardless && is_disabled(self.directory()) {
            return Err(Error::Disabled(self.directory().join(MARKER)));
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
        removed.map_err(Error::io("remove", &self.directory().join(MARKER)))
    }
}

#[cfg(test)]
mod tests {
    use memctl_files::named;

    use super::*;
    use crate::model::Scope;

    #[test]
    fn user_who_is_off_writes_nothing_and_others_do() {
        let dir = tempfile::tempdir().unwrap();
        let random = &mut || "r".to_owned();
        let owner = Scoped::new(dir.path(), Scope::All);
        drop(owner.write(random).unwrap());
        let of = |name: &str| owner.clone().seen_by(Viewer::User(name.parse().unwrap()));
        let (ada, bob) = (of("ada"), of("bob"));
        let id: UserId = "ada".parse().unwrap();
        assert!(!owner.switch_user(&id, false).unwrap());
        assert!(owner.switch_user(&id, true).unwrap());
        assert!(!owner.switch_user(&id, true).unwrap());
        let refused = |store: &Scoped| {
            matches!(
                store.write(&mut || "r".to_owned()),
                Err(Error::DisabledForUser(..))
            )
        };
        assert!(refused(&ada) && !refused(&bob) && !refused(&owner));
        assert!(matches!(ada.catch_up(), Err(Error::DisabledForUser(..))));
        assert!(ada.clone().even_if_disabled().write(random).is_ok());
        let mut events = Vec::new();
        owner
            .audited(&mut |line| events.push((line.did, line.of)))
            .unwrap();
        assert_eq!(events, [(AuditAction::Edited, vec!["ada".to_owned()])]);
        // Nobody is let in because of a broken list.
        named::replace(&dir.path().join(FILE), b"broken").unwrap();
        assert!(bob.write(random).is_err() && owner.write(random).is_ok());
        named::replace(&dir.path().join(FILE), b"[\"ada\"]").unwrap();
        assert!(owner.switch_user(&id, false).unwrap());
        assert!(ada.write(random).is_ok() && !dir.path().join(FILE).exists());
    }

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
        assert!(matches!(refused, Err(Error::Disabled(..))));
        assert!(matches!(store.scratch("s"), Err(Error::Disabled(..))));
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
