//! Records that move between the local and the shared file of their kind.
//!
//! - A record that is approved moves to the shared file, in the order of its id: two people who
//!   approve records rarely write the same lines, so git can merge them. An undo moves it back.
//! - A pull of git may bring a record with an id that a local record has. The local one gets another
//!   id, here and in the local records that refer to it.
//!
//! A record is written to its new file before it leaves the old one. After a crash in between, the one
//! in the shared file counts, and the next writer removes the other.

use std::collections::{HashMap, HashSet};

use crate::model::{IdShape, Kind, numbered};
use crate::store::audit::audit_event::AuditAction;
use crate::store::entry::Entry;
use crate::store::error::Error;
use crate::store::files::data::frame::Frame;
use crate::store::files::data::json_file::Snapshot;
use crate::store::files::data_files::DataFile;
use crate::store::files::directory::{DERIVED, SMALL_FILE};
use crate::store::files::ignored;
use crate::store::undo_journal::{self, step::Step};
use memctl_files::json;

use super::Writer;

impl Writer {
    /// Moves records that are approved to the shared file of their kind, each with its text.
    pub(super) fn share(&mut self, kind: Kind, records: &[(&str, &str)]) -> Result<(), Error> {
        let local = DataFile::of(kind).find(|file| file.is_local);
        let Some(from) = local else {
            return Ok(());
        };
        let to = DataFile::shared(kind);
        for (id, _) in records {
            self.journal(Step::moved(to, id));
        }
        self.move_to(to, from, records)
    }

    /// Writes records to another file of their kind, each with its text, and removes them from the
    /// file that they were in.
    fn move_to(
        &mut self,
        to: DataFile,
        from: DataFile,
        records: &[(&str, &str)],
    ) -> Result<(), Error> {
        self.begin_local(to)?;
        self.redone(to, |writer, snapshot| writer.insert(snapshot, records))?;
        let ids: HashSet<&str> = records.iter().map(|(id, _)| *id).collect();
        self.redone(from, |writer, snapshot| writer.drop_rows(snapshot, &ids))
    }

    /// Moves a record to the local file of its kind or back, as it is. Returns `false` if it is not
    /// in the other one.
    pub fn move_back(&mut self, kind: Kind, id: &str, is_local: bool) -> Result<bool, Error> {
        let mut files = DataFile::of(kind);
        let (Some(to), Some(from)) = (
            files.clone().find(|file| file.is_local == is_local),
            files.find(|file| file.is_local != is_local),
        ) else {
            return Ok(false);
        };
        let snapshot = self.prepare(from)?;
        let Some((_, entry)) = self.store().find_in(&snapshot, kind, id)? else {
            return Ok(false);
        };
        self.note(Step::moved(to, id), AuditAction::Edited, None)?;
        let mut counters = self.store().counters(from);
        let text = counters.shown(&entry).into_owned();
        self.move_to(to, from, &[(id, &text)])?;
        if counters.forget(id) {
            counters.write(self.lock())?;
        }
        Ok(true)
    }

    /// Tells git to ignore the local file of a kind before its first record.
    pub(super) fn begin_local(&mut self, file: DataFile) -> Result<(), Error> {
        let state = self.lock().directory().state(file.name());
        if !file.is_local || state.is_ok_and(|state| state.is_some()) {
            return Ok(());
        }
        ignored::complete(self.lock().directory()).map(drop)
    }

