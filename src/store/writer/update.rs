//! Changes of fields; all other bytes of a record stay.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::json;
use crate::model::Kind;
use crate::store::audit::audit_event::AuditAction;
use crate::store::entry::Entry;
use crate::store::error::Error;
use crate::store::files::data::json_file::Snapshot;
use crate::store::files::data_files::DataFile;
use crate::store::redaction::redact;
use crate::store::undo_journal::step::{Field, Step};

use super::{Writer, not_found};

impl Writer {
    /// Sets fields of a record. All other fields keep every byte, and so does a value given as JSON
    /// text.
    pub fn update<V: Serialize>(
        &mut self,
        kind: Kind,
        id: &str,
        changes: &[(&str, V)],
    ) -> Result<Entry, Error> {
        self.update_without(kind, id, changes, &[])
    }

    /// Sets fields of a record, and removes others.
    pub fn update_without<V: Serialize>(
        &mut self,
        kind: Kind,
        id: &str,
        changes: &[(&str, V)],
        gone: &[&str],
    ) -> Result<Entry, Error> {
        for file in DataFile::of(kind) {
            let updated = self.redone(file, |writer, snapshot| {
                writer.update_one_in(snapshot, id, changes, gone)
            })?;
            if let Some(entry) = updated {
                return Ok(entry);
            }
        }
        Err(not_found(kind, id))
    }

    fn update_one_in<V: Serialize>(
        &mut self,
        snapshot: &Snapshot,
        id: &str,
        changes: &[(&str, V)],
        gone: &[&str],
    ) -> Result<Option<Entry>, Error> {
        let (file, kind) = (snapshot.of, snapshot.of.kind);
        let Some((row, mut entry)) = self.store.find_in(snapshot, kind, id)? else {
            return Ok(None);
        };
        let (text, step) = self.changed(&entry, changes, gone)?;
        self.note(step, AuditAction::Edited, entry.user_id().as_deref())?;
        self.send(kind, &[(id, &text)])?;
        let now = file.after_change(text.as_bytes());
        let done = if now == file {
            self.store.file(file).replace(snapshot, &row, &text)
        } else {
            self.share(kind, &[(id, &text)])
        };
        self.followed(done)?;
        entry.text = text.into_bytes();
        Ok(Some(entry))
    }

    /// Sets fields of several records in one write. Skips missing records.
    pub fn update_all<V: Serialize>(
        &mut self,
        kind: Kind,
        changes: &[(String, Vec<(&str, V)>)],
    ) -> Result<(), Error> {
        if changes.is_empty() {
            return Ok(());
        }
        for file in DataFile::of(kind) {
            self.redone(file, |writer, snapshot| {
                writer.update_in(snapshot, kind, changes)
            })?;
        }
        Ok(())
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
        if found.is_empty() {
            return Ok(());
        }
        let touched: Vec<_> = touched.iter().map(|(id, u)| (*id, u.as_deref())).collect();
        self.store.audit(AuditAction::Edited, &touched)?;
        found.sort_by_key(|(row, ..)| row.at);
        found.dedup_by_key(|(row, ..)| row.at);
        let rows: Vec<_> = found
            .iter()
            .map(|(_, text, id)| (*id, text.as_str()))
            .collect();
        self.send(kind, &rows)?;
        let file = snapshot.of;
        let (staying, moving): (Vec<_>, Vec<_>) = found
            .iter()
            .partition(|(_, text, _)| file.after_change(text.as_bytes()) == file);
        let entries: Vec<_> = staying
            .iter()
            .map(|(row, text, _)| (row, text.as_str()))
            .collect();
        let mut done = self.store.file(file).replace_all(snapshot, &entries);
        if done.is_ok() && !moving.is_empty() {
            let moving: Vec<_> = moving.iter().map(|(_, text, id)| (*id, &**text)).collect();
            done = self.share(kind, &moving);
        }
        self.followed(done)
    }

    /// Returns the text of an entry with changed fields, and the journal step.
    fn changed<V: Serialize>(
        &mut self,
        entry: &Entry,
        changes: &[(&str, V)],
        gone: &[&str],
    ) -> Result<(String, Step), Error> {
        let text = String::from_utf8_lossy(&entry.text);
        let changes: Vec<(&str, String)> = changes
            .iter()
            .map(|(name, value)| Ok((*name, json::pretty(&self.redacted(value)?.0, 3))))
            .collect::<Result<_, Error>>()?;
        let new = json::with_fields(&text, &changes, 6);
        let new = if gone.is_empty() {
            new
        } else {
            json::without_fields(&new, gone)
        };
        // A user cannot assign their record to another user.
        if !self.store.access().is_own(entry.kind, new.as_bytes()) {
            let what = entry.id.clone();
            return Err(Error::OutOfScope { what });
        }
        let before: HashMap<_, _> = json::fields(text.as_bytes()).collect();
        let field = |(name, after): &(&str, String)| Field {
            name: (*name).to_owned(),
            before: before
                .get(*name)
                .map(|span| redact(&text[span.clone()]).text.into_owned()),
            after: Some(after.clone()),
        };
        let taken = gone.iter().filter_map(|name| {
            let span = before.get(*name)?;
            Some(Field {
                name: (*name).to_owned(),
                before: Some(redact(&text[span.clone()]).text.into_owned()),
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
}
