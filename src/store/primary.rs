//! Memories that lie in a database: the files here are a copy, which every read is made from.
//!
//! Invariants:
//! - A write is in the database before it is in a file, so that whoever was told of it can rely on it, and
//!   what a crash keeps out of the files is fetched by whoever comes next.
//! - The writers of all copies take turns: while a [`Writer`] lives, nothing changes in the
//!   database that it has not read.
//! - Without the database nothing is written.
//!
//! Logs and accounts (`audit`, `changes`, `hints`, what agents did) belong to the copy that wrote them.
//!
//! Deliberately absent: the database. It stands behind [`Primary`].

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::Kind;

use super::directory::{DERIVED, Identity, Lock};
use super::error::Error;
use super::json_write::RECOVERED;
use super::pulled::PulledChange;
use super::replica::REPLICA;
use super::scoped::Scoped;
use super::tombstones::{self, Tombstone};
use super::writer::Writer;
use super::{apply, atomic, directory, json_text};

/// The file that says where the memory lies.
pub(super) const PRIMARY: &str = "primary.json";
/// How far it has been fetched, among the derived files: what is lost is fetched again.
const REACHED: &str = "primary.json";

/// What goes wrong in a database, in its own words.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;

/// A database that a memory lies in.
pub trait Primary: fmt::Debug + Send + Sync {
    /// A number that grows with every write.
    fn clock(&self) -> Result<i64, Fault>;

    /// Hands over what has changed since the change with this number, oldest first, in batches. Answers the
    /// number of the last one.
    fn changes(
        &self,
        after: i64,
        take: &mut dyn FnMut(Vec<PrimaryChange>) -> Result<(), Error>,
    ) -> Result<i64, Error>;

    /// Does beforehand what a turn needs, so that nobody waits for a login while somebody has the lock of the
    /// files.
    fn prepare(&self) -> Result<(), Fault>;

    /// Waits until nobody else writes, at most so long.
    fn turn(&self, limit: Duration) -> Result<Box<dyn Turn>, Fault>;
}

/// The right to write to a database, for as long as it lives. Every call is a transaction of its own, and
/// refuses where something has been written after the change with the number `after`. Each answers how far
/// it has come.
pub trait Turn: fmt::Debug + Send {
    /// Adds records, or changes them.
    fn put(&mut self, after: i64, kind: Kind, rows: &[PrimaryRow]) -> Result<Reached, Fault>;

    /// Removes records; of each is kept what is given with its id.
    fn bury(&mut self, after: i64, kind: Kind, gone: &[(String, String)])
    -> Result<Reached, Fault>;
}

/// How far a database has come, and a copy with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// The number that grows with every write.
    pub clock: i64,
    /// The number of the last change.
    pub seq: i64,
}

/// A record on its way to the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimaryRow {
    /// Its id.
    pub id: String,
    /// Its skill; empty where it has none.
    pub skill: String,
    /// Its text.
    pub text: String,
}

impl PrimaryRow {
    /// A record with this text.
    pub(super) fn new(id: &str, text: &str) -> Self {
        let skill = json_text::string_field(text.as_bytes(), "skill");
        Self {
            id: id.to_owned(),
            skill: skill.unwrap_or_default().into_owned(),
            text: text.to_owned(),
        }
    }
}

/// What a record in the database is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimaryChange {
    /// Its kind.
    pub kind: Kind,
    /// Its id.
    pub id: String,
    /// Its text; `None` where it is gone.
    pub text: Option<String>,
    /// What is kept of it where it is gone.
    pub tombstone: Option<String>,
    /// When it went: RFC 3339, UTC.
    pub gone_at: Option<String>,
}

/// Where a memory lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrimaryName {
    /// What tells the database, and the user in it, from every other.
    pub database: String,
    /// Host and name of the database, to be shown.
    pub shown: String,
    /// The name of the memory there.
    pub origin: String,
}

