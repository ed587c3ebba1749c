//! Writing records, within a scope, under the lock of the directory.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::model::{self, IdShape, Kind, Record};

use super::audit::Did;
use super::changes::{self, Field, Step};
use super::directory::{Identity, Lock};
use super::error::{Error, Problem};
use super::json_file::Snapshot;
use super::json_text;
use super::json_write::{NewEntry, redone};
use super::primary::AtPrimary;
use super::scoped::{Entry, Scoped};
use super::trust::{UserKey, acts};

/// A JSON text as it may be stored.
#[derive(Debug, Clone)]
pub struct Redacted<'a> {
    /// The text; borrowed where nothing had to be left out.
    pub text: Cow<'a, str>,
    /// The kinds of what was left out.
    pub found: Vec<&'static str>,
}

/// Decides what of a JSON text may be stored: a whole record, or the value of a field.
pub type Redaction = fn(&str) -> Redacted<'_>;

/// The right to write, for as long as it lives. Keep it short: other writers wait for it.
#[derive(Debug)]
pub struct Writer {
    store: Scoped,
    /// Where the memory lies in a database: the turn to write to it.
    at_primary: Option<AtPrimary>,
    /// Whether it may write nothing but logs, which belong to this copy.
    is_for_logs: bool,
    lock: Lock,
    identity: Identity,
    /// The key of the user who writes.
    key: Option<UserKey>,
    mended: Vec<Problem>,
    left_out: Vec<&'static str>,
}

impl Writer {
    pub(super) fn open(
        store: &Scoped,
        limit: Duration,
        random: &mut dyn FnMut() -> String,
    ) -> Result<Self, Error> {
        // Asked before, so that a refusal makes no directory, and after, so that nobody slips through.
        store.must_be_enabled()?;
        if let Some(primary) = store.primary() {
            primary.prepare().map_err(Error::Primary)?;
        }
        let mut writer = Self::open_for_logs(store, limit, random)?;
        writer.at_primary = AtPrimary::begin(store, &writer.lock, limit)?;
        writer.is_for_logs = false;
        Ok(writer)
    }

    pub(super) fn open_for_logs(
        store: &Scoped,
        limit: Duration,
        random: &mut dyn FnMut() -> String,
    ) -> Result<Self, Error> {
        store.must_be_enabled()?;
        let lock = Lock::take(store.directory(), limit)?;
        store.must_be_enabled()?;
        let is_new = lock.is_new();
        let has_identity = store.identity().is_some();
        let identity = lock.identity(random)?;
        if !has_identity {
            super::audit::begin(store, &identity)?;
        }
        if is_new {
            // Without a note the workspace's records count one by one, as approved; that is no reason
            // not to take a record.
            drop(store.approvals().begin(&store.act().at, random));
        }
        let key = store.approvals().make_key(random);
        Ok(Self {
            key,
            store: store.held(),
            at_primary: None,
            is_for_logs: true,
            lock,
            identity,
            mended: Vec::new(),
            left_out: Vec::new(),
        })
    }

    /// The store that is written to. Read through this while the writer lives: nobody else can
    /// change what was read.
    pub fn store(&self) -> &Scoped {
        &self.store
    }

    pub(super) fn is_for_logs(&self) -> bool {
        self.is_for_logs
    }

    pub(super) fn at_primary(&mut self) -> Option<&mut AtPrimary> {
        self.at_primary.as_mut()
    }

    pub(super) fn key(&self) -> Option<&UserKey> {
        self.key.as_ref()
    }

    pub(super) fn lock(&self) -> &Lock {
        &self.lock
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What crashes had left and this writer has mended; asked for once, at the end.
    pub fn take_mended(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.mended)
    }

