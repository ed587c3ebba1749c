//! Adding of records, with ids from the store.
//!
//! Additions of one kind are written together: one transaction of the database, one append to the
//! file, one wait for the disk. Each has its own caller, so that the records of several requests can
//! share a write.

use chrono::{DateTime, Utc};

use crate::model::{IdShape, Kind, Record, Reflexion};
use crate::store::access::scoped::Scoped;
use crate::store::audit::audit_log::AuditAction;
use crate::store::entry::Entry;
use crate::store::error::Error;
use crate::store::files::data::json_append::NewEntry;
use crate::store::files::data::json_file::Snapshot;
use crate::store::files::data_files::DataFile;
use crate::store::trust::acts;
use crate::store::undo_journal::step::Step;

use super::Writer;
use super::addition::FreeIds;
use super::addition::{Addition, Compared, New, State};

impl Writer {
    /// Adds a record and returns it as stored, with its id. A record with an id keeps it; fails if
    /// it is taken. On return the record is on disk.
    pub fn append<R: Record>(&mut self, record: R, now: DateTime<Utc>) -> Result<R, Error> {
        let mut new = New::of(self.store.clone(), record, now, None)?;
        self.append_each(R::KIND, &mut [&mut new])?;
        if let State::Refused(error) = new.state {
            return Err(error);
        }
        self.left_out.append(&mut new.left_out);
        Ok(new.record)
    }

    /// Adds records of one kind in one write. What happened to each is in its state. An error means
    /// that none was added, or that it is not known.
    pub(crate) fn append_each(
        &mut self,
        kind: Kind,
        all: &mut [&mut dyn Addition],
    ) -> Result<(), Error> {
        let mut vouched = Vec::new();
        for file in DataFile::of(kind) {
            if all.iter().any(|new| new.file() == file) {
                self.begin_local(file)?;
                self.redone(file, |writer, snapshot| {
                    writer.append_to(snapshot, kind, all, &mut vouched)
                })?;
            }
        }
        match &self.key {
            Some(key) if acts(kind) => self.store.approvals().approve_with(key, &vouched),
            _ => Ok(()),
        }
    }

    /// Appends to the file as it was read. Adds what counts as this user's own word to `vouched`.
    fn append_to(
        &mut self,
        snapshot: &Snapshot,
        kind: Kind,
        all: &mut [&mut dyn Addition],
        vouched: &mut Vec<Entry>,
    ) -> Result<(), Error> {
        let beside = self.highest_beside(snapshot.of)?;
        let word = self.word_for(snapshot.of).map(str::to_owned);
        let mut ids = FreeIds::of(snapshot, kind, beside, word.as_deref());
        let mut steps = Vec::new();
        let mut texts: Vec<(usize, String)> = Vec::new();
        for (at, new) in all.iter_mut().enumerate() {
            if new.file() != snapshot.of {
                continue;
            }
            let added = |new: &dyn Addition| Step::Added {
                kind,
                id: new.id().to_owned(),
            };
            let written = match std::mem::take(new.state()) {
                State::Unsure(text) => Some(text),
                State::Waiting => None,
                state => {
                    *new.state() = state;
                    continue;
                }
            };
            if let Some(text) = written
                && is_there(new.store(), snapshot, kind, new.id(), &text)?
            {
                // Another program has saved the record that it found here.
                steps.push((at, added(*new)));
                vouched.extend(entry(*new, &text));
                continue;
            }
            if is_repeated(snapshot, *new, &texts)? {
                *new.state() = State::Repeated;
                continue;
            }
            match self.entry_of(&mut ids, *new) {
                Ok(text) => {
                    steps.push((at, added(*new)));
                    texts.push((at, text));
                }
                Err(error) => *new.state() = State::Refused(error),
            }
        }
        self.journal_each(steps.into_iter().map(|(at, step)| (all[at].store(), step)));
        if texts.is_empty() {
            return Ok(());
        }
        self.audit_added(texts.iter().map(|(at, _)| &*all[*at] as &dyn Addition))?;
        let entries: Vec<NewEntry<'_>> = texts
            .iter()
            .map(|(at, text)| NewEntry {
                text,
                id: all[*at].id(),
                skill: all[*at].skill(),
            })
            .collect();
        let own: Vec<Entry> = texts
            .iter()
            .filter_map(|(at, text)| entry(&*all[*at], text))
            .collect();
        let rows: Vec<_> = entries.iter().map(|entry| (entry.id, entry.text)).collect();
        self.send(kind, &rows)?;
        let done = self.store.file(snapshot.of).append(snapshot, &entries);
        if matches!(done, Err(Error::Changing { .. })) {
            for (at, text) in texts {
                *all[at].state() = State::Unsure(text);
            }
        }
        self.followed(done)?;
        vouched.extend(own);
        Ok(())
    }

