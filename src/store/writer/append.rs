//! Adding of records, with ids from the store.
//!
//! Additions of one kind are written together: one transaction of the database, one append to the
//! file, one wait for the disk. Each has its own caller, so that the records of several requests can
//! share a write.
//!
//! Free ids of a kind, for records that come without one.
//!
//! Group commit: requests of one process that add records share a write.
//!
//! A request that finds no leader becomes the leader. It opens the writer, adds all that waits, and
//! answers. Requests that arrive meanwhile form the next group, so a group is as large as the disk
//! or the database is slow, and a lone request never waits.
//!
//! Invariant: an answer is given after the write, as for a writer of one's own. If a write fails,
//! its whole group fails.
//!
//! Deliberately absent: edits and removals. They depend on what they read, and take the lock alone.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use memctl_files::json;

use crate::model::{self, IdShape, Kind, Record, Reflexion, Trust};
use crate::store::primary::Sent;
use crate::store::trust::acts;
use crate::store::writer::transfer::{Compared, SkipCondition};
use crate::store::{
    AuditAction, DataFile, Entry, Error, Problem, Row, Scoped, Snapshot, Step, Writer, redact,
    undo_journal,
};

/// Record to add, as text, with its caller and what became of it.
pub(crate) struct Addition {
    /// Store of the caller, with their access and audit context.
    store: Scoped,
    pub(crate) kind: Kind,
    /// File that it is added to.
    file: DataFile,
    /// Id; empty until one is assigned.
    id: String,
    /// `true` if the caller has chosen the id.
    is_numbered: bool,
    user_id: Option<String>,
    /// `true` if the record counts as this user's own word.
    is_own_word: bool,
    /// JSON text: as it was given, and once it has an id as it is stored.
    text: String,
    unless: Option<SkipCondition>,
    now: DateTime<Utc>,
    state: State,
    /// Kinds of secrets redacted from it.
    pub(crate) left_out: Vec<&'static str>,
}

/// Progress of an addition.
#[derive(Debug, Default)]
enum State {
    #[default]
    Waiting,
    /// The text was written and then not found, because another program saved the file.
    Unsure,
    Refused(Error),
    Repeated,
}

impl Addition {
    /// Checks that the caller of `store` may add the record.
    pub(crate) fn of<R: Record>(
        store: Scoped,
        record: &R,
        now: DateTime<Utc>,
        unless: Option<SkipCondition>,
    ) -> Result<Self, Error> {
        let kind = R::KIND;
        let field =
            |text: &str, name| json::string_field(text.as_bytes(), name).map(Cow::into_owned);
        let outside = |named: Option<String>| {
            Error::OutOfScope(named.unwrap_or_else(|| kind.name().to_owned()))
        };
        let mut text = serde_json::to_string(record)?;
        let skill = field(&text, "skill").filter(|skill| !skill.is_empty());
        if !store.access().covers_skill(kind, skill.as_deref()) {
            return Err(outside(skill));
        }
        // A record without a user is the caller's.
        if kind.has_user()
            && let Some(own) = store.viewer().user_id()
            && field(&text, "user_id").is_none()
        {
            let own = serde_json::to_string(own)?;
            let named: R = serde_json::from_str(&json::with_fields(&text, &[("user_id", own)], 6))?;
            text = serde_json::to_string(&named)?;
        }
        let redacted = redact(&text);
        let user_id = field(&redacted.text, "user_id").filter(|_| kind.has_user());
        if kind.has_user() && !store.viewer().sees(user_id.as_deref()) {
            return Err(outside(user_id));
        }
        let id = field(&redacted.text, kind.id_field()).unwrap_or_default();
        Ok(Self {
            kind,
            file: DataFile::for_record(kind, text.as_bytes()),
            is_numbered: !id.is_empty(),
            id,
            user_id,
            is_own_word: record.trust() != Trust::Observed,
            text: json::pretty(&redacted.text, 2),
            left_out: redacted.found,
            store,
            unless,
            now,
            state: State::default(),
        })
    }

    /// Returns the record as stored; `None` if an entry said the same already.
    pub(crate) fn stored<R: Record>(self) -> Result<Option<R>, Error> {
        match self.state {
            State::Refused(error) => Err(error),
            State::Repeated => Ok(None),
            State::Waiting | State::Unsure => Ok(Some(serde_json::from_str(&self.text)?)),
        }
    }

    fn number(&mut self, id: String) {
        let field = (self.kind.id_field(), format!("\"{id}\""));
        self.text = json::with_fields(&self.text, &[field], 6);
        self.id = id;
    }

    /// Returns the entry, if it counts as this user's own word.
    fn own_word(&self) -> Option<Entry> {
        self.is_own_word.then(|| Entry {
            kind: self.kind,
            id: self.id.clone(),
            text: self.text.clone().into_bytes(),
            offset: 0,
        })
    }