    /// The kinds of what the redaction of the store has left out of this writer's records; asked for
    /// once, at the end.
    pub fn take_left_out(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.left_out)
    }

    /// The JSON text of a value as it may be stored, and whether that is not all of it.
    pub(super) fn redacted(&mut self, value: &impl Serialize) -> Result<(String, bool), Error> {
        let text = serde_json::to_string(value)?;
        let Some(redact) = self.store.redaction() else {
            return Ok((text, false));
        };
        let redacted = redact(&text);
        let is_less = !redacted.found.is_empty();
        let redacted_text = redacted.text.into_owned();
        self.left_out.extend(redacted.found);
        Ok((redacted_text, is_less))
    }

    /// Makes sure that records of this kind can be added now, before something is done that must
    /// not be in vain.
    pub fn check(&mut self, kind: Kind) -> Result<(), Error> {
        self.redone(kind, |writer, snapshot| {
            writer.store.file(kind).check_writable(snapshot)
        })
    }

    /// Reads the file of a kind and writes it, anew where another program has changed it in between. An
    /// attempt that came to nothing leaves no line in the journal.
    pub(super) fn redone<T>(
        &mut self,
        kind: Kind,
        mut attempt: impl FnMut(&mut Self, &Snapshot) -> Result<T, Error>,
    ) -> Result<T, Error> {
        redone(|| {
            let mark = changes::mark(&self.lock);
            let done = self
                .prepare(kind)
                .and_then(|snapshot| attempt(self, &snapshot));
            if matches!(done, Err(Error::Changing { .. })) {
                changes::back_to(&self.lock, mark)?;
            }
            done
        })
    }

    /// Adds a record and answers it with its id, as it is stored. A record that brings an id keeps it, if it is
    /// free. When this returns, the record is on the disk.
    pub fn append<R: Record>(&mut self, mut record: R, now: DateTime<Utc>) -> Result<R, Error> {
        if !self.store.sight().covers_skill(R::KIND, record.skill()) {
            let what = record.skill().unwrap_or(R::KIND.name()).to_owned();
            return Err(Error::OutOfScope { what });
        }
        self.claim(&mut record)?;
        let mut own = Numbered {
            is_given: !record.id().is_empty(),
            written: None,
        };
        self.redone(R::KIND, |writer, snapshot| {
            writer.append_to(snapshot, &mut record, &mut own, now)
        })?;
        if record.trust() != model::Trust::Observed {
            self.vouch(R::KIND, record.id())?;
        }
        Ok(record)
    }

    fn append_to<R: Record>(
        &mut self,
        snapshot: &Snapshot,
        record: &mut R,
        own: &mut Numbered,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        if let Some(text) = own.written.take()
            && self.is_there(snapshot, R::KIND, record.id(), &text)?
        {
            // The other program has saved what it found here.
            let (kind, id) = (R::KIND, record.id().to_owned());
            self.journal(Step::Added { kind, id });
            return Ok(());
        }
        if !own.is_given {
            record.set_id(free_id(snapshot, R::KIND, now)?);
        } else if Scoped::holds(snapshot, R::KIND, record.id())? {
            return Err(Error::Exists {
                id: record.id().to_owned(),
            });
        }
        let (text, is_less) = self.redacted(record)?;
        if is_less {
            // Whoever goes on with the record goes on with what is stored of it.
            *record = serde_json::from_str(&text)?;
            self.claim(record)?;
        }
        let text = json_text::pretty(&text, 2);
        let skill = record.skill().unwrap_or_default();
        let (kind, id) = (R::KIND, record.id().to_owned());
        self.note(Step::Added { kind, id }, Did::Added, record.user_id())?;
        let entry = NewEntry {
            text: &text,
            id: record.id(),
            skill,
        };
        self.send(kind, &[(record.id(), &text)])?;
        let done = self.store.file(kind).append(snapshot, &[entry]);
        if matches!(done, Err(Error::Changing { .. })) {
            own.written = Some(text);
        }
        self.followed(done)
    }

    /// Whether a record stands in a file already, in whatever layout.
    fn is_there(
        &self,
        snapshot: &Snapshot,
        kind: Kind,
        id: &str,
        text: &str,
    ) -> Result<bool, Error> {
        let Some((_, entry)) = self.store.find_in(snapshot, kind, id)? else {
            return Ok(false);
        };
        let value = serde_json::from_slice::<serde_json::Value>;
        Ok(match (value(&entry.text), value(text.as_bytes())) {
            (Ok(there), Ok(own)) => there == own,
            _ => entry.text == text.as_bytes(),
        })
    }

    /// Notes that this user stands behind a record as it is now: what it says counts as theirs in every
    /// copy of the workspace on this machine. Of no effect on kinds that do not act on an agent.
    pub fn vouch(&mut self, kind: Kind, id: &str) -> Result<(), Error> {
        if !acts(kind) {
            return Ok(());
        }
        match (&self.key, self.store.find(kind, id)?) {
            (Some(key), Some(entry)) => self.store.approvals().approve_with(key, &[entry]),
            _ => Ok(()),
        }
    }

    /// Makes a record the viewer's; one that is another's is refused, so that nobody writes in
    /// another's name.
    fn claim<R: Record>(&self, record: &mut R) -> Result<(), Error> {
        let viewer = self.store.viewer();
        if R::KIND.has_user()
            && let Some(own) = viewer.user_id().filter(|_| record.user_id().is_none())
        {
            record.set_user_id(own);
        }
        if R::KIND.has_user() && !viewer.sees(record.user_id()) {
            let what = record.user_id().unwrap_or(R::KIND.name()).to_owned();
            return Err(Error::OutOfScope { what });
        }
        Ok(())
    }

    /// Sets fields of a record. Its other fields keep every byte, and so does JSON text that is
    /// given as such.
    pub fn update<V: Serialize>(
        &mut self,
        kind: Kind,
        id: &str,
        changes: &[(&str, V)],
    ) -> Result<Entry, Error> {
        self.update_without(kind, id, changes, &[])
    }

    /// The same, and takes fields out of it.
    pub fn update_without<V: Serialize>(
        &mut self,
        kind: Kind,
        id: &str,
        changes: &[(&str, V)],
        gone: &[&str],
    ) -> Result<Entry, Error> {
        self.redone(kind, |writer, snapshot| {
            let (row, mut entry) = writer
                .store
                .find_in(snapshot, kind, id)?
                .ok_or_else(|| not_found(kind, id))?;
            let (text, step) = writer.changed(&entry, changes, gone)?;
            writer.note(step, Did::Edited, entry.user_id().as_deref())?;
            writer.send(kind, &[(id, &text)])?;
            let done = writer.store.file(kind).replace(snapshot, &row, &text);
            writer.followed(done)?;
            entry.text = text.into_bytes();
            Ok(entry)
        })
    }

    /// Sets fields of several records at once: the file is written once. A record that is not there
    /// is passed over.
    pub fn update_all<V: Serialize>(
        &mut self,
        kind: Kind,
        changes: &[(String, Vec<(&str, V)>)],
    ) -> Result<(), Error> {
        if changes.is_empty() {
            return Ok(());
        }
        self.redone(kind, |writer, snapshot| {
            writer.update_in(snapshot, kind, changes)
        })
    }

    fn update_in<V: Serialize>(
        &mut self,
        snapshot: &Snapshot,
        kind: Kind,
        changes: &[(String, Vec<(&str, V)>)],
    ) -> Result<(), Error> {
        let ids: HashSet<&str> = changes.iter().map(|(id, _)| id.as_str()).collect();
        let mut entries = HashMap::new();
        self.store
            .each_of_in(snapshot, kind, &ids, &mut |row, entry| {
                entries.insert(entry.id.clone(), (row, entry));
            })?;
        let (mut found, mut touched) = (Vec::new(), Vec::new());
        for (id, fields) in changes {
            if let Some((row, entry)) = entries.remove(id) {
                let (text, step) = self.changed(&entry, fields, &[])?;
                self.journal(step);
                found.push((row, text, id.as_str()));
                let user = entry.user_id().map(Cow::into_owned);
                touched.push((id.as_str(), user));
            }
        }
        let touched: Vec<_> = touched.iter().map(|(id, u)| (*id, u.as_deref())).collect();
        self.store.audit(Did::Edited, &touched)?;
        found.sort_by_key(|(row, ..)| row.at);
        found.dedup_by_key(|(row, ..)| row.at);
        let rows: Vec<_> = found
            .iter()
            .map(|(_, text, id)| (*id, text.as_str()))
            .collect();
        self.send(kind, &rows)?;
        let entries: Vec<_> = found
            .iter()
            .map(|(row, text, _)| (row, text.as_str()))
            .collect();
        let done = self.store.file(kind).replace_all(snapshot, &entries);
        self.followed(done)
    }

    /// The text of an entry with other values in some fields, and what that changes.
    fn changed<V: Serialize>(
        &mut self,
        entry: &Entry,
        changes: &[(&str, V)],
        gone: &[&str],
    ) -> Result<(String, Step), Error> {
        let text = String::from_utf8_lossy(&entry.text);
        let changes: Vec<(&str, String)> = changes
            .iter()
            .map(|(name, value)| Ok((*name, json_text::pretty(&self.redacted(value)?.0, 3))))
            .collect::<Result<_, Error>>()?;
        let new = json_text::with_fields(&text, &changes, 6);
        let new = if gone.is_empty() {
            new
        } else {
            json_text::without_fields(&new, gone)
        };
        // Nobody gives what is his to another.
        if !self.store.sight().is_own(entry.kind, new.as_bytes()) {
            let what = entry.id.clone();
            return Err(Error::OutOfScope { what });
        }
        let before: HashMap<_, _> = json_text::fields(text.as_bytes()).collect();
        let field = |(name, after): &(&str, String)| Field {
            name: (*name).to_owned(),
            before: before
                .get(*name)
                .map(|span| self.clean(&text[span.clone()])),
            after: Some(after.clone()),
        };
        let taken = gone.iter().filter_map(|name| {
            let span = before.get(*name)?;
            Some(Field {
                name: (*name).to_owned(),
                before: Some(self.clean(&text[span.clone()])),
                after: None,
            })
        });
        let taken: Vec<Field> = taken.collect();
        let step = Step::Edited {
            kind: entry.kind,
            id: entry.id.clone(),
            fields: changes.iter().map(field).chain(taken).collect(),
        };
        Ok((new, step))
    }

    /// Notes a write in the journal and in the audit, before it happens. `user` is whose it is.
    pub(super) fn note(&mut self, step: Step, did: Did, user: Option<&str>) -> Result<(), Error> {
        let id = step.target().map(str::to_owned);
        self.journal(step);
        match id {
            Some(id) => self.store.audit(did, &[(&id, user)]),
            None => Ok(()),
        }
    }

    /// Notes a write in the journal, before it happens. A journal that takes nothing costs the way back,
    /// and is no reason to lose what somebody gave.
    pub(super) fn journal(&mut self, step: Step) {
        let key = self.key.as_ref();
        drop(changes::append(&self.lock, self.store.act(), key, step));
    }

    /// A JSON text without what must not be stored: the journal keeps no secret that a record still has.
    pub(super) fn clean(&self, json: &str) -> String {
        self.store
            .redaction()
            .map_or_else(|| json.to_owned(), |filter| filter(json).text.into_owned())
    }

    /// Remembers what the redaction of the store has left out.
    pub(super) fn leave_out(&mut self, found: Vec<&'static str>) {
        self.left_out.extend(found);
    }

    pub(super) fn prepare(&mut self, kind: Kind) -> Result<Snapshot, Error> {
        self.store.file(kind).prepare(&self.lock, &mut self.mended)
    }
}

