//! Byte-for-byte transfer of records and log lines between memory directories.
//!
//! An entry is exported and imported as the same text, even if a strict parser rejects it. The text
//! around the entries of a file (a `format`, keys of other programs) is its frame, and is
//! transferred too.
//!
//! Deliberately absent: the choice of records and ids to import; see `engine::import`.

use std::borrow::Cow;
use std::path::Path;

use crate::model::Kind;
use crate::store::access::scoped::Scoped;
use crate::store::atomic;
use crate::store::audit::audit_log::AuditAction;
use crate::store::entry::Entry;
use crate::store::error::{Error, Problem};
use crate::store::files::data::data_file::Frame;
use crate::store::files::data::json_file::{JsonFile, Snapshot};
use crate::store::files::data_files::DataFile;
use crate::store::files::log::Sync;
use crate::store::files::{directory, log};
use crate::store::redaction::redact;
use crate::store::undo_journal::step::Step;
use memctl_files::json;
use memctl_files::named;

use super::Writer;

/// An entry to store unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawEntry {
    /// Id; empty if the entry has none.
    pub id: String,
    /// JSON text.
    pub text: String,
}

/// Formats an entry in the layout of this program's files.
pub fn laid_out(json: &str) -> String {
    json::pretty(json, 2)
}

/// Returns the value of a string field of an entry, even if a strict parser rejects the entry.
pub fn text_field(entry: &[u8], name: &str) -> Option<String> {
    json::string_field(entry, name).map(Cow::into_owned)
}

/// Returns the JSON text of a field of an entry.
pub fn raw_field(entry: &str, name: &str) -> Option<String> {
    let text = json::field(entry.as_bytes(), name)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Returns the entries of a foreign memory directory, oldest first in each file, and the problems of
/// the files. Writes nothing there, not even derived files.
pub fn foreign_entries(directory: &Path, kind: Kind) -> Result<(Vec<Entry>, Vec<Problem>), Error> {
    let directory = named::directory(directory);
    let (mut entries, mut problems) = (Vec::new(), Vec::new());
    for file in DataFile::of(kind) {
        let snapshot = JsonFile::new(&directory, file, false).by_scan()?;
        let rows = snapshot.rows()?;
        for row in rows {
            entries.push(snapshot.entry(kind, &row)?);
        }
        problems.extend(snapshot.problems);
    }
    Ok((entries, problems))
}

/// Returns the lines of a log in a foreign memory directory.
pub fn foreign_lines(directory: &Path, name: &str) -> Result<Vec<Vec<u8>>, Error> {
    log::lines(&named::directory(directory), name)
}

/// Returns the origin of the workspace that a foreign memory directory belongs to.
pub fn foreign_origin(directory: &Path) -> Option<String> {
    Some(directory::identity(&named::directory(directory))?.origin)
}

impl Scoped {
    /// Returns the frame of the shared file of a kind; `None` if there is no file, its end is damaged, or the caller
    /// has limited access.
    pub fn frame(&self, kind: Kind) -> Result<Option<Frame>, Error> {
        if !self.sees_all() {
            return Ok(None);
        }
        let snapshot = self.file(DataFile::shared(kind)).by_scan()?;
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

    /// Returns `true` if the caller may see and write an entry with this text, expired or not.
    pub fn covers(&self, kind: Kind, entry: &[u8]) -> bool {
        self.access().covers(kind, entry)
    }

    /// Returns the lines of a log, unchanged. A user sees the lines with their id; a limited scope
    /// sees none, because lines belong to no domain.
    pub fn lines(&self, name: &str) -> Result<Vec<Vec<u8>>, Error> {
        if !self.scope().allows(None) {
            return Ok(Vec::new());
        }
        let mut lines = log::lines(self.directory(), name)?;
        lines.retain(|line| self.sees_all() || self.is_own_line(line));
        Ok(lines)
    }

    /// Returns `true` if a line carries the caller's user id.
    fn is_own_line(&self, line: &[u8]) -> bool {
        let user = json::string_field(line, "user_id");
        user.is_some() && self.viewer().sees(user.as_deref())
    }
}

impl Writer {
    /// Returns an entry or a line with its secrets redacted.
    fn storable<'a>(&mut self, json: &'a str) -> Cow<'a, str> {
        let redacted = redact(json);
        self.leave_out(redacted.found);
        redacted.text
    }

    /// Appends entries unchanged except for redacted secrets; `frame` surrounds those of the shared
    /// file if there is none yet. On return all entries of a file are on disk, or none is. The ids
    /// must be free.
    pub fn restore(
        &mut self,
        kind: Kind,
        entries: &[RawEntry],
        frame: Option<&Frame>,
    ) -> Result<(), Error> {
        if entries.is_empty() {
            return Ok(());
        }
        for entry in entries {
            if !self.store().access().covers(kind, entry.text.as_bytes()) {
                let what = format!("{kind} {}", entry.id);
                return Err(Error::OutOfScope { what });
            }
        }
        for file in DataFile::of(kind) {
            let belongs =
                |entry: &&RawEntry| DataFile::for_record(kind, entry.text.as_bytes()) == file;
            let here: Vec<RawEntry> = entries.iter().filter(belongs).cloned().collect();
            let frame = frame.filter(|_| !file.is_local);
            let mut is_first = true;
            self.redone(file, |writer, snapshot| {
                if std::mem::take(&mut is_first) {
                    return writer.restore_to(snapshot, kind, &here, frame);
                }
                // Another program may have saved the entries of an earlier attempt.
                let mut missing = Vec::new();
                for entry in &here {
                    let is_there =
                        !entry.id.is_empty() && Scoped::holds(snapshot, kind, &entry.id)?;
                    if !is_there {
                        missing.push(entry.clone());
                    }
                }
                writer.restore_to(snapshot, kind, &missing, frame)
            })?;
        }
        Ok(())
    }

    fn restore_to(
        &mut self,
        snapshot: &Snapshot,
        kind: Kind,
        entries: &[RawEntry],
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
                let user = json::string_field(text.as_bytes(), "user_id");
                touched.push((entry.id.as_str(), user.filter(|_| kind.has_user())));
            }
        }
        let touched: Vec<_> = touched.iter().map(|(id, u)| (*id, u.as_deref())).collect();
        self.store().audit(AuditAction::Added, &touched)?;
        let rows = entries.iter().zip(&texts);
        let rows: Vec<_> = rows
            .map(|(entry, text)| (entry.id.as_str(), *text))
            .collect();
        self.send(kind, &rows)?;
        let plain = Frame::plain(kind);
        let frame = frame.filter(|frame| frame.holds(kind)).unwrap_or(&plain);
        let done =
            self.store()
                .file(snapshot.of)
                .append_all(snapshot, &texts, (&frame.head, &frame.tail));
        self.followed(done)
    }

    /// Appends lines to a log, unchanged except for redacted secrets.
    pub fn restore_lines(&mut self, name: &str, lines: &[String]) -> Result<(), Error> {
        let lines: Vec<String> = lines
            .iter()
            .map(|line| self.storable(line).into_owned())
            .collect();
        log::append_all(self.lock(), name, &lines, Sync::Wait)
    }

    /// Removes the lines of a log for which `is_kept` returns `false`. Returns their number.
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

    fn entries(store: &Scoped) -> Vec<RawEntry> {
        let mut found = Vec::new();
        let all = crate::store::Selection::default();
        let each = &mut |entry: Entry| {
            found.push(RawEntry {
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
        let more = [RawEntry {
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
