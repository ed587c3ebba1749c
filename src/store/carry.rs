//! Records and lines on their way out of a memory directory and into another, byte for byte.
//!
//! An entry leaves as the text that it is and comes back as that text, whether a strict parser reads
//! it or not. What stands around the entries of a file (a `format`, keys of other programs) is its
//! frame, and travels with them.
//!
//! Deliberately absent: which record may come in under which id. That is a decision; see
//! `engine::import`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use crate::model::{Kind, Viewer};
use crate::platform::named;

use super::audit::Did;
use super::changes::Step;
use super::error::{Error, Problem};
use super::inventory::{self, Role};
use super::json_file::{JsonFile, Snapshot};
use super::json_write::CLOSING;
use super::log::Sync;
use super::scoped::{Entry, Scoped};
use super::writer::Writer;
use super::{atomic, directory, json_text, log, notes};

/// What stands around the entries of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Everything in front of the first entry.
    pub head: String,
    /// Everything behind the last one.
    pub tail: String,
}

impl Frame {
    /// The frame that this program writes.
    pub fn plain(kind: Kind) -> Self {
        Self {
            head: format!("{{\n  \"{}\": [\n    ", kind.root_key()),
            tail: CLOSING.to_owned(),
        }
    }

    /// Whether entries can stand in it.
    fn holds(&self, kind: Kind) -> bool {
        let whole = format!("{}{}", self.head, self.tail);
        let text = whole.as_bytes();
        let is_whole = json_text::skip_value(text, json_text::skip_space(text, 0)).is_ok();
        let array = json_text::fields(text).find(|(key, _)| key == kind.root_key());
        is_whole && array.is_some_and(|(_, span)| json_text::compact(&whole[span]) == "[]")
    }
}

/// An entry that is to be stored as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// Its id; empty where it has none.
    pub id: String,
    /// Its text.
    pub text: String,
}

/// The layout that this program gives to an entry of a file.
pub fn laid_out(json: &str) -> String {
    json_text::pretty(json, 2)
}

/// The value of a text field of an entry, whether a strict parser reads the entry or not.
pub fn text_field(entry: &[u8], name: &str) -> Option<String> {
    json_text::string_field(entry, name).map(Cow::into_owned)
}