/// A record on its way into a file.
struct Numbered {
    /// It brought its id with it.
    is_given: bool,
    /// Its text, where it was written and then not found in the file that has the name.
    written: Option<String>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.keep_reached();
    }
}

/// The next id, from what the table knows; only a clock that went back costs a look at all.
fn free_id(snapshot: &Snapshot, kind: Kind, now: DateTime<Utc>) -> Result<String, Error> {
    let highest = snapshot.table.header.highest;
    if !kind.is_timestamped() {
        return Ok(model::numbered(kind, highest.number + 1));
    }
    let plain = model::timestamped(kind, now, 1);
    let shape = IdShape::of(kind, &plain).unwrap_or_default();
    if shape > highest {
        return Ok(plain);
    }
    if shape.number == highest.number {
        return Ok(model::timestamped(kind, now, highest.suffix + 1));
    }
    let mut taken = 0;
    snapshot.each(false, &mut |row| {
        let id = String::from_utf8_lossy(row.id());
        if let Some(other) = IdShape::of(kind, &id)
            && other.number == shape.number
        {
            taken = taken.max(other.suffix);
        }
        true
    })?;
    Ok(model::timestamped(kind, now, taken + 1))
}

pub(super) fn not_found(kind: Kind, id: &str) -> Error {
    Error::NotFound {
        kind: Some(kind),
        id: id.to_owned(),
        similar: Vec::new(),
    }
}