    /// Assigns an id, unless there is one, and returns the text of the entry.
    fn entry_of(&self, ids: &mut FreeIds<'_>, new: &mut dyn Addition) -> Result<String, Error> {
        if !new.is_numbered() {
            let id = ids.next(new.now())?;
            new.number(id);
            return new.text();
        }
        for snapshot in self.store.snapshots(new.kind())? {
            if Scoped::holds(&snapshot, new.kind(), new.id())? {
                return Err(Error::Exists {
                    id: new.id().to_owned(),
                });
            }
        }
        new.text()
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

    /// Writes one event for each caller and record.
    fn audit_added<'a>(&self, added: impl Iterator<Item = &'a dyn Addition>) -> Result<(), Error> {
        let events: Vec<_> = added
            .map(|new| (new.store().audit_context(), (new.id(), new.user_id())))
            .collect();
        self.store
            .audit_log()
            .append_each(AuditAction::Added, &events)
    }

    /// Records that this user vouches for the current text of a record. It then counts as theirs in
    /// every copy of the workspace on this machine. Does nothing for kinds that do not act on an
    /// agent.
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

/// Returns the entry of a record that counts as this user's own word; `None` for one that is only
/// observed.
fn entry(new: &dyn Addition, text: &str) -> Option<Entry> {
    new.is_own_word().then(|| Entry {
        kind: new.kind(),
        id: new.id().to_owned(),
        text: text.as_bytes().to_vec(),
        offset: 0,
    })
}

/// Returns `true` if the file already holds the record, in any layout.
fn is_there(
    store: &Scoped,
    snapshot: &Snapshot,
    kind: Kind,
    id: &str,
    text: &str,
) -> Result<bool, Error> {
    let Some((_, entry)) = store.find_in(snapshot, kind, id)? else {
        return Ok(false);
    };
    let value = serde_json::from_slice::<serde_json::Value>;
    Ok(match (value(&entry.text), value(text.as_bytes())) {
        (Ok(there), Ok(own)) => there == own,
        _ => entry.text == text.as_bytes(),
    })
}

/// Returns `true` if an entry that the caller has not seen, or an earlier addition, says the same.
fn is_repeated(
    snapshot: &Snapshot,
    new: &dyn Addition,
    earlier: &[(usize, String)],
) -> Result<bool, Error> {
    let Some(compared) = new.compared() else {
        return Ok(false);
    };
    if earlier.iter().any(|(_, text)| new.repeats(text.as_bytes())) {
        return Ok(true);
    }
    let from = compared.until(Compared::of(&snapshot.table.header));
    let from = from.unwrap_or(0);
    let (mut found, mut failed) = (false, None);
    snapshot.each(true, &mut |row| {
        if row.at < from {
            return false;
        }
        match snapshot.read(row) {
            Ok(entry) => found = new.repeats(&entry),
            Err(error) => failed = Some(error),
        }
        !found && failed.is_none()
    })?;
    failed.map_or(Ok(found), Err)
}