/// The JSON text of a field of an entry.
pub fn raw_field(entry: &str, name: &str) -> Option<String> {
    let text = json_text::field(entry.as_bytes(), name)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// The entries of a directory that belongs to another program or another workspace, oldest first,
/// and what is wrong with the file. Nothing is written there, not even what could be made again.
pub fn foreign_entries(directory: &Path, kind: Kind) -> Result<(Vec<Entry>, Vec<Problem>), Error> {
    let snapshot = JsonFile::new(&named::directory(directory), kind, false).by_scan()?;
    let mut entries = Vec::new();
    let mut rows = Vec::new();
    snapshot.each(false, &mut |row| {
        rows.push(row.clone());
        true
    })?;
    for row in rows {
        entries.push(Scoped::read(&snapshot, kind, &row)?);
    }
    Ok((entries, snapshot.problems))
}

/// The lines of a log of such a directory.
pub fn foreign_lines(directory: &Path, name: &str) -> Result<Vec<Vec<u8>>, Error> {
    log::lines(&named::directory(directory), name)
}

/// The name of the workspace that such a directory belongs to, if it says.
pub fn foreign_origin(directory: &Path) -> Option<String> {
    Some(directory::identity(&named::directory(directory))?.origin)
}

impl Scoped {
    /// What stands around the entries of a file; `None` where there is no file, or its end is not
    /// sound. A frame belongs to nobody in particular, so that within a scope there is none.
    pub fn frame(&self, kind: Kind) -> Result<Option<Frame>, Error> {
        if !self.sees_all() {
            return Ok(None);
        }
        let snapshot = self.file(kind).by_scan()?;
        let header = &snapshot.table.header;
        let mut first = None;
        snapshot.each(false, &mut |row| {
            first = Some(row.at);
            false
        })?;
        let (Some(first), true) = (first, header.close != 0) else {
            return Ok(None);
        };
        let bytes = self.directory().read(&snapshot.path, u64::MAX);
        let bytes = bytes.map_err(Error::io("read", &snapshot.path))?;
        let bytes = bytes.unwrap_or_default();
        let part = |range: std::ops::Range<u64>| {
            let at = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
            String::from_utf8(bytes.get(at)?.to_vec()).ok()
        };
        let frame = part(0..first).zip(part(header.tail..header.stamp.size));
        let frame = frame.map(|(head, tail)| Frame { head, tail });
        Ok(frame.filter(|frame| frame.holds(kind)))
    }

    /// Whether an entry with this text would be the caller's to see and to write, expired or not.
    pub fn covers(&self, kind: Kind, entry: &[u8]) -> bool {
        self.sight().covers(kind, entry)
    }

    /// The lines of a log, each as it is. A user sees those that carry his id; within a scope there are
    /// none, since lines belong to no domain.
    pub fn lines(&self, name: &str) -> Result<Vec<Vec<u8>>, Error> {
        if !self.scope().allows(None) {
            return Ok(Vec::new());
        }
        let mut lines = log::lines(self.directory(), name)?;
        lines.retain(|line| self.sees_all() || self.is_own_line(line));
        Ok(lines)
    }

    /// Whether a line carries the id of the user who asks.
    fn is_own_line(&self, line: &[u8]) -> bool {
        let user = json_text::string_field(line, "user_id");
        user.is_some() && self.viewer().sees(user.as_deref())
    }
}

impl Writer {
    /// The text of an entry or of a line as it may be stored.
    fn storable<'a>(&mut self, json: &'a str) -> Cow<'a, str> {
        let Some(redact) = self.store().redaction() else {
            return Cow::Borrowed(json);
        };
        let redacted = redact(json);
        self.leave_out(redacted.found);
        redacted.text
    }

    /// Adds entries as they are, behind those that are there; `frame` is what is to stand around them
    /// where there is no file yet. All of them are on the disk when this returns, or none is.
    ///
    /// Secrets do not come in with them. Nobody else may have their ids.
    pub fn restore(
        &mut self,
        kind: Kind,
        entries: &[Carried],
        frame: Option<&Frame>,
    ) -> Result<(), Error> {
        if entries.is_empty() {
            return Ok(());
        }
        for entry in entries {
            if !self.store().sight().covers(kind, entry.text.as_bytes()) {
                let what = format!("{kind} {}", entry.id);
                return Err(Error::OutOfScope { what });
            }
        }
        let mut is_first = true;
        self.redone(kind, |writer, snapshot| {
            if std::mem::take(&mut is_first) {
                return writer.restore_to(snapshot, kind, entries, frame);
            }
            // The other program may have saved what the attempt before has written.
            let mut missing = Vec::new();
            for entry in entries {
                let is_there = !entry.id.is_empty() && Scoped::holds(snapshot, kind, &entry.id)?;
                if !is_there {
                    missing.push(entry.clone());
                }
            }
            writer.restore_to(snapshot, kind, &missing, frame)
        })
    }

    fn restore_to(
        &mut self,
        snapshot: &Snapshot,
        kind: Kind,
        entries: &[Carried],
        frame: Option<&Frame>,
    ) -> Result<(), Error> {
        if entries.is_empty() {
            return Ok(());
        }
        let texts: Vec<Cow<'_, str>> = entries
            .iter()
            .map(|entry| self.storable(&entry.text))
            .collect();
        let texts: Vec<&str> = texts.iter().map(Cow::as_ref).collect();
        let mut touched = Vec::new();
        for (entry, text) in entries.iter().zip(&texts) {
            if !entry.id.is_empty() {
                let id = entry.id.clone();
                self.journal(Step::Added { kind, id });
                let user = json_text::string_field(text.as_bytes(), "user_id");
                touched.push((entry.id.as_str(), user.filter(|_| kind.has_user())));
            }
        }
        let touched: Vec<_> = touched.iter().map(|(id, u)| (*id, u.as_deref())).collect();
        self.store().audit(Did::Added, &touched)?;
        let rows = entries.iter().zip(&texts);
        let rows: Vec<_> = rows
            .map(|(entry, text)| (entry.id.as_str(), *text))
            .collect();
        self.send(kind, &rows)?;
        let plain = Frame::plain(kind);
        let frame = frame.filter(|frame| frame.holds(kind)).unwrap_or(&plain);
        let done = self
            .store()
            .file(kind)
            .append_all(snapshot, &texts, (&frame.head, &frame.tail));
        self.followed(done)
    }

    /// Adds lines to a log as they are, but for secrets.
    pub fn restore_lines(&mut self, name: &str, lines: &[String]) -> Result<(), Error> {
        let lines: Vec<String> = lines
            .iter()
            .map(|line| self.storable(line).into_owned())
            .collect();
        log::append_all(self.lock(), name, &lines, Sync::Wait)
    }

    /// Takes lines out of a log: those that `is_kept` does not want. Answers how many went.
    pub fn drop_lines(
        &mut self,
        name: &str,
        is_kept: &dyn Fn(&[u8]) -> bool,
    ) -> Result<u64, Error> {
        let lines = log::lines(self.lock().directory(), name)?;
        let mut kept = Vec::new();
        let mut dropped = 0;
        for line in &lines {
            if is_kept(line) {
                kept.extend_from_slice(line);
                kept.push(b'\n');
            } else {
                dropped += 1;
            }
        }
        if dropped > 0 {
            atomic::replace(self.lock().directory(), name, &kept)?;
        }
        Ok(dropped)
    }

    /// Removes every record of a kind that the caller may see, expired ones too, the file being written
    /// once. Their ids are not given again, and nothing else is remembered of them. A user removes only
    /// what is his: rules and fixes are everybody's. Answers the ids.
    pub fn remove_visible(&mut self, kind: Kind, at: &str) -> Result<Vec<String>, Error> {
        if *self.store().viewer() != Viewer::Owner && !kind.has_user() {
            return Ok(Vec::new());
        }
        let mut gone = Vec::new();
        self.redone(kind, |writer, snapshot| {
            writer.remove_visible_of(snapshot, kind, at, &mut gone)
        })?;
        Ok(gone)
    }

    fn remove_visible_of(
        &mut self,
        snapshot: &Snapshot,
        kind: Kind,
        at: &str,
        gone: &mut Vec<String>,
    ) -> Result<(), Error> {
        let mut rows = Vec::new();
        snapshot.each(false, &mut |row| {
            rows.push(row.clone());
            true
        })?;
        let mut ids = Vec::new();
        let mut offsets = HashSet::new();
        for row in rows {
            let entry = Scoped::read(snapshot, kind, &row)?;
            if self.store().sight().covers(kind, &entry.text) {
                offsets.insert(row.at);
                ids.push(entry.id);
            }
        }
        if !ids.is_empty() {
            let touched: Vec<_> = ids.iter().map(|id| (id.as_str(), None)).collect();
            self.store().audit(Did::Removed, &touched)?;
            self.bury_ids(kind, &ids, at)?;
            let file = self.store().file(kind);
            let done = file.keep_only(snapshot, &|row| !offsets.contains(&row.at));
            *gone = ids;
            self.followed(done)?;
        }
        Ok(())
    }

    /// Removes files and directories of the memory directory that hold what is remembered, in an order
    /// that a crash can interrupt anywhere: nothing that is gone can come back from what is left, and
    /// the same call again goes on. For those who may see all of it.
    pub fn purge(&mut self) -> Result<(), Error> {
        if !self.store().sees_all() {
            let what = "the whole memory".to_owned();
            return Err(Error::OutOfScope { what });
        }
        if self.at_primary().is_some() {
            // What goes from the files only would be fetched again.
            for kind in Kind::ALL {
                let at = self.store().act().at.clone();
                self.remove_visible(kind, &at)?;
            }
        }
        let rank = |role: Role| match role {
            Role::Account | Role::Journal => 0,
            Role::Log => 1,
            Role::Records(_) | Role::Remote => 2,
            // As long as there are records, their ids must not be given anew.
            Role::Tombstones => 3,
            Role::Copies | Role::Leftover => 4,
            // Last, since a search that goes on meanwhile writes what it has just read.
            Role::Derived => 5,
            _ => 6,
        };
        let directory = self.lock().directory().clone();
        // No event of a session writes notes while they go.
        let _notes = notes::lock(&directory, self.store().lock_limit())?;
        let mut items = inventory::inventory(&directory)?;
        items.retain(|item| item.role.is_memory());
        items.sort_by_key(|item| rank(item.role));
        for item in items {
            let removed = directory.remove_tree(&item.name);
            removed.map_err(Error::io("remove", &directory.join(&item.name)))?;
        }
        atomic::sync(&directory)?;
        // The log begins anew, with who has ended the one before.
        self.store().audit(Did::Purged, &[("everything", None)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;

    const ODD: &str = "{\"entries\": [\n{\"id\": \"MEM-001\",  \"x\": NaN},{\"id\":\"MEM-002\",\"n\": 1062.0}], \"format\": 1}";

    fn store(text: &str) -> (tempfile::TempDir, Scoped) {
        let dir = tempfile::tempdir().unwrap();
        named::replace(&dir.path().join(Kind::Memory.file()), text.as_bytes()).unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        (dir, store)
    }

    fn entries(store: &Scoped) -> Vec<Carried> {
        let mut found = Vec::new();
        let all = super::super::Selection::default();
        let each = &mut |entry: Entry| {
            found.push(Carried {
                id: entry.id,
                text: String::from_utf8(entry.text).unwrap(),
            });
        };
        store.each_entry(Kind::Memory, &all, each).unwrap();
        found
    }

    #[test]
    fn entries_and_what_stands_around_them_come_back_byte_for_byte() {
        let (_dir, from) = store(ODD);
        let frame = from.frame(Kind::Memory).unwrap().unwrap();
        assert_eq!(
            (frame.head.as_str(), frame.tail.as_str()),
            ("{\"entries\": [\n", "], \"format\": 1}")
        );
        let carried = entries(&from);
        let dir = tempfile::tempdir().unwrap();
        let to = Scoped::new(dir.path(), Scope::All);
        let mut writer = to.write(&mut || "r".to_owned()).unwrap();
        writer
            .restore(Kind::Memory, &carried, Some(&frame))
            .unwrap();
        assert_eq!(entries(&to), carried);
        let more = [Carried {
            id: "MEM-003".to_owned(),
            text: "{\"id\": \"MEM-003\"}".to_owned(),
        }];
        writer.restore(Kind::Memory, &more, None).unwrap();
        drop(writer);
        let text = std::fs::read_to_string(dir.path().join(Kind::Memory.file())).unwrap();
        assert!(text.ends_with("], \"format\": 1}"), "{text}");
        assert_eq!(entries(&to), [carried, more.to_vec()].concat());
    }

    #[test]
    fn a_frame_that_holds_no_entries_is_not_used() {
        for (head, tail, holds) in [
            ("{\"entries\": [", "]}", true),
            ("{\"format\": 1, \"entries\":[ ", " ] }\n", true),
            ("{\"entries\": [1, ", "]}", false),
            ("{\"other\": [", "]}", false),
            ("{\"entries\": [", "", false),
            ("", "", false),
        ] {
            let frame = Frame {
                head: head.to_owned(),
                tail: tail.to_owned(),
            };
            assert_eq!(frame.holds(Kind::Memory), holds, "{head}{tail}");
        }
    }

    #[test]
    fn a_purge_leaves_what_is_no_memory_and_can_be_said_again() {
        let (dir, store) = store(ODD);
        for name in [
            "config.toml", "mine.txt", "hints.jsonl", "recovered/a.txt", ".index/x/y",
        ] {
            let path = dir.path().join(name);
            named::create_dir(path.parent().unwrap()).unwrap();
            named::replace(&path, b"x\n").unwrap();
        }
        let mut writer = store.write(&mut || "r".to_owned()).unwrap();
        writer.purge().unwrap();
        writer.purge().unwrap();
        drop(writer);
        let names: Vec<String> = inventory::inventory(&dir.path().into())
            .unwrap()
            .into_iter()
            .map(|i| i.name)
            .collect();
        assert_eq!(
            names,
            [
                ".lock", "audit.anchor", "audit.jsonl", "config.toml", "mine.txt", "workspace.json"
            ]
        );
        let mut audited = Vec::new();
        store.audited(&mut |line| audited.push(line.did)).unwrap();
        assert_eq!(audited, [Did::Purged]);
    }

    #[test]
    fn what_a_scope_sees_goes_and_the_rest_keeps_its_bytes() {
        let rule = |id: &str, skill: &str| {
            format!("{{\"reflexion_id\": \"{id}\", \"skill\": \"{skill}\",  \"n\": 1.0}}")
        };
        let (a, b, c) = (
            rule("REFL-001", "hr/x"),
            rule("REFL-002", "dev/y"),
            rule("REFL-003", "hr/z"),
        );
        let dir = tempfile::tempdir().unwrap();
        let text = format!("{{\"entries\": [{a}, {b},\n{c} ]}}");
        named::replace(&dir.path().join(Kind::Reflexion.file()), text.as_bytes()).unwrap();
        let hr = Scoped::new(dir.path(), Scope::parse("hr"));
        let mut writer = hr.write(&mut || "r".to_owned()).unwrap();
        let gone = writer.remove_visible(Kind::Reflexion, "t").unwrap();
        assert_eq!(gone, ["REFL-001", "REFL-003"]);
        drop(writer);
        let text = std::fs::read_to_string(dir.path().join(Kind::Reflexion.file())).unwrap();
        assert!(
            text.contains(&b) && !text.contains("REFL-001") && !text.contains("REFL-003"),
            "{text}"
        );
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
        let all = Scoped::new(dir.path(), Scope::All);
        assert_eq!(all.count(Kind::Reflexion).unwrap(), 1);
        let mut writer = all.write(&mut || "r".to_owned()).unwrap();
        writer.remove_visible(Kind::Reflexion, "t").unwrap();
        drop(writer);
        assert_eq!(all.count(Kind::Reflexion).unwrap(), 0);
        assert_eq!(all.inspect(Kind::Reflexion).unwrap(), []);
    }
}
