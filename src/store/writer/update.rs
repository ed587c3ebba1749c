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
        self.redone(kind, |writer, snapshot| {
            let (row, mut entry) = writer
                .store
                .find_in(snapshot, kind, id)?
                .ok_or_else(|| not_found(kind, id))?;
            let (text, step) = writer.changed(&entry, changes, gone)?;
            writer.note(step, AuditAction::Edited, entry.user_id().as_deref())?;
            writer.send(kind, &[(id, &text)])?;
            let done = writer.store.file(kind).replace(snapshot, &row, &text);
            writer.followed(done)?;
            entry.text = text.into_bytes();
            Ok(entry)
        })
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
        self.store.audit(AuditAction::Edited, &touched)?;
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
