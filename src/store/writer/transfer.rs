//! Byte-for-byte transfer of records and log lines between memory directories, and the name of this copy.
//!
//! An entry is imported as the same text, even if a strict parser rejects it. The text around the entries of a
//! file (a `format`, keys of other programs) stays in its directory.
//!
//! Copies of a workspace share its identity and differ in the name of the copy. That name stays out of version
//! control, and a purge keeps it.
//!
//! Deliberately absent: the choice of records and ids to import; see `upkeep::import`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use memctl_files::{hex, json, named};
use sha2::{Digest as _, Sha256};

use crate::model::Kind;
use crate::store::files::data::write::is_record;
use crate::store::files::directory::{self, PRIMARY, REPLICA};
use crate::store::files::log::{self, Sync};
use crate::store::files::tombstones;
use crate::store::primary::{self, Sent};
use crate::store::writer::update::not_a_record;
use crate::store::{
    AuditAction, DataFile, Entry, Error, Identity, JsonFile, PrimaryName, Problem, SMALL_FILE,
    Scoped, Snapshot, Step, Writer, atomic, is_origin,
};

/// An entry to store unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawEntry {
    /// Id; empty if the entry has none.
    pub id: String,
    /// `true` for the local file of its kind.
    pub is_local: bool,
    /// JSON text.
    pub text: String,
}

impl RawEntry {
    /// Returns an entry for the file that a new record with this text is added to.
    pub fn new(kind: Kind, id: String, text: String) -> Self {
        Self {
            id,
            is_local: DataFile::for_record(kind, text.as_bytes()).is_local,
            text,
        }
    }
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
        for row in snapshot.rows() {
            entries.push(snapshot.entry(&row)?);
        }
        problems.extend(snapshot.problems);
    }
    Ok((entries, problems))
}

impl Scoped {
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
        lines.retain(|line| {
            let user = json::string_field(line, "user_id");
            self.sees_all() || user.is_some() && self.viewer().sees(user.as_deref())
        });
        Ok(lines)
    }
}

impl Writer {
    /// Appends entries unchanged except for redacted secrets. On return all are on disk. The ids must be
    /// free. Entries without an id are neither journaled nor audited.
    ///
    /// With the time of an undo, the entries are those of removed records: each is put in the order of its id, and
    /// loses its tombstone. Skips those that are there; returns the number of the others.
    pub fn restore(
        &mut self,
        kind: Kind,
        entries: &[RawEntry],
        undone_at: Option<&str>,
    ) -> Result<usize, Error> {
        for RawEntry { id, text, .. } in entries {
            if !self.store().access().covers(kind, text.as_bytes()) {
                return Err(Error::OutOfScope(format!("{kind} {id}")));
            }
            if undone_at.is_some() && !is_record(kind, id, text) {
                return Err(not_a_record(kind, id));
            }
        }
        let mut added = 0;
        for file in DataFile::of(kind) {
            let here = entries
                .iter()
                .filter(|entry| entry.is_local == file.is_local);
            let here: Vec<_> = here
                .map(|entry| (&*entry.id, self.redact(&entry.text)))
                .collect();
            if here.is_empty() {
                continue;
            }
            let ids = here.iter().map(|(id, _)| *id).collect();
            added += self.change_file(file, |writer, snapshot| {
                // Another program may have saved the entries of an earlier attempt.
                let there = snapshot.of_ids(&ids)?.into_iter();
                let there: HashSet<String> = there.map(|(_, entry)| entry.id).collect();
                let new = here.iter().filter(|(id, _)| !there.contains(*id));
                let new: Vec<(&str, &str)> = new.map(|(id, text)| (*id, &**text)).collect();
                writer.add_entries(snapshot, &new, undone_at)?;
                Ok(new.len())
            })?;
        }
        Ok(added)
    }

    /// Adds entries to the file as it was read.
    fn add_entries(
        &mut self,
        snapshot: &Snapshot,
        entries: &[(&str, &str)],
        undone_at: Option<&str>,
    ) -> Result<(), Error> {
        let kind = snapshot.of.kind;
        let named = || entries.iter().filter(|(id, _)| !id.is_empty());
        for (id, _) in named() {
            let id = (*id).to_owned();
            self.journal(Step::Added { kind, id });
        }
        let records = named().map(|(id, text)| (*id, text.as_bytes()));
        self.store()
            .audit_records(AuditAction::Added, kind, records)?;
        self.write_through(kind, &Sent::Records(entries), |writer| {
            let Some(at) = undone_at else {
                return writer.store().file(snapshot.of).append(snapshot, entries);
            };
            writer.insert(snapshot, entries)?;
            // Last: a crash before this leaves records with tombstones, which hide nothing.
            let ids: Vec<&str> = entries.iter().map(|(id, _)| *id).collect();
            tombstones::lift(writer.lock(), kind, &ids, at)
        })
    }

    /// Appends lines to a log, unchanged except for redacted secrets.
    pub fn restore_lines(&mut self, name: &str, lines: &[String]) -> Result<(), Error> {
        let lines: Vec<String> = lines
            .iter()
            .map(|line| self.redact(line).into_owned())
            .collect();
        log::append(self.lock().directory(), name, &lines, Sync::Wait)
    }
}