impl Scoped {
    /// Where the memory lies, if that is a database.
    ///
    /// # Errors
    ///
    /// That the file cannot be read: then nobody knows, and nothing may be written.
    pub fn primary_name(&self) -> Result<Option<PrimaryName>, Error> {
        let path = self.directory().join(PRIMARY);
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| Error::io("read", &path)(error.into())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", &path)(error)),
        }
    }

    /// The same, with the database that the memory lies in.
    #[must_use]
    pub fn backed_by(mut self, primary: Arc<dyn Primary>) -> Self {
        self.primary = Some(primary);
        self
    }

    /// The database that the memory lies in, if this store has one.
    pub fn primary(&self) -> Option<&Arc<dyn Primary>> {
        self.primary.as_ref()
    }

    /// Whether the memory lies in a database that this store has no way to.
    pub fn is_apart(&self) -> Result<bool, Error> {
        Ok(self.primary.is_none() && self.primary_name()?.is_some())
    }

    /// Fetches what others have written, so that what is read next holds all that was there before this
    /// call. Does nothing where the memory lies in its files. Answers whether there was something.
    pub fn catch_up(&self) -> Result<bool, Error> {
        let Some(primary) = &self.primary else {
            return match self.primary_name()? {
                Some(_) => Err(Error::NoPrimary {
                    path: self.directory().to_owned(),
                }),
                None => Ok(false),
            };
        };
        if !self.regardless {
            self.must_be_enabled()?;
        }
        let clock = primary.clock().map_err(Error::Primary)?;
        if reached(self.directory()).is_some_and(|reached| reached.clock == clock) {
            return Ok(false);
        }
        let lock = Lock::take(self.directory(), self.lock_limit())?;
        fetch(self, &lock, primary.as_ref())?;
        Ok(true)
    }
}

