//! Memories with a database as the primary store: the files are a copy that serves all reads.
//!
//! Invariants:
//! - A write reaches the database before a file, so that an acknowledged write is never lost. The
//!   next reader fetches changes that a crash kept out of the files.
//! - The writers of all copies take turns. While a [`Writer`](super::Writer) exists, the database
//!   holds no change that it has not read.
//! - Without the database there are no writes.
//!
//! Logs (`audit`, `changes`, `hints`, the execution log) belong to the copy that wrote them.
//!
//! A file in the directory names the location, not an environment variable. A caller without the
//! variable would write only to this copy, and the other copies would never see the change.
//!
//! A derived file stores the last change that the copy has. If it is lost, changes are fetched again without
//! harm.
//!
//! Deliberately absent: the database itself, which implements [`Primary`].

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use memctl_files::Directory;
use serde::{Deserialize, Serialize};

use crate::model::Kind;
use crate::store::access::disabled::keep_disabled_users;
use crate::store::files::data::write::apply;
use crate::store::files::directory::{
    self, EXECUTION_LOGS, JOURNAL, PRIMARY, RECOVERED, REPLICA, TOMBSTONES,
};
use crate::store::files::{log, tombstones};
use crate::store::{
    DERIVED, DataFile, Error, Identity, Lock, Puller, SMALL_FILE, Scoped, Tombstone, atomic,
};

/// A database that is the primary store of a memory.
pub trait Primary: fmt::Debug + Send + Sync {
    /// Returns a number that grows with every write.
    fn clock(&self) -> Result<i64, Error>;

    /// Passes the changes after the given number to `take`, oldest first, in batches.
    fn changes(
        &self,
        after: i64,
        take: &mut dyn FnMut(Vec<PrimaryChange>) -> Result<(), Error>,
    ) -> Result<Fetched, Error>;

    /// Takes in the rows that other programs have put beside the memory since the last time.
    fn take_in_others(&self, puller: &Puller) -> Result<(), Error>;

    /// Disables the memory for a user, or enables it again.
    fn switch_user(&self, user: &str, is_disabled: bool) -> Result<(), Error>;

    /// Adds lines of the log of agents. Lines that are there already stay as they are.
    fn put_logs(&self, lines: &[String]) -> Result<(), Error>;

    /// Returns the newest log lines of these sessions or of all, and of this user or of all, newest first, from all
    /// copies of the memory.
    fn newest_logs(
        &self,
        sessions: Option<&[String]>,
        user: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, Error>;

    /// Deletes the lines of the log of agents of a user; without a user those of the memory.
    fn delete_logs(&self, user: Option<&str>) -> Result<(), Error>;

    /// Adds audit events. Those that are there already stay as they are.
    fn put_audit(&self, lines: &[SharedLine]) -> Result<(), Error>;

    /// Passes the audit events of all copies of the memory to `take`, oldest first.
    fn audit(&self, take: &mut dyn FnMut(SharedLine)) -> Result<(), Error>;

    /// Prepares a turn, for example with a login, so that this does not happen under the lock of
    /// the files.
    fn prepare(&self) -> Result<(), Error>;

    /// Waits for exclusive write access, up to the limit.
    fn turn(&self, limit: Duration) -> Result<Box<dyn Turn>, Error>;
}

/// Exclusive write access to a database. Every call is a transaction of its own, and fails if there
/// are changes after the number `after`. Each returns the new progress.
pub trait Turn: fmt::Debug + Send {
    /// Adds or changes records, each given with its JSON text.
    fn put(&mut self, after: i64, kind: Kind, records: &[(&str, &str)]) -> Result<Reached, Error>;

    /// Removes records, each given with its tombstone line.
    fn bury(
        &mut self,
        after: i64,
        kind: Kind,
        removed: &[(String, String)],
    ) -> Result<Reached, Error>;
}

/// A line of the audit log. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedLine {
    /// Id, unique within a memory.
    pub id: String,
    /// JSON text.
    pub text: String,
}

/// State of a database after all changes were passed on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Number of the last change.
    pub seq: i64,
    /// Users for whom the memory is disabled.
    pub disabled_users: Vec<String>,
}

