//! Reading through the access filter: one caller with a scope, a user and a time.
//!
//! - Here: the filter, and the marks that switch a memory off. `query`: reading of records. `scoped`: the
//!   store of one caller, what is read beside it, and ids from what a user types.
//!
//! An entry is visible if the scope covers its skill, its user matches the viewer, and it has not
//! expired. Every read for a caller and every change to an existing record applies the filter.
//!
//! Records with a user but no skill are visible to that user in every non-empty scope.
//!
//! The filter fails closed: without a current time, every record with an expiry is hidden.
//!
//! Rows of the files of a kind, in the order of their records.
//!
//! Queries on removed records, limited by the access filter.
//!
//! A removed id is taken for every caller; removed content is visible only to its user. A tombstone
//! does not name a skill, so a limited scope sees little.
//!
//! A memory is disabled for all callers while the file `disabled` exists in its directory, and for the
//! users whom another file lists: their calls neither read nor write it. A copy of a memory in a database
//! fetches that list with the records. The list fails closed: while it cannot be read, every user is
//! refused, and the owner is not.
//!
//! The marker is a file, not a setting. A hook sees it without parsing, a user can create or remove
//! it by hand, and no program has to edit a settings file. Readers check it before they start.
//! Writers are refused here, under the lock, so that a long-running process writes nothing
//! afterwards.
//!
//! Deliberately absent: the environment variable that disables one process, which the callers check; and
//! hiding of a disabled user's records from the owner of the files.

pub(crate) mod query;
pub(crate) mod scoped;

use std::collections::HashSet;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use memctl_files::{Directory, json};

use crate::model::{Expiry, IdShape, Kind, Scope, UserId, Viewer};
use crate::store::files::directory::{DISABLED as MARKER, DISABLED_USERS as FILE};
use crate::store::files::tombstones;
use crate::store::{
    AuditAction, DataFile, Error, ForgottenRecords, Lock, Problem, Row, SMALL_FILE, Scoped,
    Selection, Snapshot, Tombstone, atomic,
};

/// Access filter for one caller.
#[derive(Debug, Clone)]
pub(crate) struct AccessFilter {
    pub(crate) scope: Scope,
    pub(crate) viewer: Viewer,
    /// Current time; `None` hides every record with an expiry.
    pub(crate) now: Option<DateTime<Utc>>,
}

impl AccessFilter {
    /// Returns `true` if an entry of this kind is visible to the caller.
    pub(crate) fn sees(&self, kind: Kind, entry: &[u8]) -> bool {
        self.covers(kind, entry) && !(kind.may_expire() && expiry(entry).is_over(self.now))
    }

    /// Returns `true` if an entry is within scope and user, expired or not.
    pub(crate) fn covers(&self, kind: Kind, entry: &[u8]) -> bool {
        let in_scope = self.scope == Scope::All || {
            let skill = json::string_field(entry, "skill");
            let names_none = matches!(json::field(entry, "skill"), None | Some(b"null"));
            self.scope.allows(skill.as_deref()) || (names_none && self.is_in_every_domain(kind))
        };
        in_scope && self.is_own(kind, entry)
    }

    /// Returns `true` if the scope covers a record of this kind and skill.
    pub(crate) fn covers_skill(&self, kind: Kind, skill: Option<&str>) -> bool {
        self.scope.allows(skill) || (skill.is_none() && self.is_in_every_domain(kind))
    }

    /// Returns `true` if the viewer is a user and the scope is not empty: their records of this
    /// kind without a skill are then visible.
    pub(crate) fn is_in_every_domain(&self, kind: Kind) -> bool {
        let is_empty = matches!(&self.scope, Scope::Domains(domains) if domains.is_empty());
        kind.has_user() && matches!(self.viewer, Viewer::User(_)) && !is_empty
    }

    /// Returns `true` if the user of an entry permits the viewer to read and write it.
    pub(crate) fn is_own(&self, kind: Kind, entry: &[u8]) -> bool {
        !kind.has_user()
            || self.viewer == Viewer::Owner
            || self
                .viewer
                .sees(json::string_field(entry, "user_id").as_deref())
    }

    /// Returns `true` if the caller may see everything in the files, except expired records.
    pub(crate) fn is_whole(&self) -> bool {
        self.scope == Scope::All && self.viewer == Viewer::Owner
    }