/// How far the files are; `None` where nobody knows.
fn reached(directory: &Path) -> Option<Reached> {
    let bytes = std::fs::read(directory.join(DERIVED).join(REACHED)).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Remembers how far the files are. Failure is no error: what is there is fetched again.
fn keep(directory: &Path, reached: Reached) {
    let derived = directory.join(DERIVED);
    let Ok(bytes) = serde_json::to_vec(&reached) else {
        return;
    };
    if atomic::create_dir(&derived).is_ok() {
        drop(atomic::replace_derived(&derived.join(REACHED), &[&bytes]));
    }
}

/// Brings the files to what is in the database.
fn fetch(store: &Scoped, lock: &Lock, primary: &dyn Primary) -> Result<Reached, Error> {
    let clock = primary.clock().map_err(Error::Primary)?;
    let known = reached(store.directory()).unwrap_or_default();
    if known.clock == clock && clock > 0 {
        return Ok(known);
    }
    // A clock that went back is that of a database which was put back to an earlier state.
    let after = if clock < known.clock {
        set_aside(store.directory(), known)?;
        0
    } else {
        known.seq
    };
    let store = store.held();
    let mut take = |batch: Vec<PrimaryChange>| take_over(&store, lock, &batch);
    let seq = primary.changes(after, &mut take)?;
    let now = Reached { clock, seq };
    keep(store.directory(), now);
    Ok(now)
}

/// Fetches everything again, and the file of a kind as if it had never been there.
pub(super) fn fetch_anew(store: &Scoped, lock: &Lock, kind: Kind) -> Result<(), Error> {
    let Some(primary) = store.primary() else {
        let path = store.directory().to_owned();
        return Err(Error::NoPrimary { path });
    };
    // Before anything is removed: without the database the damaged file is better than none.
    primary.clock().map_err(Error::Primary)?;
    atomic::remove(&store.directory().join(DERIVED).join(REACHED))?;
    atomic::remove(&store.directory().join(kind.file()))?;
    fetch(store, lock, primary.as_ref()).map(drop)
}

/// Puts the files aside, for a copy that is made anew: nothing of it is thrown away.
fn set_aside(directory: &Path, known: Reached) -> Result<(), Error> {
    let aside = directory.join(RECOVERED);
    atomic::create_dir(&aside)?;
    let files = Kind::ALL.into_iter().map(Kind::file);
    for name in files.chain([tombstones::FILE]) {
        let path = directory.join(name);
        let to = aside.join(format!("{name}.until-{}.txt", known.seq));
        atomic::set_aside(&path, &to)?;
    }
    atomic::sync(directory)
}

/// Writes a batch of changes to the files.
fn take_over(store: &Scoped, lock: &Lock, batch: &[PrimaryChange]) -> Result<(), Error> {
    for kind in Kind::ALL {
        let of_kind = || batch.iter().filter(|change| change.kind == kind);
        let changes: Vec<PulledChange> = of_kind()
            .map(|change| PulledChange {
                id: change.id.clone(),
                text: change.text.clone(),
            })
            .collect();
        if changes.is_empty() {
            continue;
        }
        let buried = tombstones::ids(lock.directory(), kind)?;
        // The tombstones come first, as in every removal.
        let mut stones = Vec::new();
        for change in of_kind().filter(|c| c.text.is_none() && !buried.contains(&c.id)) {
            stones.push(stone(kind, change)?);
        }
        tombstones::bury(lock, &stones)?;
        apply::apply(store, lock, kind, &changes)?;
        let back: Vec<&str> = of_kind()
            .filter(|change| change.text.is_some() && buried.contains(&change.id))
            .map(|change| change.id.as_str())
            .collect();
        tombstones::lift(lock, kind, &back, "")?;
    }
    Ok(())
}

/// The line that stands for a removed record among the tombstones.
fn stone(kind: Kind, change: &PrimaryChange) -> Result<String, Error> {
    let given = change.tombstone.as_deref();
    let given = given.filter(|line| {
        let stone = serde_json::from_str::<Tombstone>(line);
        stone.is_ok_and(|stone| stone.kind == kind && stone.id == change.id && !stone.lifted)
    });
    if let Some(line) = given {
        return Ok(json_text::compact(line));
    }
    let at = change.gone_at.as_deref().unwrap_or_default();
    tombstones::line_of_id(kind, &change.id, at)
}

/// A writer's turn at the database.
#[derive(Debug)]
pub(super) struct AtPrimary {
    turn: Box<dyn Turn>,
    /// How far the database is.
    there: Reached,
    /// Whether a file has failed to follow: then what is there has to be fetched.
    is_behind: bool,
}

impl AtPrimary {
    /// Takes the turn, and fetches what others have written before it; `None` where the memory lies in its
    /// files.
    pub(super) fn begin(
        store: &Scoped,
        lock: &Lock,
        limit: Duration,
    ) -> Result<Option<Self>, Error> {
        let Some(primary) = store.primary() else {
            if store.primary_name()?.is_some() {
                let path = store.directory().to_owned();
                return Err(Error::NoPrimary { path });
            }
            return Ok(None);
        };
        let turn = primary.turn(limit).map_err(Error::Primary)?;
        let there = fetch(store, lock, primary.as_ref())?;
        Ok(Some(Self {
            turn,
            there,
            is_behind: false,
        }))
    }
}

impl AtPrimary {
    /// Adds records, or changes them.
    pub(super) fn put(&mut self, kind: Kind, rows: &[(&str, &str)]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let rows: Vec<PrimaryRow> = rows
            .iter()
            .map(|(id, text)| PrimaryRow::new(id, text))
            .collect();
        let done = self.turn.put(self.there.seq, kind, &rows);
        self.there = done.map_err(Error::Primary)?;
        Ok(())
    }

    /// Removes records, each with the line that is left of it.
    fn bury(&mut self, kind: Kind, gone: &[(String, String)]) -> Result<(), Error> {
        if gone.is_empty() {
            return Ok(());
        }
        let done = self.turn.bury(self.there.seq, kind, gone);
        self.there = done.map_err(Error::Primary)?;
        Ok(())
    }
}

/// The right to say that a memory lies in a database from now on. While it lives, nothing is written to the
/// files.
#[derive(Debug)]
pub struct Moving(Writer);

impl Scoped {
    /// Waits for the lock, so that a memory can be taken to a database as it is. `random` makes the identity
    /// of a workspace that has none.
    pub fn begin_to_move(&self, random: &mut dyn FnMut() -> String) -> Result<Moving, Error> {
        Ok(Moving(self.write(random)?))
    }
}

impl Moving {
    /// What is to be taken there.
    pub fn store(&self) -> &Scoped {
        self.0.store()
    }

    /// Who the workspace is.
    pub fn identity(&self) -> &Identity {
        self.0.identity()
    }

    /// Says that the memory lies in a database from now on, under the identity that it has there.
    pub fn finish(
        self,
        name: &PrimaryName,
        identity: &Identity,
        replica: &str,
    ) -> Result<(), Error> {
        let lock = self.0.lock();
        let directory = lock.directory();
        directory::name(lock, identity)?;
        atomic::replace(&directory.join(REPLICA), format!("{replica}\n").as_bytes())?;
        atomic::remove(&directory.join(DERIVED).join(REACHED))?;
        let mut text = serde_json::to_vec_pretty(name)?;
        text.push(b'\n');
        // Last: from here on nothing is written without the database.
        atomic::replace(&directory.join(PRIMARY), &text)
    }
}

impl Writer {
    /// Records on their way to a file: they go to the database before, where there is one.
    pub(super) fn send(&mut self, kind: Kind, rows: &[(&str, &str)]) -> Result<(), Error> {
        match self.at_primary() {
            Some(at) => at.put(kind, rows),
            None => self.must_lie_here(),
        }
    }

    /// Removals on their way to a file: each with the line that is left of it.
    pub(super) fn send_removals(
        &mut self,
        kind: Kind,
        gone: &[(String, String)],
    ) -> Result<(), Error> {
        match self.at_primary() {
            Some(at) => at.bury(kind, gone),
            None => self.must_lie_here(),
        }
    }

    /// Fails where this writer is for logs alone, and records lie in a database.
    fn must_lie_here(&self) -> Result<(), Error> {
        if self.is_for_logs() && self.store().primary_name()?.is_some() {
            let path = self.store().directory().to_owned();
            return Err(Error::NoPrimary { path });
        }
        Ok(())
    }

    /// What came of writing to a file what the database has already.
    pub(super) fn followed<T>(&mut self, done: Result<T, Error>) -> Result<T, Error> {
        if done.is_err()
            && let Some(at) = self.at_primary()
        {
            at.is_behind = true;
        }
        done
    }

    /// Remembers how far the files are, at the end.
    pub(super) fn keep_reached(&mut self) {
        let directory = self.lock().directory().to_owned();
        let known = reached(&directory).unwrap_or_default();
        if let Some(at) = self.at_primary()
            && !at.is_behind
            && at.there != known
        {
            keep(&directory, at.there);
        }
    }
}

impl Scoped {
    /// Says that the memory lies in its files again: a workspace of its own, with another name. Nothing is
    /// fetched before, and nothing changes in the database.
    pub fn leave_primary(&self, random: &mut dyn FnMut() -> String) -> Result<(), Error> {
        if !self.sees_all() {
            let what = "the whole memory".to_owned();
            return Err(Error::OutOfScope { what });
        }
        let lock = Lock::take(self.directory(), self.lock_limit())?;
        if let Some(old) = directory::identity(self.directory()) {
            let origin = random();
            let tombstone_key = old.tombstone_key;
            let identity = Identity {
                origin,
                tombstone_key,
            };
            directory::name(&lock, &identity)?;
        }
        atomic::remove(&self.directory().join(REPLICA))?;
        atomic::remove(&self.directory().join(DERIVED).join(REACHED))?;
        atomic::remove(&self.directory().join(PRIMARY))
    }
}
