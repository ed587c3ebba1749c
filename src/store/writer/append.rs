//! Adds records, with ids from the store.
//!
//! Additions of one kind are written together: one transaction of the database, one append to the
//! file, one wait for the disk. Each has its own caller, so that the records of several requests can
//! share a write (`group_commit`).

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use memctl_files::{hex, json};

use crate::model::{self, IdShape, Kind, Record, Reflexion, Trust};
use crate::store::primary::Sent;
use crate::store::trust::{Mac, UserKey, acts, digest_of, digest_of_patterns, parse};
use crate::store::writer::readable;
use crate::store::{
    AuditAction, DataFile, Entry, Error, Row, Scoped, Snapshot, Step, Writer, redact, undo_journal,
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
    /// Highest number that something outside the store names: its id gets a higher one.
    named: u64,
    user_id: Option<String>,
    /// `true` if the record counts as this user's own word.
    is_own_word: bool,
    /// JSON text: as it was given, and once it has an id as it is stored.
    text: String,
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
}

impl Addition {
    /// Checks that the caller of `store` may add the record.
    pub(crate) fn of<R: Record>(
        store: Scoped,
        record: &R,
        now: DateTime<Utc>,
    ) -> Result<Self, Error> {
        let kind = R::KIND;
        let field =
            |text: &str, name| json::string_field(text.as_bytes(), name).map(Cow::into_owned);
        let outside = |named: Option<String>| {
            Error::OutOfScope(named.unwrap_or_else(|| kind.name().to_owned()))
        };
        let mut text = readable(record)?;
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
            named: 0,
            id,
            user_id,
            is_own_word: record.trust() != Trust::Observed,
            text: json::pretty(&redacted.text, 2),
            left_out: redacted.found,
            store,
            now,
            state: State::default(),
        })
    }

    /// Returns the record as stored.
    pub(crate) fn stored<R: Record>(self) -> Result<R, Error> {
        match self.state {
            State::Refused(error) => Err(error),
            State::Waiting | State::Unsure => Ok(serde_json::from_str(&self.text)?),
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
            is_local: self.file.is_local,
            offset: 0,
        })
    }

    /// Returns `true` if the file already holds the record, in any layout.
    fn is_there(&self, snapshot: &Snapshot) -> Result<bool, Error> {
        let found = self.store.find_in(snapshot, &self.id)?;
        Ok(found.is_some_and(|(_, entry)| {
            let there = String::from_utf8_lossy(&entry.text);
            json::compact(&there) == json::compact(&self.text)
        }))
    }
}

impl Writer {
    /// Adds a record and returns it as stored, with its id. A record with an id keeps it; fails if
    /// it is taken. On return the record is on disk.
    ///
    /// # Errors
    ///
    /// [`Error`]
    #[expect(clippy::needless_pass_by_value, reason = "the record comes back as it is stored")]
    pub fn append<R: Record>(&mut self, record: R, now: DateTime<Utc>) -> Result<R, Error> {
        self.append_above(&record, now, 0)
    }

    /// Adds a record like [`Writer::append`]; an id that it gets has a number above `named`.
    pub(crate) fn append_above<R: Record>(
        &mut self,
        record: &R,
        now: DateTime<Utc>,
        named: u64,
    ) -> Result<R, Error> {
        let mut new = Addition::of(self.store.clone(), record, now)?;
        new.named = named;
        self.append_each(R::KIND, &mut [&mut new])?;
        let left_out = std::mem::take(&mut new.left_out);
        let stored = new.stored()?;
        self.left_out.extend(left_out);
        Ok(stored)
    }

