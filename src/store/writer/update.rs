//! Changes of fields, and the reversal of writes; all other bytes of a record stay.
//!
//! Counters of a shared record go to the file of this machine, so a change of counters alone leaves the shared
//! file as it is.
//!
//! A reversal, from the undo journal, is a write like any other: it is journaled and audited, and can be
//! reverted itself. It never overwrites later changes, and skips values that are already restored.

use std::collections::{HashMap, HashSet};

use memctl_files::json;
use serde::Serialize;

use crate::model::Kind;
use crate::model::error::Kind as ErrorKind;
use crate::store::files::counters::{self, Counters};
use crate::store::files::data::write::is_record;
use crate::store::primary::Sent;
use crate::store::{
    AuditAction, DataFile, Entry, Error, Field, Row, Snapshot, Splice, Step, Writer, raw_field,
    redact,
};

/// Values of fields as JSON texts; `None` takes a field away.
type Values<'a> = Vec<(&'a str, Option<String>)>;

/// A changed entry.
struct Change {
    row: Row,
    /// The entry as it was.
    entry: Entry,
    /// Text for its file.
    text: String,
    /// Text with the counters of this machine.
    shown: String,
    /// `true` if a counter changed.
    is_counted: bool,
    step: Step,
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
    /// Sets fields of a record. All other fields keep every byte, and so does a value given as JSON
    /// text.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn update<V: Serialize>(
        &mut self,
        kind: Kind,
        id: &str,
        changes: &[(&str, V)],
    ) -> Result<Entry, Error> {
        self.update_without(kind, id, changes, &[])
    }

    /// Sets fields of a record, and removes others.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn update_without<V: Serialize>(
        &mut self,
        kind: Kind,
        id: &str,
        changes: &[(&str, V)],
        removed: &[&str],
    ) -> Result<Entry, Error> {
        let mut values = self.values(changes)?;
        values.extend(removed.iter().map(|name| (*name, None)));
        let updated = self.update_records(kind, vec![(id.to_owned(), values)])?;
        updated
            .into_iter()
            .next()
            .ok_or_else(|| Error::not_found(kind, id))
    }

    /// Sets fields of several records in one write. Skips missing records.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn update_all<V: Serialize>(
        &mut self,
        kind: Kind,
        changes: &[(String, Vec<(&str, V)>)],
    ) -> Result<(), Error> {
        let all = changes.iter();
        let all = all.map(|(id, fields)| Ok((id.clone(), self.values(fields)?)));
        let all = all.collect::<Result<_, Error>>()?;
        self.update_records(kind, all).map(drop)
    }

    /// Changes records; returns those that are there, as they are now.
    fn update_records(
        &mut self,
        kind: Kind,
        mut all: Vec<(String, Values<'_>)>,
    ) -> Result<Vec<Entry>, Error> {
        for (id, _) in &mut all {
            *id = self.store.current_id(kind, id)?;
        }
        let mut updated = Vec::new();
        for file in DataFile::of(kind) {
            if updated.len() < all.len() {
                updated.extend(
                    self.change_file(file, |writer, snapshot| writer.update_in(snapshot, &all))?,
                );
            }
        }
        Ok(updated)
    }

    /// Returns values as redacted JSON texts.
    fn values<'a, V: Serialize>(&mut self, changes: &[(&'a str, V)]) -> Result<Values<'a>, Error> {
        let values = changes.iter();
        let values = values.map(|(name, value)| {
            let text = json::pretty(&self.redacted(value)?, 3);
            Ok((*name, Some(text)))
        });
        values.collect()
    }

    /// Changes the records that are in a file; returns them as they are now.
    fn update_in(
        &mut self,
        snapshot: &Snapshot,
        all: &[(String, Values<'_>)],
    ) -> Result<Vec<Entry>, Error> {
        let file = snapshot.of;
        let ids: HashSet<&str> = all.iter().map(|(id, _)| id.as_str()).collect();
        let found = self.store.of_ids(snapshot, &ids)?.into_iter();
        let mut found: HashMap<_, _> = found.map(|one| (one.1.id.clone(), one)).collect();
        let mut counters = self.store.counters(file);
        let mut changes = Vec::new();
        for (id, values) in all {
            if let Some((row, entry)) = found.remove(id) {
                changes.push(self.change(file, row, entry, values, &mut counters)?);
            }
        }
        self.write(snapshot, changes, &counters, true)
    }

    /// Writes changes to a file, or moves what is approved now to the shared file, if it `may_move`.
    /// Returns the changed entries.
    fn write(
        &mut self,
        snapshot: &Snapshot,
        mut changes: Vec<Change>,
        counters: &Counters,
        may_move: bool,
    ) -> Result<Vec<Entry>, Error> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let (file, kind) = (snapshot.of, snapshot.of.kind);
        for change in &changes {
            self.journal(change.step.clone());
        }
        changes.sort_by_key(|change| change.row.at);
        let touched = changes
            .iter()
            .map(|one| (one.entry.id.as_str(), &*one.entry.text));
        self.store
            .audit_records(AuditAction::Edited, kind, touched)?;
        let rows = changes
            .iter()
            .map(|one| (one.entry.id.as_str(), one.shown.as_str()));
        let rows: Vec<_> = rows.collect();
        let (mut moving, mut staying) = (Vec::new(), Vec::new());
        for one in changes
            .iter()
            .filter(|one| one.text.as_bytes() != one.entry.text)
        {
            if may_move && file.after_change(one.text.as_bytes()) != file {
                moving.push((one.entry.id.as_str(), one.text.as_str()));
            } else {
                staying.push((one.row, Some(one.text.clone())));
            }
        }
        let moved = self.write_through(kind, &Sent::Records(&rows), |writer| {
            writer.store.file(file).change(snapshot, &staying)?;
            if moving.is_empty() {
                return Ok(Vec::new());
            }
            writer.share(kind, &moving)
        })?;
        if changes.iter().any(|change| change.is_counted) {
            counters.write(self.lock())?;
        }
        let moved = moved.into_iter().map(|one| (one.from.clone(), one));
        let mut moved: HashMap<_, _> = moved.collect();
        let entries = changes.into_iter().map(|change| {
            let mut entry = change.entry;
            (entry.id, entry.text) = match moved.remove(&entry.id) {
                Some(moved) => (moved.to, moved.text.into_bytes()),
                None => (entry.id, change.shown.into_bytes()),
            };
            entry
        });
        Ok(entries.collect())
    }

    /// Returns an entry of a file with other values. Counters of a shared record change in `counters`.
    fn change(
        &self,
        file: DataFile,
        row: Row,
        entry: Entry,
        values: &[(&str, Option<String>)],
        counters: &mut Counters,
    ) -> Result<Change, Error> {
        let before = counters.shown(&entry).into_owned();
        let shown = edited(&before, values);
        // A user cannot assign their record to another user.
        if !self.store.access().is_own(entry.kind, shown.as_bytes()) {
            return Err(Error::OutOfScope(entry.id.clone()));
        }
        let field = |(name, after): &(&str, Option<String>)| Field {
            name: (*name).to_owned(),
            before: raw_field(&before, name).map(|text| redact(&text).text.into_owned()),
            after: after.clone(),
        };
        let fields = values.iter().map(field);
        let fields = fields.filter(|field| field.before.is_some() || field.after.is_some());
        let step = Step::Edited {
            kind: entry.kind,
            id: entry.id.clone(),
            fields: fields.collect(),
        };
        let has_counters = !file.is_local && self.at_primary.is_none();
        let names = counters::fields(file.kind);
        let is_counter = |(name, _): &(&str, _)| has_counters && names.contains(name);
        let (counted, own): (Vec<_>, Vec<_>) = values.iter().cloned().partition(is_counter);
        for (name, value) in &counted {
            counters.set(&entry, name, value.as_deref());
        }
        let mut text = edited(&String::from_utf8_lossy(&entry.text), &own);
        if entry.kind == Kind::Execution && own.iter().any(|(name, _)| *name == "outcome") {
            text = fitted(text, "outcome", entry.text.len());
        }
        Ok(Change {
            text,
            shown,
            is_counted: !counted.is_empty(),
            step,
            row,
            entry,
        })
    }

    /// Restores the previous values of fields: all of them, or none. With `dry_run`, only returns
    /// the result.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn revert_fields(
        &mut self,
        kind: Kind,
        id: &str,
        fields: &[Field],
        dry_run: bool,
    ) -> Result<Reverted, Error> {
        let id = &self.store().current_id(kind, id)?;
        for file in DataFile::of(kind) {
            let done = self.change_file(file, |writer, snapshot| {
                writer.revert_in(snapshot, id, fields, dry_run)
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
        id: &str,
        fields: &[Field],
        dry_run: bool,
    ) -> Result<Reverted, Error> {
        let kind = snapshot.of.kind;
        // The change to revert may have ended the record.
        let access = self.store().access();
        let found = snapshot.find(id, |entry| access.covers(entry.kind, &entry.text))?;
        let Some((row, entry)) = found else {
            return Ok(Reverted::Gone);
        };
        let mut counters = self.store().counters(snapshot.of);
        let text = counters.shown(&entry).into_owned();
        let mut back = Vec::new();
        for field in fields {
            let now = raw_field(&text, &field.name);
            let now = now.as_deref();
            if is_same(now, field.before.as_deref()) {
                continue;
            }
            if !is_same(now, field.after.as_deref()) {
                return Ok(Reverted::ChangedSince(field.name.clone()));
            }
            back.push((field.name.as_str(), field.before.clone()));
        }
        if back.is_empty() {
            return Ok(Reverted::Already);
        }
        if dry_run {
            return Ok(Reverted::Done);
        }
        let change = self.change(snapshot.of, row, entry, &back, &mut counters)?;
        if !is_record(kind, id, &change.shown) {
            return Err(not_a_record(kind, id));
        }
        // A move between files is a step of its own.
        self.write(snapshot, vec![change], &counters, false)?;
        Ok(Reverted::Done)
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
        self.try_journal(Step::Undone { of })
    }
}

/// Returns an object with other values of fields.
fn edited(object: &str, values: &[(&str, Option<String>)]) -> String {
    let set = values
        .iter()
        .filter_map(|(name, value)| Some((*name, value.clone()?)));
    let removed = values.iter().filter(|(_, value)| value.is_none());
    let removed: Vec<&str> = removed.map(|(name, _)| *name).collect();
    let text = json::with_fields(object, &set.collect::<Vec<_>>(), 6);
    json::without_fields(&text, &removed)
}

/// Returns the text of an object, if possible with this length: spaces behind the value of a field come or
/// go. So a verdict on an execution can be written in the place of the old one.
fn fitted(text: String, name: &str, length: usize) -> String {
    let fields = json::fields(text.as_bytes()).filter(|(key, _)| key == name);
    let Some(end) = fields.last().map(|(_, value)| value.end) else {
        return text;
    };
    let (before, behind) = text.split_at(end);
    let rest = behind.trim_start_matches(' ');
    match length.checked_sub(before.len() + rest.len()) {
        Some(spaces) => [before, &" ".repeat(spaces), rest].concat(),
        None => text,
    }
}

/// Error for a journal text that is not a valid record of its kind.
pub(super) fn not_a_record(kind: Kind, id: &str) -> Error {
    let message = format!("the undo journal holds no valid {kind} for `{id}`");
    Error::Refused(ErrorKind::Store, message, "memctl doctor".to_owned())
}

/// Returns `true` if two optional JSON texts are equal except for their layout.
fn is_same(a: Option<&str>, b: Option<&str>) -> bool {
    a.map(json::compact) == b.map(json::compact)
}

#[cfg(test)]
mod tests_of_counters {
    use std::fs;

    use serde_json::json;

    use super::*;
    use crate::model::{Reflexion, Scope};
    use crate::store::access::Scoped;

    #[test]
    fn counters_of_a_shared_record_leave_its_file_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("reflexion_entries.json");
        let text = "{\"entries\": [\n  {\"reflexion_id\": \"REFL-001\", \"created_at\": \"t\", \
            \"status\": \"active\",  \"rule\": \"r\"}\n]}\n";
        fs::write(&path, text).unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let shown = |name: &str| {
            let entry = store.find(Kind::Reflexion, "REFL-001").unwrap().unwrap();
            json::field(&entry.text, name).map(|value| String::from_utf8(value.to_vec()).unwrap())
        };
        let mut writer = store.write(&mut || "r".to_owned()).unwrap();
        let counts = vec![("times_injected", json!(3)), ("times_told", json!(1))];
        let counts = [("REFL-001".to_owned(), counts)];
        writer.update_all(Kind::Reflexion, &counts).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        let rule: Reflexion = store.get("REFL-001").unwrap();
        assert_eq!(rule.times_injected, Some(3.0));
        // The rest of the same change goes to the file.
        let both = [("rule", json!("s")), ("times_told", json!(2))];
        writer.update(Kind::Reflexion, "REFL-001", &both).unwrap();
        let now = fs::read_to_string(&path).unwrap();
        assert_eq!(now, text.replace("\"r\"", "\"s\""));
        assert_eq!(shown("times_told").as_deref(), Some("2"));
        let field = |name: &str, before: &str, after: &str| Field {
            name: name.to_owned(),
            before: Some(before.to_owned()),
            after: Some(after.to_owned()),
        };
        let back = [
            field("rule", "\"r\"", "\"s\""),
            field("times_told", "1", "2"),
        ];
        let reverted = writer.revert_fields(Kind::Reflexion, "REFL-001", &back, false);
        assert_eq!(reverted.unwrap(), Reverted::Done);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(shown("times_told").as_deref(), Some("1"));
    }
}

#[cfg(test)]
mod tests;
