//! Reverts writes to records, from the undo journal.
//!
//! A revert is a write like any other: it is journaled and audited, and can be reverted itself. It
//! never overwrites later changes, and leaves values that are already as before.

use std::collections::HashSet;

use crate::model::Kind;
use crate::store::audit::audit_log::AuditAction;
use crate::store::entry::Entry;
use crate::store::error::Error;
use crate::store::files::data::apply::is_record;
use crate::store::files::data::data_file::Frame;
use crate::store::files::data::json_file::Snapshot;
use crate::store::files::data::offsets::Row;
use crate::store::files::data_files::DataFile;
use crate::store::files::tombstones;
use crate::store::undo_journal::{
    self,
    step::{Field, Splice, Step},
};
use memctl_files::json;

use super::Writer;

/// A removed record to restore.
#[derive(Debug, Clone, Copy)]
pub struct Returning<'a> {
    /// Id of the record.
    pub id: &'a str,
    /// Id of the record before it; `None` restores the record at the start of the file.
    pub after: Option<&'a str>,
    /// `true` if it was in the local file of its kind.
    pub is_local: bool,
    /// JSON text.
    pub text: &'a str,
}

/// Result of reverting a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reverted {
    /// Reverted.
    Done,
    /// Unchanged: the values were as before already.
    Already,
    /// Unchanged: this field has been changed since.
    ChangedSince(String),
    /// Unchanged: the record no longer exists.
    Gone,
}

impl Writer {
    /// Restores the previous values of fields: all of them, or none. With `dry_run`, only returns
    /// the result.
    pub fn revert_fields(
        &mut self,
        kind: Kind,
        id: &str,
        fields: &[Field],
        dry_run: bool,
    ) -> Result<Reverted, Error> {
        let id = &self.store().current_id(kind, id)?;
        for file in DataFile::of(kind) {
            let done = self.redone(file, |writer, snapshot| {
                writer.revert_in(snapshot, kind, id, fields, dry_run)
            })?;
            if done != Reverted::Gone {
                return Ok(done);
            }
        }
        Ok(Reverted::Gone)
    }

    fn revert_in(
        &mut self,
        snapshot: &Snapshot,
        kind: Kind,
        id: &str,
        fields: &[Field],
        dry_run: bool,
    ) -> Result<Reverted, Error> {
        let Some((row, entry)) = self.store().find_in(snapshot, kind, id)? else {
            return Ok(Reverted::Gone);
        };
        let mut counters = self.store().counters(snapshot.of);
        let text = counters.shown(&entry).into_owned();
        let now = |name: &str| {
            let span = json::fields(text.as_bytes()).filter(|(key, _)| key == name);
            span.last().map(|(_, span)| text[span].to_owned())
        };
        let mut back: Vec<Field> = Vec::new();
        for field in fields {
            let current = now(&field.name);
            if is_same(current.as_deref(), field.before.as_deref()) {
                continue;
            }
            if !is_same(current.as_deref(), field.after.as_deref()) {
                return Ok(Reverted::ChangedSince(field.name.clone()));
            }
            back.push(Field {
                name: field.name.clone(),
                before: current,
                after: field.before.clone(),
            });
        }
        if back.is_empty() {
            return Ok(Reverted::Already);
        }
        if dry_run {
            return Ok(Reverted::Done);
        }
        let set: Vec<(&str, String)> = back
            .iter()
            .filter_map(|field| Some((field.name.as_str(), field.after.clone()?)))
            .collect();
        let gone = back.iter().filter(|field| field.after.is_none());
        let gone: Vec<&str> = gone.map(|field| field.name.as_str()).collect();
        let text = json::without_fields(&json::with_fields(&text, &set, 6), &gone);
        let changes = back.iter();
        let changes = changes.map(|field| (field.name.as_str(), field.after.as_deref()));
        let (own, is_counted) = self.sorted_out(snapshot.of, &entry, &mut counters, changes);
        if !is_record(kind, id, &text) {
            return Err(not_a_record(kind, id));
        }
        if !self.store().access().is_own(kind, text.as_bytes()) {
            let what = id.to_owned();
            return Err(Error::OutOfScope { what });
        }
        let step = Step::Edited {
            kind,
            id: id.to_owned(),
            fields: back.clone(),
        };
        self.note(step, AuditAction::Edited, entry.user_id().as_deref())?;
        self.send(kind, &[(id, &text)])?;
        if own.as_bytes() != entry.text {
            let done = self.store().file(snapshot.of).replace(snapshot, &row, &own);
            self.followed(done)?;
        }
        if is_counted {
            counters.write(self.lock())?;
        }
        Ok(Reverted::Done)
    }