/// Progress of a database, or of a copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// Number that grows with every write; zero if rows of other programs have yet to be taken in.
    pub clock: i64,
    /// Number of the last change.
    pub seq: i64,
}

/// State of a record in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimaryChange {
    /// Kind of the record.
    pub kind: Kind,
    /// Id of the record.
    pub id: String,
    /// JSON text; `None` if the record is removed.
    pub text: Option<String>,
    /// Tombstone line of a removed record.
    pub tombstone: Option<String>,
    /// Time of the removal: RFC 3339, UTC.
    pub gone_at: Option<String>,
}

/// Identity of a primary database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrimaryName {
    /// Unique identifier of the database and of the user in it.
    pub database: String,
    /// Host and name of the database, for display.
    pub shown: String,
    /// Name of the memory in the database.
    pub origin: String,
}

/// Records on their way to the database.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sent<'a> {
    /// New or changed records: ids and JSON texts.
    Records(&'a [(&'a str, &'a str)]),
    /// Removed records: ids and tombstone lines.
    Removals(&'a [(String, String)]),
}

/// A writer's turn at the database.
#[derive(Debug)]
pub(crate) struct AtPrimary {
    turn: Box<dyn Turn>,
    /// Progress of the database.
    there: Reached,
    /// `true` if a file write has failed, so that the change must be fetched again.
    is_behind: bool,
    /// `true` while the database has a change that is not in a file yet.
    is_ahead: bool,
}

impl AtPrimary {
    /// Takes the turn, and fetches earlier changes of other writers. Returns `None` if the files
    /// are the primary store.
    pub(crate) fn begin(store: &Scoped, lock: &Lock) -> Result<Option<Self>, Error> {
        let Some(primary) = store.connected_primary()? else {
            return Ok(None);
        };
        let turn = primary.turn(store.lock_limit())?;
        let there = fetch(store, lock, primary.as_ref())?;
        Ok(Some(Self {
            turn,
            there,
            is_behind: false,
            is_ahead: false,
        }))
    }

    /// Sends records.
    pub(crate) fn send(&mut self, kind: Kind, records: &Sent<'_>) -> Result<(), Error> {
        let after = self.there.seq;
        let done = match records {
            Sent::Records([]) | Sent::Removals([]) => return Ok(()),
            Sent::Records(records) => self.turn.put(after, kind, records),
            Sent::Removals(removed) => self.turn.bury(after, kind, removed),
        };
        self.there = done?;
        self.is_ahead = true;
        Ok(())
    }

    /// Records that a file has what was sent last, or has failed to take it.
    pub(crate) fn followed(&mut self, is_written: bool) {
        self.is_behind |= !is_written;
        self.is_ahead = false;
    }

    /// Saves the progress of the files.
    pub(crate) fn keep_reached(&self, directory: &Directory) {
        let reached_here = reached(directory).unwrap_or_default();
        if !self.is_behind && !self.is_ahead && self.there != reached_here {
            keep(directory, self.there);
        }
    }
}

impl Scoped {
    /// Returns the primary database; `None` if the files are the primary store.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read: the location is then unknown, and writes are forbidden.
    pub fn primary_name(&self) -> Result<Option<PrimaryName>, Error> {
        let path = self.directory().join(PRIMARY);
        match self.directory().read(PRIMARY, SMALL_FILE) {
            Ok(Some(bytes)) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| Error::io("read", &path)(error.into())),
            Ok(None) => Ok(None),
            Err(error) => Err(Error::io("read", &path)(error)),
        }
    }

    /// Sets the primary database.
    #[must_use]
    pub fn backed_by(mut self, primary: Arc<dyn Primary>) -> Self {
        self.primary = Some(primary);
        self
    }

    /// Returns the primary database, if the store has one.
    pub fn primary(&self) -> Option<&Arc<dyn Primary>> {
        self.primary.as_ref()
    }

    /// Returns the primary database; `None` if the files are the primary store.
    ///
    /// # Errors
    ///
    /// [`Error::NoPrimary`] without a connection to it.
    pub(crate) fn connected_primary(&self) -> Result<Option<&Arc<dyn Primary>>, Error> {
        if self.is_apart()? {
            return Err(Error::NoPrimary(self.directory().to_path_buf()));
        }
        Ok(self.primary())
    }

    /// Returns `true` if the primary store is a database that this store has no connection to.
    pub fn is_apart(&self) -> Result<bool, Error> {
        Ok(self.primary.is_none() && self.primary_name()?.is_some())
    }

    /// Makes the files the primary store again, as a workspace with a new identity. Fetches nothing
    /// first, and leaves the database unchanged.
    pub fn leave_primary(&self, random: &mut dyn FnMut() -> String) -> Result<(), Error> {
        if !self.sees_all() {
            return Err(Error::OutOfScope("the whole memory".to_owned()));
        }
        let lock = Lock::take(self.directory(), self.lock_limit())?;
        if let Some(old) = directory::identity(self.directory()) {
            let identity = Identity {
                origin: random(),
                ..old
            };
            directory::name(&lock, &identity)?;
        }
        atomic::remove(self.directory(), REPLICA)?;
        forget(self.directory())?;
        atomic::remove(self.directory(), PRIMARY)
    }
}

