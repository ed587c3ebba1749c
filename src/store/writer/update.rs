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
        let updated = self
            .update_records(kind, vec![(id.to_owned(), values)])?
            .pop();
        updated.ok_or_else(|| Error::not_found(kind, id))
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
mod tests {
    use super::*;
    use crate::model::{Correction, Scope};
    use crate::store::writer::remove::RemovalMode;
    use crate::store::{Approvals, AuditContext, RawEntry, Scoped};
    use memctl_files::named;

    fn store(dir: &std::path::Path) -> Scoped {
        let audit_context = AuditContext {
            change: "c".to_owned(),
            ..AuditContext::default()
        };
        let state = dir.join("state");
        let approvals = Approvals::of(Some(&state), dir, false);
        Scoped::new(dir, Scope::All)
            .acting(audit_context)
            .trusting(approvals)
    }

    fn correction(words: &str) -> Correction {
        serde_json::from_value(serde_json::json!({"skill": "hr/x", "user_correction": words}))
            .unwrap()
    }

    fn bytes(dir: &std::path::Path) -> Vec<u8> {
        std::fs::read(dir.join("corrections.json")).unwrap()
    }

    /// Restores removed corrections.
    fn put_back(writer: &mut Writer, removed: &[(&str, &str)]) -> usize {
        let entries = removed.iter().map(|(id, text)| RawEntry {
            id: (*id).to_owned(),
            is_local: false,
            text: (*text).to_owned(),
        });
        let entries: Vec<_> = entries.collect();
        writer
            .restore(Kind::Correction, &entries, Some(""))
            .unwrap()
    }