impl Scoped {
    /// Returns the name of this copy, if it has one. A name that was given at another place belongs to the
    /// original, and this directory is its copy.
    pub fn replica(&self) -> Option<String> {
        let text = self.directory().read_text(REPLICA, SMALL_FILE).ok()??;
        let name = text.trim();
        let [path, number] = self.place();
        let is_place = |place: &str| place.starts_with(&path) || place.ends_with(&number);
        // All copies of a memory in a database have the name of the one that began it.
        let is_here = matches!(self.primary_name(), Ok(Some(_)))
            || name
                .split_once('_')
                .is_some_and(|(_, place)| is_place(place));
        (is_origin(name) && is_here).then(|| name.to_owned())
    }

    /// Digests of the path of the memory directory and of its number in the file system. A moved directory
    /// keeps its number, a restored one its path, and a copied one neither.
    fn place(&self) -> [String; 2] {
        let path: &Path = self.directory().as_ref();
        let number = named::state(path).map(|state| state.inode);
        let digest = |of: &[u8]| hex(&Sha256::digest(of)[..4]);
        [
            digest(path.as_os_str().as_encoded_bytes()),
            digest(&number.unwrap_or_default().to_le_bytes()),
        ]
    }

    /// Returns the identity of the workspace and the name of this copy; creates missing ones.
    pub fn name_itself(
        &self,
        random: &mut dyn FnMut() -> String,
    ) -> Result<(Identity, String), Error> {
        let writer = self.write(random)?;
        let identity = writer.identity().clone();
        if let Some(name) = self.replica() {
            return Ok((identity, name));
        }
        let name = format!("{}_{}", random(), self.place().concat());
        let text = format!("{name}\n");
        atomic::replace(self.directory(), REPLICA, text.as_bytes())?;
        Ok((identity, name))
    }
}

impl Writer {
    /// Makes a database the primary store, under the identity that the memory has there. Until this writer ends,
    /// no other one can change the files.
    pub fn move_to_primary(
        self,
        name: &PrimaryName,
        identity: &Identity,
        replica: &str,
    ) -> Result<(), Error> {
        let directory = self.lock.directory();
        directory::name(&self.lock, identity)?;
        atomic::replace(directory, REPLICA, format!("{replica}\n").as_bytes())?;
        primary::forget(directory)?;
        // Last: from here on, nothing is written without the database.
        atomic::replace_json(directory, PRIMARY, name)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::model::Scope;
    use crate::store::Selection;

    const ODD: &str = "{\"entries\": [\n{\"id\": \"MEM-001\",  \"x\": NaN},{\"id\":\"MEM-002\",\"n\": 1062.0}], \"format\": 1}";

    fn store(text: &str) -> (tempfile::TempDir, Scoped) {
        let dir = tempfile::tempdir().unwrap();
        named::replace(&dir.path().join(Kind::Memory.file()), text.as_bytes()).unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        (dir, store)
    }

    fn entries(store: &Scoped) -> Vec<RawEntry> {
        let mut found = Vec::new();
        let all = Selection::default();
        let each = &mut |entry: Entry| {
            let text = String::from_utf8(entry.text).unwrap();
            found.push(RawEntry::new(Kind::Memory, entry.id, text));
        };
        store.each_entry(Kind::Memory, &all, each).unwrap();
        found
    }

    #[test]
    fn entries_come_back_byte_for_byte() {
        let (_dir, from) = store(ODD);
        let carried = entries(&from);
        let dir = tempfile::tempdir().unwrap();
        let to = Scoped::new(dir.path(), Scope::All);
        let mut writer = to.write(&mut || "r".to_owned()).unwrap();
        writer.restore(Kind::Memory, &carried, None).unwrap();
        assert_eq!(entries(&to), carried);
        let more = "{\"id\": \"MEM-003\"}".to_owned();
        let more = [RawEntry::new(Kind::Memory, "MEM-003".to_owned(), more)];
        writer.restore(Kind::Memory, &more, None).unwrap();
        drop(writer);
        assert_eq!(entries(&to), [carried, more.to_vec()].concat());
    }

    #[test]
    fn visible_records_are_removed_and_the_rest_keeps_its_bytes() {
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
        let removed = writer.remove_visible(Kind::Reflexion, "t").unwrap();
        assert_eq!(removed, ["REFL-001", "REFL-003"]);
        drop(writer);
        let text = fs::read_to_string(dir.path().join(Kind::Reflexion.file())).unwrap();
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
        assert_eq!(all.inspect(Kind::Reflexion, &mut |_| {}).unwrap(), []);
    }
}

#[cfg(test)]
mod tests_of_replica {
    use super::*;
    use crate::model::Scope;

    #[test]
    fn a_copy_is_named_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        assert_eq!(store.replica(), None);
        let mut n = 0;
        let mut random = || {
            n += 1;
            format!("name-{n}")
        };
        let first = store.name_itself(&mut random).unwrap();
        assert_ne!(first.0.origin, first.1);
        assert_eq!(store.name_itself(&mut random).unwrap(), first);
        assert_eq!(store.replica().as_ref(), Some(&first.1));
        let moved = dir.path().join("moved");
        std::fs::create_dir(&moved).unwrap();
        let copied = Scoped::new(&moved, Scope::All);
        std::fs::write(moved.join(REPLICA), &first.1).unwrap();
        assert_eq!(copied.replica(), None);
    }
}