    /// Returns `true` if visibility depends on the text of the entry: the table of offsets knows
    /// skills, but no users and times.
    pub(crate) fn asks_the_text(&self, kind: Kind) -> bool {
        kind.may_expire() || (kind.has_user() && self.viewer != Viewer::Owner)
    }
}

/// Returns the expiry of an entry.
pub(crate) fn expiry(entry: &[u8]) -> Expiry {
    match json::field(entry, "expires_at") {
        None | Some(b"null") => Expiry::Never,
        Some(_) => match json::string_field(entry, "expires_at") {
            Some(text) => Expiry::of(Some(&text)),
            None => Expiry::Unreadable,
        },
    }
}

/// Rows that may match a selection, oldest first.
#[derive(Debug)]
struct SelectedRows {
    /// The files of the kind, the shared one first.
    files: Vec<Snapshot>,
    /// Each row with the place of its file.
    rows: Vec<(usize, Row)>,
}

impl SelectedRows {
    /// Returns the rows, each with its file.
    fn rows(&self) -> impl Iterator<Item = (&Snapshot, &Row)> {
        self.rows
            .iter()
            .map(|(file, row)| (&self.files[*file], row))
    }

    /// Returns the problems of the files.
    fn into_problems(self) -> Vec<Problem> {
        self.files.into_iter().flat_map(|f| f.problems).collect()
    }
}

impl Scoped {
    /// Returns the states of the files of a kind, the shared one first.
    pub(crate) fn snapshots(&self, kind: Kind) -> Result<Vec<Snapshot>, Error> {
        // A record that is approved meanwhile is in the shared file before it leaves the local one.
        let files = DataFile::of(kind).rev();
        let read: Result<Vec<_>, _> = files.map(|file| self.file(file).snapshot()).collect();
        let mut snapshots = read?;
        snapshots.reverse();
        Ok(snapshots)
    }

    /// Returns the rows of a kind that may match the selection.
    fn select_all(&self, kind: Kind, selection: &Selection<'_>) -> Result<SelectedRows, Error> {
        let files = self.snapshots(kind)?;
        let mut rows = Vec::new();
        for file in &files {
            rows.push(self.select(file, kind, selection)?);
        }
        let mut rows = merged(kind, rows);
        let limit = selection.newest.unwrap_or(usize::MAX);
        rows.drain(..rows.len().saturating_sub(limit));
        Ok(SelectedRows { files, rows })
    }
}

/// Merges the rows of the files of a kind, each oldest first, in the order of their ids.
fn merged(kind: Kind, mut files: Vec<Vec<Row>>) -> Vec<(usize, Row)> {
    let (Some(local), Some(shared)) = (files.get(1), files.first()) else {
        let only = files.pop().unwrap_or_default();
        return only.into_iter().map(|row| (0, row)).collect();
    };
    let mut local = local.iter().peekable();
    let order = |row: &Row| IdShape::of(kind, &String::from_utf8_lossy(row.id()));
    let mut rows = Vec::with_capacity(shared.len());
    for row in shared {
        let at = order(row);
        while let Some(earlier) = local.next_if(|other| at.is_some() && order(other) < at) {
            rows.push((1, earlier.clone()));
        }
        rows.push((0, row.clone()));
    }
    rows.extend(local.map(|row| (1, row.clone())));
    rows
}

impl Scoped {
    /// Returns the tombstone of a record of this kind with this content.
    pub fn tombstone_of(&self, kind: Kind, content: &str) -> Result<Option<Tombstone>, Error> {
        tombstones::find(self.directory(), kind, content, &|t| self.is_own_removal(t))
    }

    /// Returns `true` if the viewer was allowed to see the removed record.
    fn is_own_removal(&self, tombstone: &Tombstone) -> bool {
        !tombstone.kind.has_user() || self.viewer().sees(tombstone.user_id.as_deref())
    }

    /// Returns the ids of removed records of a kind with their tombstone lines. Empty for callers
    /// with limited access.
    pub fn tombstone_lines(&self, kind: Kind) -> Result<Vec<(String, String)>, Error> {
        if !self.sees_all() {
            return Ok(Vec::new());
        }
        tombstones::lines_in_force(self.directory(), kind)
    }