    #[test]
    fn removed_records_come_back_to_their_places_byte_for_byte() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let mut writer = store.write(&mut || "key".to_owned()).unwrap();
        for words in ["a", "b", "c"] {
            writer
                .append(correction(words), chrono::DateTime::UNIX_EPOCH)
                .unwrap();
        }
        let before = bytes(dir.path());
        for id in ["CORR-001", "CORR-002", "CORR-003"] {
            writer
                .remove(
                    Kind::Correction,
                    &[(id, "")],
                    chrono::DateTime::UNIX_EPOCH,
                    RemovalMode::Undoable,
                )
                .unwrap();
            assert_ne!(bytes(dir.path()), before);
            let lines = store.changes().unwrap();
            let Some(Step::Removed {
                text: Some(text), ..
            }) = lines.last().map(|l| &l.step)
            else {
                panic!("{lines:?}");
            };
            assert_eq!(put_back(&mut writer, &[(id, text)]), 1);
            assert_eq!(bytes(dir.path()), before, "{id}");
            let forgotten = store.all_forgotten().unwrap();
            assert_eq!(forgotten.ids(Kind::Correction).count(), 0);
        }
    }

    #[test]
    fn several_go_and_come_back_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let mut writer = store.write(&mut || "key".to_owned()).unwrap();
        let epoch = chrono::DateTime::UNIX_EPOCH;
        for words in ["a", "b", "c", "d", "e"] {
            drop(writer.append(correction(words), epoch).unwrap());
        }
        let before = bytes(dir.path());
        let all: Vec<String> = (1..=5).map(|n| format!("CORR-{n:03}")).collect();
        for ids in [&all[..], &all[..2], &all[1..4], &all[3..]] {
            let removals: Vec<_> = ids.iter().rev().map(|id| (id.as_str(), "")).collect();
            let earlier = store.changes().unwrap().len();
            let removed = writer.remove(Kind::Correction, &removals, epoch, RemovalMode::Undoable);
            assert_eq!(removed.unwrap().len(), ids.len());
            let lines = store.changes().unwrap();
            let mut run = Vec::new();
            for line in lines[earlier..].iter().rev() {
                if let Step::Removed {
                    id,
                    text: Some(text),
                    ..
                } = &line.step
                {
                    run.push((id.as_str(), text.as_str()));
                }
            }
            put_back(&mut writer, &run);
            assert_eq!(bytes(dir.path()), before, "{ids:?}");
        }
    }

    #[test]
    fn several_are_found_at_one_look() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        // The table holds only the start of ids this long.
        let long = ["x".repeat(80), "x".repeat(81)];
        let entry = |id: &str| serde_json::json!({"correction_id": id, "skill": "hr/x"});
        let all = [
            "CORR-001", "CORR-002", "CORR-003", &long[0], &long[1], "CORR-002",
        ];
        let text = serde_json::json!({"corrections": all.map(entry)}).to_string();
        named::replace(&dir.path().join("corrections.json"), text.as_bytes()).unwrap();
        let check = |ids: &[&str], expected: &[&str]| {
            let (selected, mut found) = (ids.iter().copied().collect(), Vec::new());
            let mut visit = |entry: Entry| found.push(entry.id);
            store
                .each_of(Kind::Correction, &selected, &mut visit)
                .unwrap();
            assert_eq!(found, expected, "{ids:?}");
        };
        check(&["CORR-003", "CORR-002", "CORR-009", ""], &all[1..3]);
        check(&[&long[1], "CORR-001"], &["CORR-001", &long[1]]);
        check(&all, &all[..5]);
        check(&[], &[]);
    }

    #[test]
    fn restored_record_has_no_tombstone() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let mut writer = store.write(&mut || "key".to_owned()).unwrap();
        let epoch = chrono::DateTime::UNIX_EPOCH;
        let kind = Kind::Correction;
        drop(writer.append(correction("a"), epoch).unwrap());
        let words = [("CORR-001", "its words")];
        let mut removed = writer
            .remove(kind, &words, epoch, RemovalMode::Undoable)
            .unwrap();
        let removed = removed.remove(0);
        let check = |is_removed: bool| {
            let forgotten = store.all_forgotten().unwrap();
            let found = store.tombstone_of(kind, "its words").unwrap();
            assert_eq!(found.is_some(), is_removed);
            assert_eq!(forgotten.has_content(kind, "its words"), is_removed);
            assert_eq!(forgotten.has_id(kind, "CORR-001"), is_removed);
            assert!(!forgotten.has_content(kind, "other words"));
        };
        check(true);
        let text = std::str::from_utf8(&removed.text).unwrap();
        let id = "CORR-001";
        put_back(&mut writer, &[(id, text)]);
        check(false);
    }

    #[test]
    fn fields_go_back_unless_they_were_changed_since() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let mut writer = store.write(&mut || "key".to_owned()).unwrap();
        writer
            .append(correction("a"), chrono::DateTime::UNIX_EPOCH)
            .unwrap();
        let before = bytes(dir.path());
        let set = [("user_correction", "b"), ("ours", "new")];
        writer.update(Kind::Correction, "CORR-001", &set).unwrap();
        let Some(Step::Edited { fields, .. }) = store.changes().unwrap().pop().map(|l| l.step)
        else {
            panic!("no edit");
        };
        writer
            .update(Kind::Correction, "CORR-001", &[("ours", "newer")])
            .unwrap();
        let mut revert = |fields: &[Field]| {
            writer
                .revert_fields(Kind::Correction, "CORR-001", fields, false)
                .unwrap()
        };
        assert_eq!(revert(&fields), Reverted::ChangedSince("ours".to_owned()));
        let Some(Step::Edited { fields: newer, .. }) =
            store.changes().unwrap().pop().map(|l| l.step)
        else {
            panic!("no edit");
        };
        assert_eq!(revert(&newer), Reverted::Done);
        assert_eq!(revert(&fields), Reverted::Done);
        assert_eq!(bytes(dir.path()), before);
        assert_eq!(revert(&fields), Reverted::Already);
    }

    /// Asserts that the saved table of a file is that of a scan; the highest id may be one of a record that left.
    fn assert_table_is_of(store: &Scoped, of: DataFile, after: &str) {
        let scanned = store.file(of).by_scan().unwrap().table;
        let saved = store.file(of).by_table().unwrap().unwrap().table;
        assert!(saved.rows().eq(scanned.rows()), "{after}");
        assert!(saved.header.highest >= scanned.header.highest, "{after}");
        let header = crate::store::files::data::offsets::Header {
            generation: scanned.header.generation,
            highest: scanned.header.highest,
            ..saved.header.clone()
        };
        assert_eq!(header, scanned.header, "{after}");
    }

    #[test]
    fn the_table_follows_each_change() {
        let entry = |n: usize, gap: &str| {
            format!(
                "{{\"correction_id\": \"CORR-{n:03}\",{gap}\"skill\": \"hr/x\", \"user_correction\": \"{n}\"}}"
            )
        };
        for (separator, end) in [
            (",\n    ", "\n  ]\n}\n"),
            (" ,", "]}"),
            (",", ", ], \"format\": 1}"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let store = store(dir.path());
            let entries: Vec<String> = (1..=9).map(|n| entry(n, &" ".repeat(n))).collect();
            let text = format!("{{\"corrections\": [{}{end}", entries.join(separator));
            named::replace(&dir.path().join("corrections.json"), text.as_bytes()).unwrap();
            let mut writer = store.write(&mut || "key".to_owned()).unwrap();
            let (kind, epoch) = (Kind::Correction, chrono::DateTime::UNIX_EPOCH);
            let file = DataFile::shared(kind);
            for id in ["CORR-004", "CORR-009", "CORR-001"] {
                let longer = [("user_correction", "a longer text than before")];
                writer.update(kind, id, &longer).unwrap();
                assert_table_is_of(&store, file, id);
            }
            for ids in [&["CORR-009"][..], &["CORR-001", "CORR-003", "CORR-004"]] {
                let removals: Vec<_> = ids.iter().map(|id| (*id, "")).collect();
                let mode = RemovalMode::Undoable;
                let removed = writer.remove(kind, &removals, epoch, mode).unwrap();
                assert_table_is_of(&store, file, ids[0]);
                for one in &removed {
                    let text = std::str::from_utf8(&one.text).unwrap();
                    assert_eq!(put_back(&mut writer, &[(&one.id, text)]), 1);
                    assert_table_is_of(&store, file, &one.id);
                }
            }
            writer.append(correction("one more"), epoch).unwrap();
            assert_table_is_of(&store, file, "an append");
        }
    }

    /// Executions of more than a megabyte, each with its verdict still to come.
    fn large(dir: &std::path::Path) -> Vec<u8> {
        let entries: Vec<String> = (0..400).map(|n| {
        let words = "x".repeat(3_000 + n);
        format!("{{\"execution_id\": \"EXEC-{}\", \"skill\": \"hr/x\", \"outcome\": \"pending_review\", \"input_summary\": \"{words}\"}}", 20_260_101_000_000 + n as u64)
    }).collect();
        let text = format!(
            "{{\"entries\": [\n    {}\n  ]\n}}\n",
            entries.join(",\n    ")
        );
        named::replace(&dir.join(Kind::Execution.file()), text.as_bytes()).unwrap();
        text.into_bytes()
    }

    #[test]
    fn a_verdict_takes_the_place_of_the_old_one_and_gives_it_back() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let before = large(dir.path());
        let read = || std::fs::read(dir.path().join(Kind::Execution.file())).unwrap();
        let state = || {
            store
                .directory()
                .state(Kind::Execution.file())
                .unwrap()
                .unwrap()
        };
        let mut writer = store.write(&mut || "key".to_owned()).unwrap();
        let kind = Kind::Execution;
        store.count(kind).unwrap();
        let (first, mut in_place) = (state(), 0);
        for n in 0..40 {
            let id = format!("EXEC-{}", 20_260_101_000_000_u64 + n * 7);
            let there = state();
            writer
                .update(kind, &id, &[("outcome", "rejected")])
                .unwrap();
            in_place += u64::from(state().is_same_file(&there));
            assert_eq!(state().size, first.size);
            assert_table_is_of(&store, DataFile::shared(kind), &id);
            let entry = store.find(kind, &id).unwrap().unwrap();
            assert_eq!(
                json::string_field(&entry.text, "outcome").unwrap(),
                "rejected"
            );
            let Some(Step::Edited { fields, .. }) = store.changes().unwrap().pop().map(|l| l.step)
            else {
                panic!("no edit");
            };
            let generations = store.positions(kind).unwrap().generations().next();
            let reverted = writer.revert_fields(kind, &id, &fields, false).unwrap();
            assert_eq!(reverted, Reverted::Done);
            assert_ne!(
                store.positions(kind).unwrap().generations().next(),
                generations
            );
            assert!(read() == before, "{id}");
        }
        // A verdict on the border of two sectors is not written over.
        assert!((30..40).contains(&in_place), "{in_place}");
    }
}