    /// Returns `true` if the file already holds the record, in any layout.
    fn is_there(&self, snapshot: &Snapshot) -> Result<bool, Error> {
        let Some((_, entry)) = self.store.find_in(snapshot, &self.id)? else {
            return Ok(false);
        };
        let value = serde_json::from_slice::<serde_json::Value>;
        let text = self.text.as_bytes();
        Ok(match (value(&entry.text), value(text)) {
            (Ok(there), Ok(own)) => there == own,
            _ => entry.text == text,
        })
    }

    /// Returns `true` if an entry that the caller has not seen, or an earlier addition, says the same.
    fn is_repeated(&self, snapshot: &Snapshot, earlier: &[String]) -> Result<bool, Error> {
        let Some(unless) = &self.unless else {
            return Ok(false);
        };
        let mut found = earlier.iter().any(|text| (unless.repeats)(text.as_bytes()));
        let now = Compared::of(&snapshot.table.header);
        let from = unless.compared.until(now).unwrap_or(0);
        for row in snapshot.rows().rev().take_while(|row| row.at >= from) {
            found = found || (unless.repeats)(&snapshot.read(&row)?);
        }
        Ok(found)
    }
}

impl Writer {
    /// Adds a record and returns it as stored, with its id. A record with an id keeps it; fails if
    /// it is taken. On return the record is on disk.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn append<R: Record>(&mut self, record: R, now: DateTime<Utc>) -> Result<R, Error> {
        let mut new = Addition::of(self.store.clone(), &record, now, None)?;
        self.append_each(R::KIND, &mut [&mut new])?;
        let left_out = std::mem::take(&mut new.left_out);
        let stored = new.stored()?.ok_or(Error::Abandoned)?;
        self.left_out.extend(left_out);
        Ok(stored)
    }

    /// Adds records of one kind in one write. What happened to each is in its state. An error means
    /// that none was added, or that it is not known.
    pub(crate) fn append_each(
        &mut self,
        kind: Kind,
        all: &mut [&mut Addition],
    ) -> Result<(), Error> {
        let mut own = Vec::new();
        for file in DataFile::of(kind) {
            if all.iter().any(|new| new.file == file) {
                self.begin_local(file)?;
                self.redone(file, |writer, snapshot| {
                    writer.append_to(snapshot, kind, all, &mut own)
                })?;
            }
        }
        match &self.key {
            Some(key) if acts(kind) => self.store.approvals().approve_with(key, &own),
            _ => Ok(()),
        }
    }

    /// Appends to the file as it was read. Adds what counts as this user's own word to `own`.
    fn append_to(
        &mut self,
        snapshot: &Snapshot,
        kind: Kind,
        all: &mut [&mut Addition],
        own: &mut Vec<Entry>,
    ) -> Result<(), Error> {
        let beside = self.highest_beside(snapshot.of)?;
        let word = self.word_for(snapshot.of).map(str::to_owned);
        let mut ids = FreeIds::of(snapshot, kind, beside, word.as_deref());
        let mut there = Vec::new();
        let mut texts: Vec<String> = Vec::new();
        let mut written: Vec<usize> = Vec::new();
        for (at, new) in all.iter_mut().enumerate() {
            if new.file != snapshot.of {
                continue;
            }
            match new.state {
                // Another program has saved the record that it found here.
                State::Unsure if new.is_there(snapshot)? => {
                    there.push(at);
                    new.state = State::Waiting;
                    own.extend(new.own_word());
                    continue;
                }
                State::Unsure | State::Waiting => new.state = State::Waiting,
                State::Refused(_) | State::Repeated => continue,
            }
            if new.is_repeated(snapshot, &texts)? {
                new.state = State::Repeated;
                continue;
            }
            match self.give_id(&mut ids, new) {
                Ok(()) => {
                    texts.push(new.text.clone());
                    written.push(at);
                }
                Err(error) => new.state = State::Refused(error),
            }
        }
        let new = || written.iter().map(|at| &*all[*at]);
        let steps = there.iter().map(|at| &*all[*at]).chain(new()).map(|new| {
            let id = new.id.clone();
            (new.store.audit_context(), Step::Added { kind, id })
        });
        // As with one caller: a failure only makes the writes impossible to revert.
        drop(undo_journal::append(&self.lock, self.key.as_ref(), steps));
        if written.is_empty() {
            return Ok(());
        }
        // One event for each caller and record.
        let events = new().map(|new| {
            let touched = (new.id.as_str(), new.user_id.as_deref());
            (new.store.audit_context(), touched)
        });
        let log = self.store.audit_log();
        log.append_each(AuditAction::Added, &events.collect::<Vec<_>>())?;
        let rows: Vec<_> = new()
            .map(|new| (new.id.as_str(), new.text.as_str()))
            .collect();
        let words: Vec<Entry> = new().filter_map(Addition::own_word).collect();
        let done = self.forward(kind, &Sent::Records(&rows), |writer| {
            writer.store.file(snapshot.of).append(snapshot, &rows)
        });
        if matches!(done, Err(Error::Changing(..))) {
            for at in written {
                all[at].state = State::Unsure;
            }
        }
        done?;
        own.extend(words);
        Ok(())
    }

    /// Assigns an id, unless there is one that is free.
    fn give_id(&self, ids: &mut FreeIds<'_>, new: &mut Addition) -> Result<(), Error> {
        if !new.is_numbered {
            new.number(ids.next(new.now));
            return Ok(());
        }
        for snapshot in self.store.snapshots(new.kind)? {
            if snapshot.holds(&new.id)? {
                return Err(Error::Exists(new.id.clone()));
            }
        }
        Ok(())
    }

    /// Adds entries unchanged, by `write`: journals and audits them, and sends them to the database
    /// before. Entries without an id are neither journaled nor audited.
    pub(super) fn add_entries(
        &mut self,
        kind: Kind,
        entries: &[(&str, &str)],
        write: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let named = || entries.iter().filter(|(id, _)| !id.is_empty());
        for (id, _) in named() {
            let id = (*id).to_owned();
            self.journal(Step::Added { kind, id });
        }
        let records = named().map(|(id, text)| (*id, text.as_bytes()));
        self.store
            .audit_records(AuditAction::Added, kind, records)?;
        self.forward(kind, &Sent::Records(entries), write)
    }

    /// Returns the random word in the ids of a file; `None` where a counter is enough: in a shared file,
    /// and at a primary database, which sees every id.
    pub(super) fn word_for(&self, file: DataFile) -> Option<&str> {
        let is_alone = file.is_local && self.at_primary.is_none();
        is_alone.then_some(self.word.as_str())
    }

    /// Returns the highest id in the other files of a kind, whose counter it shares.
    pub(super) fn highest_beside(&self, file: DataFile) -> Result<IdShape, Error> {
        let mut highest = IdShape::default();
        for other in DataFile::of(file.kind).filter(|other| *other != file) {
            let snapshot = self.store.file(other).snapshot()?;
            highest = highest.max(snapshot.table.header.highest);
        }
        Ok(highest)
    }

    /// Records that this user vouches for the current text of a record. It then counts as theirs in
    /// every copy of the workspace on this machine. Does nothing for kinds that do not act on an
    /// agent.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn vouch(&mut self, kind: Kind, id: &str) -> Result<(), Error> {
        if !acts(kind) {
            return Ok(());
        }
        match (&self.key, self.store.find(kind, id)?) {
            (Some(key), Some(entry)) => self.store.approvals().approve_with(key, &[entry]),
            _ => Ok(()),
        }
    }

    /// Lets a rule act on calls, with its current patterns.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn let_act(&mut self, id: &str) -> Result<(), Error> {
        match (&self.key, self.store.find(Kind::Reflexion, id)?) {
            (Some(key), Some(entry)) => {
                let rule: Reflexion = entry.parse()?;
                self.store.approvals().let_act(key, &rule)
            }
            _ => Ok(()),
        }
    }
}