/// Name of the progress file, among the derived files.
const REACHED: &str = "primary.json";

impl Scoped {
    /// Fetches changes of other writers, so that later reads include everything written before this
    /// call. Does nothing if the files are the primary store. Fails if the memory is disabled.
    pub fn catch_up(&self) -> Result<(), Error> {
        self.must_be_enabled_for_all()?;
        self.fetch_changes()?;
        // The list of users may have come with the changes.
        self.must_be_enabled()
    }

    fn fetch_changes(&self) -> Result<(), Error> {
        let Some(primary) = self.connected_primary()? else {
            return Ok(());
        };
        let clock = primary.clock()?;
        let before = reached(self.directory());
        if before.is_some_and(|before| before.clock == clock) {
            return Ok(());
        }
        let lock = Lock::take(self.directory(), self.lock_limit())?;
        // Another thread or process may have brought the changes, or made them. Nothing is asked
        // then, because writers wait for the lock.
        let now = reached(self.directory());
        if now != before && now.is_some_and(|now| now.clock >= clock) {
            return Ok(());
        }
        fetch(self, &lock, primary.as_ref()).map(drop)
    }
}

/// Returns the progress of the files; `None` if unknown.
fn reached(directory: &Directory) -> Option<Reached> {
    atomic::read_json(&directory.below(DERIVED), REACHED)
}

/// Saves the progress of the files. Ignores failure, because changes can be fetched again.
fn keep(directory: &Directory, reached: Reached) {
    let bytes = serde_json::to_vec(&reached).unwrap_or_default();
    directory::keep_derived(directory, REACHED, &[&bytes]);
}

/// Brings the files up to date with the database.
fn fetch(store: &Scoped, lock: &Lock, primary: &dyn Primary) -> Result<Reached, Error> {
    let clock = primary.clock()?;
    let before = reached(store.directory()).unwrap_or_default();
    if before.clock == clock && clock > 0 {
        return Ok(before);
    }
    // A lower clock means that the database was restored to an earlier state.
    let after = if clock < before.clock {
        set_aside(store.directory(), before)?;
        0
    } else {
        before.seq
    };
    let store = store.held();
    let mut take = |batch: Vec<PrimaryChange>| take_over(&store, lock, &batch);
    let fetched = primary.changes(after, &mut take)?;
    keep_disabled_users(lock, &fetched.disabled_users)?;
    let is_complete = match store.puller_of_copy()? {
        Some(puller) => primary.take_in_others(&puller).map(|()| true)?,
        None => false,
    };
    let now = Reached {
        clock: if is_complete { clock } else { 0 },
        seq: fetched.seq,
    };
    keep(store.directory(), now);
    Ok(now)
}

/// Deletes the file of a kind and fetches everything again.
pub(crate) fn fetch_anew(store: &Scoped, lock: &Lock, kind: Kind) -> Result<(), Error> {
    let Some(primary) = store.connected_primary()? else {
        return Ok(());
    };
    // Check first: without the database, the damaged file is better than none.
    primary.clock()?;
    forget(store.directory())?;
    for file in DataFile::of(kind) {
        atomic::remove(store.directory(), file.name())?;
    }
    fetch(store, lock, primary.as_ref()).map(drop)
}