    /// Returns all removed records.
    pub fn all_forgotten(&self) -> Result<ForgottenRecords, Error> {
        ForgottenRecords::read(self.directory(), &|t| self.is_own_removal(t))
    }

    /// Returns the ids of all removed records of a kind, of any user.
    pub fn tombstone_ids(&self, kind: Kind) -> Result<HashSet<String>, Error> {
        tombstones::ids(self.directory(), kind)
    }

    /// Returns the tombstone of the record with this id. Always `None` in a limited scope, because
    /// a tombstone does not name the skill.
    pub fn tombstone(&self, kind: Kind, id: &str) -> Result<Option<Tombstone>, Error> {
        match self.scope() {
            Scope::All => {
                let found = tombstones::of_id(self.directory(), kind, id)?;
                Ok(found.filter(|tombstone| self.is_own_removal(tombstone)))
            }
            Scope::Domains(_) => Ok(None),
        }
    }
}

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
    fn must_be_enabled_for_viewer(&self) -> Result<(), Error> {
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
    use memctl_files::named;

    use super::*;

    #[test]
    fn all_three_conditions_hold_at_once() {
        let now = DateTime::parse_from_rfc3339("2026-05-01T00:00:00Z").unwrap();
        let access = |scope, viewer| AccessFilter {
            scope,
            viewer,
            now: Some(now.to_utc()),
        };
        let owner = access(Scope::All, Viewer::Owner);
        let alice = access(Scope::All, Viewer::User("alice".parse().unwrap()));
        let hr = access(Scope::parse("hr"), Viewer::Owner);
        let alice_in_hr = access(Scope::parse("hr"), Viewer::User("alice".parse().unwrap()));
        let nowhere = access(Scope::parse(""), Viewer::User("alice".parse().unwrap()));
        let check_own = |kind, entry: &str, expected: bool| {
            assert_eq!(
                alice_in_hr.sees(kind, entry.as_bytes()),
                expected,
                "{entry}"
            );
            assert!(!nowhere.sees(kind, entry.as_bytes()), "{entry}");
        };
        check_own(Kind::Memory, r#"{"user_id": "alice"}"#, true);
        check_own(
            Kind::Session,
            r#"{"user_id": "alice", "skill": null}"#,
            true,
        );
        check_own(
            Kind::Memory,
            r#"{"user_id": "alice", "skill": "hr/x"}"#,
            true,
        );
        for skill in [r#""finance/x""#, r#"["hr/x"]"#, r#""x""#, r#""""#] {
            let entry = format!(r#"{{"user_id": "alice", "skill": {skill}}}"#);
            check_own(Kind::Memory, &entry, false);
        }
        check_own(Kind::Memory, r#"{"user_id": "bob"}"#, false);
        check_own(Kind::Memory, "{}", false);
        check_own(Kind::Procedure, r#"{"user_id": "alice"}"#, false);
        let check = |kind, entry: &str, expected: [bool; 3]| {
            let seen = [&owner, &alice, &hr].map(|access| access.sees(kind, entry.as_bytes()));
            assert_eq!(seen, expected, "{entry}");
        };
        check(Kind::Memory, r#"{"user_id": "alice"}"#, [true, true, false]);
        check(Kind::Memory, r#"{"user_id": "bob"}"#, [true, false, false]);
        check(
            Kind::Memory,
            r#"{"user_id": ["alice"]}"#,
            [true, false, false],
        );
        check(Kind::Memory, "{}", [true, false, false]);
        check(Kind::Session, "{}", [true, false, false]);
        check(Kind::Procedure, "{}", [true, true, false]);
        check(Kind::Reflexion, r#"{"skill": "hr/x"}"#, [true; 3]);
        // The last of two fields counts, as in every JSON parser.
        let twice = r#"{"user_id": "alice", "user_id": "bob"}"#;
        check(Kind::Memory, twice, [true, false, false]);
        check(Kind::Memory, r#"{"expires_at": "2026-05-01"}"#, [false; 3]);
        check(Kind::Memory, r#"{"expires_at": 90}"#, [false; 3]);
        check(
            Kind::Memory,
            r#"{"expires_at": null}"#,
            [true, false, false],
        );
        check(
            Kind::Procedure,
            r#"{"expires_at": "2026-05-01"}"#,
            [true, true, false],
        );
    }

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