/// Free ids of a kind.
pub(super) struct FreeIds<'a> {
    snapshot: &'a Snapshot,
    kind: Kind,
    highest: IdShape,
    /// Highest suffix of each time that an id was assigned for.
    assigned: HashMap<u64, u32>,
    /// Random word of the ids; `None` for ids that clones give, too.
    word: Option<&'a str>,
}

impl<'a> FreeIds<'a> {
    /// `beside` is the highest id in other files of the kind.
    pub(super) fn of(
        snapshot: &'a Snapshot,
        kind: Kind,
        beside: IdShape,
        word: Option<&'a str>,
    ) -> Self {
        let highest = snapshot.table.header.highest.max(beside);
        Self {
            snapshot,
            kind,
            highest,
            assigned: HashMap::new(),
            word,
        }
    }

    /// Returns the next id, from the table's header; scans only if the clock went back.
    pub(super) fn next(&mut self, now: DateTime<Utc>) -> String {
        let (kind, highest) = (self.kind, self.highest);
        if !kind.is_timestamped() {
            self.highest.number += 1;
            let number = self.highest.number;
            return match self.word {
                Some(word) => model::local(kind, number, word),
                None => model::numbered(kind, number),
            };
        }
        let plain = model::timestamped(kind, now, 1);
        let shape = IdShape::of(kind, &plain).unwrap_or_default();
        let taken = if shape > highest {
            0
        } else if shape.number == highest.number {
            highest.suffix
        } else if let Some(assigned) = self.assigned.get(&shape.number) {
            *assigned
        } else {
            self.taken(shape.number)
        };
        let suffix = taken + 1;
        self.assigned.insert(shape.number, suffix);
        self.highest = highest.max(IdShape { suffix, ..shape });
        model::timestamped(kind, now, suffix)
    }