/// Moves the files aside before a copy is rebuilt, so that nothing is lost.
fn set_aside(directory: &Directory, before: Reached) -> Result<(), Error> {
    let aside = directory.below(RECOVERED);
    atomic::create_dir(&aside)?;
    let files = DataFile::ALL.into_iter().map(DataFile::name);
    for name in files.chain(tombstones::FILES) {
        let to = aside.join(format!("{name}.until-{}.txt", before.seq));
        let moved = directory.rename(name, &to);
        moved.map_err(Error::io("move", &directory.join(name)))?;
    }
    directory.sync().map_err(Error::io("write", directory))
}

/// Writes a batch of changes to the files.
fn take_over(store: &Scoped, lock: &Lock, batch: &[PrimaryChange]) -> Result<(), Error> {
    for kind in Kind::ALL {
        let of_kind = || batch.iter().filter(|change| change.kind == kind);
        let changes = of_kind().map(|change| (change.id.as_str(), change.text.as_deref()));
        let changes: Vec<_> = changes.collect();
        if changes.is_empty() {
            continue;
        }
        let removed = tombstones::of_kind(lock.directory(), kind)?;
        let removed: HashSet<String> = removed.map(|tombstone| tombstone.id).collect();
        // Tombstones come first, as in every removal.
        let mut tombstones = Vec::new();
        for change in of_kind().filter(|c| c.text.is_none() && !removed.contains(&c.id)) {
            tombstones.push(tombstone(kind, change)?);
        }
        log::append(lock.directory(), TOMBSTONES, &tombstones, log::Sync::Wait)?;
        // Each record goes to its own file, and leaves the other.
        for file in DataFile::of(kind) {
            let is_here = |text: &&str| DataFile::for_record(kind, text.as_bytes()) == file;
            let here = changes.iter().map(|(id, text)| (*id, text.filter(is_here)));
            apply(store.file(file), lock, &here.collect::<Vec<_>>())?;
        }
        forget_traces(lock, &tombstones)?;
        let back: Vec<&str> = of_kind()
            .filter(|change| change.text.is_some() && removed.contains(&change.id))
            .map(|change| change.id.as_str())
            .collect();
        tombstones::lift(lock, kind, &back, "")?;
    }
    Ok(())
}

/// Removes the lines of the journal and of the log of agents that name a record which is removed for
/// good. A tombstone without a digest says so: no undo brings the record back, and no copy may keep
/// its text.
fn forget_traces(lock: &Lock, tombstones: &[String]) -> Result<(), Error> {
    let tombstones = tombstones
        .iter()
        .filter_map(|line| serde_json::from_str::<Tombstone>(line).ok());
    let permanent = tombstones.filter(|tombstone| tombstone.digest.is_empty());
    let names: Vec<String> = permanent
        .map(|tombstone| format!("\"{}\"", tombstone.id))
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let names_none = |line: &[u8]| {
        let mut names = names.iter();
        names.all(|name| memchr::memmem::find(line, name.as_bytes()).is_none())
    };
    for file in [JOURNAL, EXECUTION_LOGS] {
        log::retain(lock, file, &names_none)?;
    }
    Ok(())
}

/// Returns the tombstone line of a removed record.
fn tombstone(kind: Kind, change: &PrimaryChange) -> Result<String, Error> {
    let given = change.tombstone.as_deref();
    let given = given.and_then(|line| serde_json::from_str::<Tombstone>(line).ok());
    let given = given.filter(|one| one.kind == kind && one.id == change.id && !one.lifted);
    let at = change.gone_at.as_deref().unwrap_or_default();
    let tombstone = given.unwrap_or_else(|| Tombstone::new(kind, &change.id, at));
    Ok(serde_json::to_string(&tombstone)?)
}

/// Forgets the progress of the files.
pub(crate) fn forget(directory: &Directory) -> Result<(), Error> {
    atomic::remove(&directory.below(DERIVED), REACHED)
}