    /// Inserts records into a file in the order of their ids. One that is there gets the new text.
    fn insert(&self, snapshot: &Snapshot, records: &[(&str, &str)]) -> Result<(), Error> {
        let (file, kind) = (self.store().file(snapshot.of), snapshot.of.kind);
        let order = |id: &str| IdShape::of(kind, id);
        let mut records = records.to_vec();
        records.sort_by_key(|(id, _)| order(id));
        let rows = snapshot.rows()?;
        let ids: Vec<String> = rows
            .iter()
            .map(|row| String::from_utf8_lossy(row.id()).into_owned())
            .collect();
        let numbers = (0..).zip(&ids).map(|(number, id)| (id.as_str(), number));
        let places: HashMap<&str, usize> = numbers.collect();
        let orders: Vec<Option<IdShape>> = ids.iter().map(|id| order(id)).collect();
        // New texts by the row that they replace or follow; `None` is the place before all.
        let mut replaced: HashMap<usize, &str> = HashMap::new();
        let mut behind: HashMap<Option<usize>, Vec<&str>> = HashMap::new();
        for (id, text) in records {
            if let Some(row) = places.get(id) {
                replaced.insert(*row, text);
            } else {
                let place = orders.iter().rposition(|other| *other < order(id));
                behind.entry(place).or_default().push(text);
            }
        }
        if rows.is_empty() {
            let plain = Frame::plain(kind);
            let all = behind.remove(&None).unwrap_or_default();
            return file.append_all(snapshot, &all, (&plain.head, &plain.tail));
        }
        let mut changes = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            let mut texts = match number {
                0 => behind.remove(&None).unwrap_or_default(),
                _ => Vec::new(),
            };
            let own = snapshot.read(row)?;
            let own = String::from_utf8_lossy(&own);
            texts.push(replaced.get(&number).copied().unwrap_or(&own));
            texts.extend(behind.remove(&Some(number)).unwrap_or_default());
            if texts.len() > 1 || replaced.contains_key(&number) {
                changes.push((row, texts.join(",\n    ")));
            }
        }
        let changes: Vec<_> = changes.iter().map(|(row, text)| (*row, &**text)).collect();
        file.replace_all(snapshot, &changes)
    }

    /// Removes the entries with these ids, without a tombstone.
    fn drop_rows(&self, snapshot: &Snapshot, ids: &HashSet<&str>) -> Result<(), Error> {
        let kind = snapshot.of.kind;
        let mut going = Vec::new();
        for row in snapshot.rows()? {
            if ids.contains(snapshot.entry(kind, &row)?.id.as_str()) {
                going.push(row);
            }
        }
        if going.is_empty() {
            return Ok(());
        }
        self.store().file(snapshot.of).remove_all(snapshot, &going)
    }

    /// Gives records that only this machine has another id where a shared record has theirs.
    pub fn separate_ids(&mut self) -> Result<(), Error> {
        Kind::ALL
            .into_iter()
            .try_for_each(|kind| self.make_ids_unique(kind))
    }

    /// Makes the ids of each kind unique across its files, unless that is known. Does nothing before
    /// a write to a kind with one file.
    pub(super) fn make_ids_unique(&mut self, kind: Kind) -> Result<(), Error> {
        if self.is_settled || DataFile::of(kind).count() == 1 {
            return Ok(());
        }
        self.is_settled = true;
        for local in DataFile::ALL.into_iter().filter(|file| file.is_local) {
            let settled = self.make_ids_of_file_unique(local);
            // Damage in the files of another kind keeps no record back.
            if local.kind == kind {
                settled?;
            }
        }
        Ok(())
    }

    fn make_ids_of_file_unique(&mut self, local: DataFile) -> Result<(), Error> {
        let kind = local.kind;
        let shared = self.prepare(DataFile::shared(kind))?;
        let own = self.prepare(local)?;
        let state = |file: &Snapshot| file.table.header.generation;
        let state = format!("{:016x} {:016x}", state(&shared), state(&own));
        let note = format!("{}.settled", local.derived_name());
        let derived = self.lock().directory().below(DERIVED);
        let known = derived.read(&note, SMALL_FILE).ok().flatten();
        if own.table.header.count == 0 || known.is_some_and(|known| known == state.as_bytes()) {
            return Ok(());
        }
        self.separate(&shared, &own)?;
        // Derived: without it, the next writer compares again.
        let now = [&shared.of, &local].map(|file| self.store().file(*file).snapshot());
        if let [Ok(shared), Ok(own)] = &now
            && derived.create().is_ok()
        {
            let state = |file: &Snapshot| file.table.header.generation;
            let state = format!("{:016x} {:016x}", state(shared), state(own));
            drop(derived.replace_derived(&note, &[state.as_bytes()]));
        }
        Ok(())
    }

    /// Removes what a crash has left in the local file, and gives other records with a taken id a new
    /// one.
    fn separate(&mut self, shared: &Snapshot, own: &Snapshot) -> Result<(), Error> {
        let kind = own.of.kind;
        let mut mine: HashMap<String, Entry> = HashMap::new();
        each_entry(own, &mut |entry| drop(mine.insert(entry.id.clone(), entry)))?;
        let (mut left, mut taken) = (HashSet::new(), Vec::new());
        each_entry(shared, &mut |entry| {
            if let Some(other) = mine.get(&entry.id).filter(|_| !entry.id.is_empty()) {
                let made = |entry: &Entry| {
                    json::string_field(&entry.text, "created_at").map(std::borrow::Cow::into_owned)
                };
                if made(&entry) == made(other) {
                    left.insert(entry.id);
                } else {
                    taken.push(entry.id);
                }
            }
        })?;
        if !left.is_empty() {
            let ids = left.iter().map(String::as_str).collect();
            self.redone(own.of, |writer, snapshot| writer.drop_rows(snapshot, &ids))?;
        }
        if taken.is_empty() {
            return Ok(());
        }
        let highest = shared.table.header.highest.max(own.table.header.highest);
        let new = (highest.number + 1..).map(|number| numbered(kind, number));
        let ids: HashMap<String, String> = taken.iter().cloned().zip(new).collect();
        let touched: Vec<_> = ids.values().map(|id| (id.as_str(), None)).collect();
        self.store().audit(AuditAction::Edited, &touched)?;
        for file in DataFile::ALL.into_iter().filter(|file| file.is_local) {
            let renamed = self.redone(file, |writer, snapshot| writer.rename(snapshot, &ids));
            if file == own.of {
                renamed?;
            }
        }
        let gone: Vec<_> = taken.iter().map(|id| (kind, id.as_str())).collect();
        undo_journal::forget(self.lock(), &gone)
    }

    /// Replaces ids in all entries of a file.
    fn rename(&self, snapshot: &Snapshot, ids: &HashMap<String, String>) -> Result<(), Error> {
        let mut changes = Vec::new();
        for row in snapshot.rows()? {
            let text = snapshot.read(&row)?;
            let new = json::with_other_strings(&String::from_utf8_lossy(&text), ids);
            changes.extend(new.map(|new| (row, new)));
        }
        if changes.is_empty() {
            return Ok(());
        }
        let changes: Vec<_> = changes.iter().map(|(row, text)| (row, &**text)).collect();
        self.store()
            .file(snapshot.of)
            .replace_all(snapshot, &changes)
    }
}

/// Visits all entries of a file.
fn each_entry(snapshot: &Snapshot, visit: &mut dyn FnMut(Entry)) -> Result<(), Error> {
    for row in snapshot.rows()? {
        visit(snapshot.entry(snapshot.of.kind, &row)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