    /// Restores removed records at their old position: after the predecessor of the first, or at
    /// the start of the file, in this order. Skips existing records. Returns the number of restored
    /// records.
    pub fn put_back(
        &mut self,
        kind: Kind,
        run: &[Returning<'_>],
        at: &str,
    ) -> Result<usize, Error> {
        let mut back = 0;
        for file in DataFile::of(kind) {
            let of_file = run.iter().filter(|one| one.is_local == file.is_local);
            let of_file: Vec<_> = of_file.copied().collect();
            if !of_file.is_empty() {
                back += self.redone(file, |writer, snapshot| {
                    writer.put_back_to(snapshot, kind, &of_file, at)
                })?;
            }
        }
        Ok(back)
    }

    fn put_back_to(
        &mut self,
        snapshot: &Snapshot,
        kind: Kind,
        run: &[Returning<'_>],
        at: &str,
    ) -> Result<usize, Error> {
        let ids: HashSet<&str> = run.iter().map(|one| one.id).collect();
        let mut there: HashSet<String> = HashSet::new();
        self.store()
            .each_of_in(snapshot, kind, &ids, &mut |_, entry| {
                there.insert(entry.id);
            })?;
        let mut missing = Vec::new();
        for one in run {
            if there.contains(one.id) {
                continue;
            }
            if !self.store().access().covers(kind, one.text.as_bytes()) {
                let what = one.id.to_owned();
                return Err(Error::OutOfScope { what });
            }
            if !is_record(kind, one.id, one.text) {
                return Err(not_a_record(kind, one.id));
            }
            missing.push(one);
        }
        let Some(foremost) = missing.first() else {
            return Ok(0);
        };
        let users: Vec<_> = missing
            .iter()
            .map(|one| json::string_field(one.text.as_bytes(), "user_id"))
            .collect();
        for one in &missing {
            self.journal(Step::Added {
                kind,
                id: one.id.to_owned(),
            });
        }
        let touched = missing.iter().zip(&users);
        let touched: Vec<_> = touched
            .map(|(one, user)| (one.id, user.as_deref().filter(|_| kind.has_user())))
            .collect();
        self.store().audit(AuditAction::Added, &touched)?;
        let rows: Vec<_> = missing.iter().map(|one| (one.id, one.text)).collect();
        self.send(kind, &rows)?;
        let done = self.put_at(snapshot, kind, foremost.after, &missing);
        self.followed(done)?;
        // Last: a crash before this leaves records with tombstones, which hide nothing.
        let ids: Vec<&str> = missing.iter().map(|one| one.id).collect();
        let done = tombstones::lift(self.lock(), kind, &ids, at);
        self.followed(done)?;
        Ok(ids.len())
    }

    /// Inserts records after the one with this id, or before all.
    fn put_at(
        &self,
        snapshot: &Snapshot,
        kind: Kind,
        after: Option<&str>,
        records: &[&Returning<'_>],
    ) -> Result<(), Error> {
        let file = self.store().file(snapshot.of);
        let neighbour = match after {
            Some(before) => self.store().find_in(snapshot, kind, before)?,
            None => first(snapshot, kind)?,
        };
        let texts: Vec<&str> = records.iter().map(|one| one.text).collect();
        if let Some((row, entry)) = neighbour {
            let beside = String::from_utf8_lossy(&entry.text);
            let texts = texts.join(",\n    ");
            let all = match after {
                Some(_) => format!("{beside},\n    {texts}"),
                None => format!("{texts},\n    {beside}"),
            };
            file.replace(snapshot, &row, &all)
        } else {
            let plain = Frame::plain(kind);
            file.append_all(snapshot, &texts, (&plain.head, &plain.tail))
        }
    }

    /// Journals a write to a file of a skill; the path is relative to the skills directory.
    pub fn note_file(&mut self, path: &str, before: Option<&str>, after: Option<&str>) {
        let splice = Splice::between(before, after);
        self.journal(Step::File {
            path: path.to_owned(),
            splice,
        });
    }

    /// Journals that a change was reverted.
    pub fn note_undone(&mut self, of: &str) -> Result<(), Error> {
        let of = of.to_owned();
        let step = Step::Undone { of };
        undo_journal::append(self.lock(), self.store().audit_context(), self.key(), step)
    }
}

/// Error for a journal text that is not a valid record of its kind.
fn not_a_record(kind: Kind, id: &str) -> Error {
    let id = id.to_owned();
    Error::InvalidJournal { kind, id }
}

/// Returns the first entry of a file, with its row.
fn first(snapshot: &Snapshot, kind: Kind) -> Result<Option<(Row, Entry)>, Error> {
    let mut first = None;
    snapshot.each(false, &mut |row| {
        first = Some(row.clone());
        false
    })?;
    let Some(row) = first else {
        return Ok(None);
    };
    let entry = snapshot.entry(kind, &row)?;
    Ok(Some((row, entry)))
}

/// Returns `true` if two optional JSON texts are equal except for their layout.
fn is_same(a: Option<&str>, b: Option<&str>) -> bool {
    a.map(json::compact) == b.map(json::compact)
}

#[cfg(test)]
mod tests;
