//! Changes of fields; all other bytes of a record stay.
//!
//! Counters of a shared record go to the file of this machine: a change of nothing else leaves the
//! shared file as it is.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::model::Kind;
use crate::store::audit::audit_log::AuditAction;
use crate::store::entry::Entry;
use crate::store::error::Error;
use crate::store::files::counters::{self, Counters};
use crate::store::files::data::json_file::Snapshot;
use crate::store::files::data_files::DataFile;
use crate::store::redaction::redact;
use crate::store::undo_journal::step::{Field, Step};
use memctl_files::json;

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
        let id = &self.store.current_id(kind, id)?;
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
        let mut counters = self.store.counters(file);
        let change = self.changed(file, &entry, &mut counters, changes, gone)?;
        self.note(change.step, AuditAction::Edited, entry.user_id().as_deref())?;
        self.send(kind, &[(id, &change.shown)])?;
        let text = &change.text;
        let mut moved = None;
        let done = if file.after_change(text.as_bytes()) != file {
            self.share(kind, &[(id, text)])
                .map(|all| moved = all.into_iter().next())
        } else if text.as_bytes() == entry.text {
            Ok(())
        } else {
            self.store.file(file).replace(snapshot, &row, text)
        };
        self.followed(done)?;
        if change.is_counted {
            counters.write(self.lock())?;
        }
        (entry.id, entry.text) = match moved {
            Some(moved) => (moved.to, moved.text.into_bytes()),
            None => (entry.id, change.shown.into_bytes()),
        };
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
        let mut now = Vec::new();
        for (id, fields) in changes {
            now.push((self.store.current_id(kind, id)?, fields.as_slice()));
        }
        for file in DataFile::of(kind) {
            self.redone(file, |writer, snapshot| {
                writer.update_in(snapshot, kind, &now)
            })?;
        }
        Ok(())
    }

    fn update_in<V: Serialize>(
        &mut self,
        snapshot: &Snapshot,
        kind: Kind,
        changes: &[(String, &[(&str, V)])],
    ) -> Result<(), Error> {
        let ids: HashSet<&str> = changes.iter().map(|(id, _)| id.as_str()).collect();
        let mut entries = HashMap::new();
        self.store
            .each_of_in(snapshot, kind, &ids, &mut |row, entry| {
                entries.insert(entry.id.clone(), (row, entry));
            })?;
        let file = snapshot.of;
        let mut counters = self.store.counters(file);
        let mut is_counted = false;
        let (mut found, mut touched) = (Vec::new(), Vec::new());
        for (id, fields) in changes {
            if let Some((row, entry)) = entries.remove(id) {
                let change = self.changed(file, &entry, &mut counters, fields, &[])?;
                is_counted |= change.is_counted;
                self.journal(change.step);
                let text = (change.text.as_bytes() != entry.text).then_some(change.text);
                found.push((row, text, change.shown, id.as_str()));
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
            .map(|(_, _, shown, id)| (*id, shown.as_str()))
            .collect();
        self.send(kind, &rows)?;
        let texts = found
            .iter()
            .filter_map(|(row, text, _, id)| Some((row, text.as_deref()?, *id)));
        let (staying, moving): (Vec<_>, Vec<_>) =
            texts.partition(|(_, text, _)| file.after_change(text.as_bytes()) == file);
        let entries: Vec<_> = staying.iter().map(|(row, text, _)| (*row, *text)).collect();
        let mut done = Ok(());
        if !entries.is_empty() {
            done = self.store.file(file).replace_all(snapshot, &entries);
        }
        if done.is_ok() && !moving.is_empty() {
            let moving: Vec<_> = moving.iter().map(|(_, text, id)| (*id, *text)).collect();
            done = self.share(kind, &moving).map(drop);
        }
        self.followed(done)?;
        if is_counted {
            counters.write(self.lock())?;
        }
        Ok(())
    }

    /// Returns an entry of a file with changed fields. Counters of a shared record change in
    /// `counters`.
    fn changed<V: Serialize>(
        &mut self,
        file: DataFile,
        entry: &Entry,
        counters: &mut Counters,
        changes: &[(&str, V)],
        gone: &[&str],
    ) -> Result<Change, Error> {
        let text = counters.shown(entry).into_owned();
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
        let sets = changes.iter().map(|(name, text)| (*name, Some(&**text)));
        let all = sets.chain(gone.iter().map(|name| (*name, None)));
        let (text, is_counted) = self.sorted_out(file, entry, counters, all);
        Ok(Change {
            text,
            shown: new,
            is_counted,
            step,
        })
    }

    /// Sets fields of an entry of a file to JSON texts, or takes them away: counters of a shared
    /// record in `counters`, all others in the text that it returns. The flag is `true` if a counter
    /// changed.
    pub(super) fn sorted_out<'a>(
        &self,
        file: DataFile,
        entry: &Entry,
        counters: &mut Counters,
        changes: impl Iterator<Item = (&'a str, Option<&'a str>)>,
    ) -> (String, bool) {
        let has_counters = !file.is_local && self.at_primary.is_none();
        let names = counters::fields(file.kind);
        let (counted, own): (Vec<_>, Vec<_>) =
            changes.partition(|(name, _)| has_counters && names.contains(name));
        for (name, value) in &counted {
            counters.set(entry, name, *value);
        }
        let text = String::from_utf8_lossy(&entry.text).into_owned();
        let set: Vec<(&str, String)> = own
            .iter()
            .filter_map(|(name, value)| Some((*name, (*value)?.to_owned())))
            .collect();
        let gone = own.iter().filter(|(_, value)| value.is_none());
        let gone: Vec<&str> = gone.map(|(name, _)| *name).collect();
        let text = if set.is_empty() {
            text
        } else {
            json::with_fields(&text, &set, 6)
        };
        let text = if gone.is_empty() {
            text
        } else {
            json::without_fields(&text, &gone)
        };
        (text, !counted.is_empty())
    }
}

/// A changed entry.
struct Change {
    /// Text for its file.
    text: String,
    /// Text with the counters of this machine.
    shown: String,
    /// `true` if a counter changed.
    is_counted: bool,
    step: Step,
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;
    use crate::model::{Reflexion, Scope};
    use crate::store::access::scoped::Scoped;
    use crate::store::writer::revert::Reverted;

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
