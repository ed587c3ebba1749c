//! Users for whom a memory is disabled: calls of such a user neither read nor write it.
//!
//! A file lists their ids, for the same reasons as the marker that disables the whole memory. A copy of a
//! memory in a database has the list of the database, and fetches it with the records.
//!
//! Invariant: the list fails closed. While it cannot be read, every user is refused, and the owner is not.
//!
//! Deliberately absent: hiding of the user's records from the owner of the files.

use crate::model::{UserId, Viewer};
use crate::store::atomic;
use crate::store::audit::audit_event::AuditAction;
use crate::store::error::Error;
use crate::store::files::directory::{Lock, SMALL_FILE};
use crate::store::files::file_names::DISABLED_USERS as FILE;
use memctl_files::Directory;

use super::scoped::Scoped;

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
    if disabled_users(lock.directory()).is_ok_and(|known| known == users) {
        return Ok(false);
    }
    if users.is_empty() {
        atomic::remove(lock.directory(), FILE)?;
    } else {
        let mut bytes = serde_json::to_vec_pretty(&users)?;
        bytes.push(b'\n');
        atomic::replace(lock.directory(), FILE, &bytes)?;
    }
    Ok(true)
}

impl Scoped {
    /// Disables the memory for a user, or enables it again, and audits that. Returns `false` if it was so
    /// already. For a memory in a database this holds for all copies.
    pub fn switch_user(&self, user: &UserId, is_disabled: bool) -> Result<bool, Error> {
        match self.primary() {
            Some(primary) => {
                let done = primary.switch_user(user.as_str(), is_disabled);
                done.map_err(Error::Primary)?;
            }
            None if self.is_apart()? => {
                let path = self.directory().to_path_buf();
                return Err(Error::NoPrimary { path });
            }
            None => {}
        }
        let lock = Lock::take(self.directory(), self.lock_limit())?;
        let mut users = disabled_users(lock.directory())?;
        let is_listed = users.iter().any(|known| known == user.as_str());
        if is_listed == is_disabled {
            return Ok(false);
        }
        let what = if is_disabled {
            "memory of a user, off"
        } else {
            "memory of a user, on"
        };
        self.audit(AuditAction::Edited, &[(what, Some(user.as_str()))])?;
        users.retain(|known| known != user.as_str());
        if is_disabled {
            users.push(user.to_string());
        }
        keep_disabled_users(&lock, &users)
    }

    /// Fails if the memory is disabled for the user who asks.
    pub(super) fn must_be_enabled_for_viewer(&self) -> Result<(), Error> {
        let Viewer::User(user) = self.viewer() else {
            return Ok(());
        };
        let users = disabled_users(self.directory())?;
        if users.iter().any(|known| known == user.as_str()) {
            return Err(Error::DisabledForUser {
                user: user.to_string(),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::disabled_users::*;
    use crate::model::Scope;
    use memctl_files::named;

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
                Err(Error::DisabledForUser { .. })
            )
        };
        assert!(refused(&ada) && !refused(&bob) && !refused(&owner));
        assert!(matches!(ada.catch_up(), Err(Error::DisabledForUser { .. })));
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
}