    /// Returns the highest suffix of a time; 0 if its id is free.
    fn taken(&self, number: u64) -> u32 {
        let shape = |row: Row| IdShape::of(self.kind, &String::from_utf8_lossy(row.id()));
        let shapes = self.snapshot.rows().filter_map(shape);
        let same = shapes.filter(|shape| shape.number == number);
        same.map(|shape| shape.suffix).max().unwrap_or(0)
    }
}

/// Maximum number of additions in one write.
const LARGEST: usize = 256;

/// Requests of one process for the same memory.
#[derive(Default)]
pub struct GroupCommit {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Number of groups.
    commits: AtomicU64,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    is_led: bool,
}

impl std::fmt::Debug for GroupCommit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupCommit").finish_non_exhaustive()
    }
}

/// Record that was added.
#[derive(Debug)]
pub struct Added<R> {
    /// The record as stored; `None` if an entry said the same already.
    pub record: Option<R>,
    /// Kinds of secrets redacted from it.
    pub left_out: Vec<&'static str>,
    /// Crash damage that its writer has repaired.
    pub repairs: Vec<Problem>,
}

/// Addition that waits for its write, and then for its caller.
struct Waiting {
    addition: Addition,
    reply: SyncSender<Result<(Addition, Vec<Problem>), Error>>,
}

impl GroupCommit {
    /// Adds a record for the caller of `store`, in one write with the records of other requests.
    pub fn add<R: Record + Send + 'static>(
        &self,
        store: &Scoped,
        record: R,
        unless: Option<SkipCondition>,
        now: DateTime<Utc>,
        random: fn() -> String,
    ) -> Result<Added<R>, Error> {
        // Checked first, so that a refusal waits for nobody.
        let addition = Addition::of(store.held(), &record, now, unless)?;
        let (reply, answer) = mpsc::sync_channel(1);
        let mut queue = self.queue();
        queue.waiting.push(Waiting { addition, reply });
        loop {
            match answer.try_recv() {
                Ok(answer) => {
                    let (mut addition, repairs) = answer?;
                    return Ok(Added {
                        left_out: std::mem::take(&mut addition.left_out),
                        record: addition.stored()?,
                        repairs,
                    });
                }
                Err(TryRecvError::Disconnected) => return Err(Error::Abandoned),
                Err(TryRecvError::Empty) => {}
            }
            if queue.is_led {
                let waited = self.changed.wait(queue);
                queue = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            queue.is_led = true;
            let length = queue.waiting.len().min(LARGEST);
            let requests: Vec<_> = queue.waiting.drain(..length).collect();
            drop(queue);
            let leader = Leader(self);
            self.commits.fetch_add(1, Ordering::Relaxed);
            commit(store, requests, random);
            drop(leader);
            queue = self.queue();
        }
    }

    /// Returns the number of groups that were written, or failed.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the next request lead, even after a panic.
struct Leader<'a>(&'a GroupCommit);

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        self.0.queue().is_led = false;
        self.0.changed.notify_all();
    }
}

/// Writes the requests of each kind in one write, and answers them.
fn commit(store: &Scoped, mut requests: Vec<Waiting>, random: fn() -> String) {
    let mut writer = store.write(&mut || random()).map_err(Arc::new);
    for kind in Kind::ALL {
        let is_of_kind = |request: &Waiting| request.addition.kind == kind;
        let (mut now, later): (Vec<_>, Vec<_>) = requests.into_iter().partition(is_of_kind);
        requests = later;
        if now.is_empty() {
            continue;
        }
        let done = match &mut writer {
            Ok(writer) => {
                let additions = now.iter_mut().map(|request| &mut request.addition);
                let done = writer.append_each(kind, &mut additions.collect::<Vec<_>>());
                done.map(|()| writer.take_repairs()).map_err(Arc::new)
            }
            Err(error) => Err(Arc::clone(error)),
        };
        let (mut repairs, error) = match done {
            Ok(repairs) => (repairs, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        for Waiting { addition, reply } in now {
            let answer = match &error {
                // One of them reports what was repaired.
                None => Ok((addition, std::mem::take(&mut repairs))),
                Some(error) => Err(Error::Group(Arc::clone(error))),
            };
            // A caller that is gone needs no answer.
            drop(reply.send(answer));
        }
    }
}

#[cfg(test)]
mod tests;