    /// Adds records of one kind in one write. The state of each has its outcome. An error means that none was added,
    /// or that the outcome is unknown.
    pub(crate) fn append_each(
        &mut self,
        kind: Kind,
        all: &mut [&mut Addition],
    ) -> Result<(), Error> {
        let mut own = Vec::new();
        for file in DataFile::of(kind) {
            if all.iter().any(|new| new.file == file) {
                self.begin_local(file)?;
                self.change_file(file, |writer, snapshot| {
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
        let mut ids = self.free_ids(snapshot)?;
        let mut there = Vec::new();
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
                State::Refused(_) => continue,
            }
            match self.give_id(&mut ids, new) {
                Ok(()) => written.push(at),
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
        let touched = new().map(|new| [(new.id.as_str(), new.user_id.as_deref())]);
        let touched: Vec<_> = touched.collect();
        let events = new().zip(&touched);
        let events = events.map(|(new, touched)| (new.store.audit_context(), &touched[..]));
        let log = self.store.audit_log();
        log.append(AuditAction::Added, &events.collect::<Vec<_>>())?;
        let rows: Vec<_> = new()
            .map(|new| (new.id.as_str(), new.text.as_str()))
            .collect();
        let words: Vec<Entry> = new().filter_map(Addition::own_word).collect();
        let done = self.write_through(kind, &Sent::Records(&rows), |writer| {
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
            new.number(ids.next(new.now, new.named));
            return Ok(());
        }
        for snapshot in self.store.snapshots(new.kind)? {
            if snapshot.holds(&new.id)? {
                return Err(Error::Exists(new.id.clone()));
            }
        }
        Ok(())
    }

    /// Returns the free ids for records that are added to a file.
    fn free_ids<'a>(&'a self, snapshot: &'a Snapshot) -> Result<FreeIds<'a>, Error> {
        let file = snapshot.of;
        let highest = snapshot.table.header.highest;
        // A counter is enough in a shared file, and at a primary database, which sees every id.
        let is_alone = file.is_local && self.at_primary.is_none();
        Ok(FreeIds {
            snapshot,
            highest: highest.max(self.highest_beside(file)?),
            given: Vec::new(),
            word: is_alone.then_some(self.word.as_str()),
        })
    }

    /// Returns the highest id of a kind outside of a file: those of other files share its counter.
    pub(super) fn highest_beside(&self, file: DataFile) -> Result<IdShape, Error> {
        let mut highest = IdShape::default();
        for other in DataFile::of(file.kind).filter(|other| *other != file) {
            let snapshot = self.store.file(other).snapshot()?;
            highest = highest.max(snapshot.table.header.highest);
        }
        if file.kind == Kind::Correction {
            // A rule that came without its correction still names it.
            for snapshot in self.store.snapshots(Kind::Reflexion)? {
                for row in snapshot.rows() {
                    let rule = snapshot.read(&row)?;
                    let named = json::string_field(&rule, "correction_id").unwrap_or_default();
                    highest = highest.max(IdShape::of(file.kind, &named).unwrap_or_default());
                }
            }
        }
        Ok(highest)
    }

    /// Records that this user vouches for the current text of a record. It then counts as theirs in
    /// every copy of the workspace on this machine. Does nothing for kinds that do not act on an
    /// agent. A new approval is a step of the change.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn vouch(&mut self, kind: Kind, id: &str) -> Result<(), Error> {
        self.approve_digest(kind, id, |key, entry| {
            acts(kind).then(|| digest_of(key, entry)).flatten()
        })
    }

    /// Lets a rule act on calls, with its current patterns.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn let_act(&mut self, id: &str) -> Result<(), Error> {
        self.approve_digest(Kind::Reflexion, id, |key, entry| {
            digest_of_patterns(key, &entry.parse::<Reflexion>().ok()?)
        })
    }

    fn approve_digest(
        &mut self,
        kind: Kind,
        id: &str,
        digest: impl FnOnce(&UserKey, &Entry) -> Option<Mac>,
    ) -> Result<(), Error> {
        let digest = match (&self.key, self.store.find(kind, id)?) {
            (Some(key), Some(entry)) => digest(key, &entry).map(|digest| hex(&digest)),
            _ => None,
        };
        self.set_approved(kind, id, digest.as_slice(), true)
    }

    /// Approves the texts of a record with these digests, or revokes their approval.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn set_approved(
        &mut self,
        kind: Kind,
        id: &str,
        digests: &[String],
        is_approved: bool,
    ) -> Result<(), Error> {
        let digests: Vec<Mac> = digests.iter().filter_map(|digest| parse(digest)).collect();
        for digest in self.store.approvals().new_among(&digests, is_approved) {
            self.journal(Step::Approval {
                kind,
                id: id.to_owned(),
                digest: hex(&digest),
                revoked: !is_approved,
            });
        }
        self.store.approvals().set(&digests, is_approved)
    }
}

/// Free ids of a kind.
struct FreeIds<'a> {
    snapshot: &'a Snapshot,
    highest: IdShape,
    /// Ids that were given since, where they have a time.
    given: Vec<IdShape>,
    /// Random word of the ids; `None` for ids that clones give, too.
    word: Option<&'a str>,
}

impl FreeIds<'_> {
    /// Returns the next id, from the table's header; scans only if the clock went back. A number is above `named`.
    fn next(&mut self, now: DateTime<Utc>, named: u64) -> String {
        let (kind, highest) = (self.snapshot.of.kind, self.highest);
        if !kind.is_timestamped() {
            self.highest.number = highest.number.max(named) + 1;
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
        } else {
            self.taken(shape.number)
        };
        let given = IdShape {
            suffix: taken + 1,
            ..shape
        };
        self.given.push(given);
        self.highest = highest.max(given);
        model::timestamped(kind, now, given.suffix)
    }

    /// Returns the highest suffix of a time; 0 if its id is free.
    fn taken(&self, number: u64) -> u32 {
        let shape =
            |row: Row| IdShape::of(self.snapshot.of.kind, &String::from_utf8_lossy(row.id()));
        let shapes = self.snapshot.rows().filter_map(shape);
        let shapes = shapes.chain(self.given.iter().copied());
        let same = shapes.filter(|shape| shape.number == number);
        same.map(|shape| shape.suffix).max().unwrap_or(0)
    }
}
