//! Taking a write on a record back: the other direction of what the journal knows.
//!
//! Each of these is a write like any other, noted in the journal and the audit, so that it can be taken
//! back as well. What has been changed since is never overwritten; what is as it was before is left.

use crate::model::Kind;

use super::audit::Did;
use super::changes::{self, Field, Step};
use super::error::Error;
use super::json_file::Snapshot;
use super::json_text;
use super::offsets::Row;
use super::scoped::{Entry, Scoped};
use super::tombstones;
use super::writer::Writer;

/// What came of taking a write back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reverted {
    /// It is as it was before.
    Done,
    /// It was as before already.
    Already,
    /// It was not touched: this field has been changed since.
    ChangedSince(String),
    /// It was not touched: the record is not there any more.
    Gone,
}

impl Writer {
    /// Gives fields of a record the values that they had before: all of them, or none. With `dry_run`
    /// it is only said what would come of it.
    pub fn revert_fields(
        &mut self,
        kind: Kind,
        id: &str,
        fields: &[Field],
        dry_run: bool,
    ) -> Result<Reverted, Error> {
        let snapshot = self.prepare(kind)?;
        let Some((row, entry)) = self.store().find_in(&snapshot, kind, id)? else {
            return Ok(Reverted::Gone);
        };
        let text = String::from_utf8_lossy(&entry.text).into_owned();
        let now = |name: &str| {
            let span = json_text::fields(text.as_bytes()).filter(|(key, _)| key == name);
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
        let text = json_text::without_fields(&json_text::with_fields(&text, &set, 6), &gone);
        if !self.store().sight().is_own(kind, text.as_bytes()) {
            let what = id.to_owned();
            return Err(Error::OutOfScope { what });
        }
        let step = Step::Edited {
            kind,
            id: id.to_owned(),
            fields: back.clone(),
        };
        self.note(step, Did::Edited, entry.user_id().as_deref())?;
        self.store().file(kind).replace(&snapshot, &row, &text)?;
        Ok(Reverted::Done)
    }

    /// Puts a record that was removed back where it stood: behind the record `after`, or first.
    pub fn put_back(
        &mut self,
        kind: Kind,
        id: &str,
        after: Option<&str>,
        text: &str,
        at: &str,
    ) -> Result<Reverted, Error> {
        let snapshot = self.prepare(kind)?;
        if self.store().find_in(&snapshot, kind, id)?.is_some() {
            return Ok(Reverted::Already);
        }
        if !self.store().sight().covers(kind, text.as_bytes()) {
            let what = id.to_owned();
            return Err(Error::OutOfScope { what });
        }
        let user = json_text::string_field(text.as_bytes(), "user_id");
        let added = Step::Added {
            kind,
            id: id.to_owned(),
        };
        self.note(
            added,
            Did::Added,
            user.as_deref().filter(|_| kind.has_user()),
        )?;
        let file = self.store().file(kind);
        let neighbour = match after {
            Some(before) => self.store().find_in(&snapshot, kind, before)?,
            None => first(&snapshot, kind)?,
        };
        if let Some((row, entry)) = neighbour {
            let beside = String::from_utf8_lossy(&entry.text);
            let both = match after {
                Some(_) => format!("{beside},\n    {text}"),
                None => format!("{text},\n    {beside}"),
            };
            file.replace(&snapshot, &row, &both)?;
        } else {
            let skill = json_text::string_field(text.as_bytes(), "skill").unwrap_or_default();
            file.append(&snapshot, text, id, &skill)?;
        }
        // Last: a crash before it leaves a record with a tombstone, which hides nothing.
        tombstones::lift(self.lock(), id, kind, at)?;
        Ok(Reverted::Done)
    }

    /// Notes that a file of a skill is about to be written, from the skills directory.
    pub fn note_file(&mut self, path: &str, before: Option<&str>, after: Option<&str>) {
        let splice = changes::Splice::between(before, after);
        self.journal(Step::File {
            path: path.to_owned(),
            splice,
        });
    }

    /// Notes that a change has been taken back.
    pub fn note_undone(&mut self, of: &str) -> Result<(), Error> {
        let of = of.to_owned();
        changes::append(self.lock(), self.store().act(), Step::Undone { of })
    }
}

/// The first entry of a file, and where it lies.
fn first(snapshot: &Snapshot, kind: Kind) -> Result<Option<(Row, Entry)>, Error> {
    let mut first = None;
    snapshot.each(false, &mut |row| {
        first = Some(row.clone());
        false
    })?;
    let Some(row) = first else {
        return Ok(None);
    };
    let entry = Scoped::read(snapshot, kind, &row)?;
    Ok(Some((row, entry)))
}

/// Whether two JSON texts, or the lack of one, are the same but for their layout.
fn is_same(a: Option<&str>, b: Option<&str>) -> bool {
    a.map(json_text::compact) == b.map(json_text::compact)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Correction, Scope};
    use crate::store::Act;

    fn store(dir: &std::path::Path) -> Scoped {
        let act = Act {
            change: "c".to_owned(),
            ..Act::default()
        };
        Scoped::new(dir, Scope::All).acting(act)
    }

    fn correction(words: &str) -> Correction {
        serde_json::from_value(serde_json::json!({"skill": "hr/x", "user_correction": words}))
            .unwrap()
    }

    fn bytes(dir: &std::path::Path) -> Vec<u8> {
        std::fs::read(dir.join("corrections.json")).unwrap()
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
                .remove(Kind::Correction, id, "", chrono::DateTime::UNIX_EPOCH)
                .unwrap();
            assert_ne!(bytes(dir.path()), before);
            let lines = store.changes().unwrap();
            let Some(Step::Removed {
                after,
                text: Some(text),
                ..
            }) = lines.last().map(|l| &l.step)
            else {
                panic!("{lines:?}");
            };
            let back = writer.put_back(Kind::Correction, id, after.as_deref(), text, "");
            assert_eq!(back.unwrap(), Reverted::Done);
            assert_eq!(bytes(dir.path()), before, "{id}");
            assert!(store.buried_ids(Kind::Correction).unwrap().is_empty());
        }
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
}
