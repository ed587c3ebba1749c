//! Removal of records with tombstones: a removed record is not relearned unasked, and its id is not
//! reused.
//!
//! Tombstones come first: a crash in between leaves records that can be removed again, not reusable
//! ids.
//!
//! Removal of expired records.
//!
//! Expired records are already hidden. Here they are removed from disk, each with a tombstone and
//! all in one write. An entry with an unreadable expiry stays until a user corrects it.
//!
//! Removal of everything that a caller may see, or of the whole memory.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::model::{Expiry, Kind, Viewer};
use crate::store::access::access_filter::expiry;
use crate::store::access::scoped::Scoped;
use crate::store::audit::audit_log::AuditAction;
use crate::store::entry::Entry;
use crate::store::error::Error;
use crate::store::files::data::json_file::Snapshot;
use crate::store::files::data::offsets::Row;
use crate::store::files::data_files::DataFile;
use crate::store::files::inventory::Role;
use crate::store::files::{inventory, tombstones};
use crate::store::index::session_scratch;
use crate::store::redaction::redact;
use crate::store::undo_journal::step::Step;
use crate::store::writer::{Writer, not_found};
use crate::store::{atomic, undo_journal};

impl Writer {
    /// Removes a record and leaves a tombstone with the hash of `content`. The change can be
    /// reverted.
    pub fn remove(
        &mut self,
        kind: Kind,
        id: &str,
        content: &str,
        now: DateTime<Utc>,
    ) -> Result<Entry, Error> {
        let mut gone = self.take_out(kind, &[(id, content)], now, true)?;
        gone.pop().ok_or_else(|| not_found(kind, id))
    }

    /// Removes a record permanently, also from the undo journal.
    pub fn remove_for_good(
        &mut self,
        kind: Kind,
        id: &str,
        content: &str,
        now: DateTime<Utc>,
    ) -> Result<Entry, Error> {
        let mut gone = self.take_out(kind, &[(id, content)], now, false)?;
        gone.pop().ok_or_else(|| not_found(kind, id))
    }

    /// Removes several records of a kind, each with its content, in one write. Skips missing
    /// records.
    pub fn remove_several(
        &mut self,
        kind: Kind,
        removals: &[(&str, &str)],
        now: DateTime<Utc>,
    ) -> Result<Vec<Entry>, Error> {
        self.take_out(kind, removals, now, true)
    }

    /// Removes several records of a kind permanently, also from the undo journal, in one write.
    /// Skips missing records.
    pub fn remove_several_for_good(
        &mut self,
        kind: Kind,
        removals: &[(&str, &str)],
        now: DateTime<Utc>,
    ) -> Result<Vec<Entry>, Error> {
        self.take_out(kind, removals, now, false)
    }

    fn take_out(
        &mut self,
        kind: Kind,
        removals: &[(&str, &str)],
        now: DateTime<Utc>,
        may_come_back: bool,
    ) -> Result<Vec<Entry>, Error> {
        let contents: HashMap<&str, &str> = removals.iter().copied().collect();
        let mut gone = Vec::new();
        for file in DataFile::of(kind) {
            let mut of_file = Vec::new();
            self.redone(file, |writer, snapshot| {
                writer.take_out_of(snapshot, kind, &contents, now, may_come_back, &mut of_file)
            })?;
            gone.append(&mut of_file);
        }
        Ok(gone)
    }

    /// Removes the records with these ids. `gone` gets the removed records, including those that an
    /// earlier attempt removed.
    fn take_out_of(
        &mut self,
        snapshot: &Snapshot,
        kind: Kind,
        contents: &HashMap<&str, &str>,
        now: DateTime<Utc>,
        may_come_back: bool,
        gone: &mut Vec<Entry>,
    ) -> Result<(), Error> {
        let ids: HashSet<&str> = contents.keys().copied().collect();
        let mut found: Vec<(Row, Entry, &str)> = Vec::new();
        self.store()
            .each_of_in(snapshot, kind, &ids, &mut |row, entry| {
                let content = contents.get(entry.id.as_str()).copied();
                found.push((row, entry, content.unwrap_or_default()));
            })?;
        if found.is_empty() {
            return Ok(());
        }
        found.sort_by_key(|(row, ..)| row.at);
        if may_come_back {
            let before = ids_before(snapshot, found.iter().map(|(row, ..)| row.at))?;
            // In reverse order, so that on restoring each record finds its predecessor.
            for ((_, entry, _), after) in found.iter().zip(before).rev() {
                let text = std::str::from_utf8(&entry.text);
                let step = Step::Removed {
                    kind,
                    id: entry.id.clone(),
                    after,
                    local: snapshot.of.is_local,
                    text: text.ok().map(|text| redact(text).text.into_owned()),
                };
                self.journal(step);
            }
        } else {
            let ids: Vec<&str> = found.iter().map(|(_, e, _)| e.id.as_str()).collect();
            undo_journal::scrub(self.lock(), kind, &ids)?;
        }
        let going: Vec<_> = found
            .iter()
            .map(|(_, entry, content)| (entry, *content))
            .collect();
        self.add_tombstones(kind, &going, &now.to_rfc3339())?;
        let rows: Vec<Row> = found.iter().map(|(row, ..)| row.clone()).collect();
        let done = self.store().file(snapshot.of).remove_all(snapshot, &rows);
        *gone = found.into_iter().map(|(_, entry, _)| entry).collect();
        self.followed(done)
    }

    /// Writes an audit event and tombstones for records about to be removed, each with its content.
    /// Removes them from the primary database, if there is one.
    pub(crate) fn add_tombstones(
        &mut self,
        kind: Kind,
        found: &[(&Entry, &str)],
        at: &str,
    ) -> Result<(), Error> {
        let users: Vec<_> = found.iter().map(|(entry, _)| entry.user_id()).collect();
        let gone = found.iter().zip(&users);
        let gone: Vec<_> = gone
            .map(|((entry, content), user)| tombstones::Removal {
                id: &entry.id,
                user_id: user.as_deref(),
                content,
            })
            .collect();
        let touched: Vec<_> = gone.iter().map(|gone| (gone.id, gone.user_id)).collect();
        self.store().audit(AuditAction::Removed, &touched)?;
        let lines = tombstones::lines(&self.identity().tombstone_key, kind, at, &gone)?;
        let ids: Vec<&str> = gone.iter().map(|gone| gone.id).collect();
        self.write_tombstones(kind, &ids, &lines)
    }

    /// Writes tombstones that hold only the ids of the records.
    pub(crate) fn add_id_tombstones(
        &mut self,
        kind: Kind,
        ids: &[String],
        at: &str,
    ) -> Result<(), Error> {
        let lines = ids.iter().map(|id| tombstones::line_of_id(kind, id, at));
        let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        self.write_tombstones(kind, &ids, &lines)
    }

    /// Writes these tombstones of these records.
    fn write_tombstones(
        &mut self,
        kind: Kind,
        ids: &[&str],
        lines: &[String],
    ) -> Result<(), Error> {
        let gone = ids.iter().zip(lines);
        let gone: Vec<_> = gone
            .map(|(id, line)| ((*id).to_owned(), line.clone()))
            .collect();
        self.send_removals(kind, &gone)?;
        // Tombstones come first: a crash in between leaves records that can be removed again, not
        // reusable ids.
        let done = tombstones::append(self.lock(), lines);
        self.followed(done)
    }
}

/// Returns the ids of the records before those at these offsets, which are in file order.
fn ids_before(
    snapshot: &Snapshot,
    places: impl Iterator<Item = u64>,
) -> Result<Vec<Option<String>>, Error> {
    let mut places = places.peekable();
    let mut ids = Vec::new();
    let mut before: Option<Row> = None;
    snapshot.each(false, &mut |row| {
        if places.next_if_eq(&row.at).is_some() {
            let id = before.as_ref().filter(|row| !row.id_is_cut());
            ids.push(id.map(|row| String::from_utf8_lossy(row.id()).into_owned()));
        }
        before = Some(row.clone());
        places.peek().is_some()
    })?;
    Ok(ids)
}

/// Expired records.
#[derive(Debug, Default)]
pub struct Expired {
    /// Expired records, oldest first.
    pub over: Vec<Entry>,
    /// Ids of records that are hidden because of an unreadable expiry.
    pub unreadable: Vec<String>,
}

impl Scoped {
    /// Returns the expired records of a kind, within scope and user. Empty if the store has no
    /// current time.
    pub fn expired(&self, kind: Kind) -> Result<Expired, Error> {
        // Kinds that expire have one file.
        let snapshot = self.file(DataFile::shared(kind)).snapshot()?;
        Ok(self.expired_in(&snapshot, kind)?.1)
    }

    fn expired_in(&self, snapshot: &Snapshot, kind: Kind) -> Result<(Vec<Row>, Expired), Error> {
        let mut rows = Vec::new();
        let mut expired = Expired::default();
        let Some(now) = self.access().now.filter(|_| kind.may_expire()) else {
            return Ok((rows, expired));
        };
        let mut all = Vec::new();
        snapshot.each(false, &mut |row| {
            all.push(row.clone());
            true
        })?;
        for row in all {
            let entry = snapshot.entry(kind, &row)?;
            if !self.access().covers(kind, &entry.text) {
                continue;
            }
            match expiry(&entry.text) {
                Expiry::At(end) if end <= now => {
                    rows.push(row);
                    expired.over.push(entry);
                }
                Expiry::Unreadable => expired.unreadable.push(entry.id),
                Expiry::At(_) | Expiry::Never => {}
            }
        }
        Ok((rows, expired))
    }
}

impl Writer {
    /// Removes the expired records of a kind permanently, also from the undo journal. Leaves
    /// tombstones with the hash of each `content`. `at` is the time in the tombstones: RFC 3339,
    /// UTC.
    pub fn remove_expired(
        &mut self,
        kind: Kind,
        at: &str,
        content: &dyn Fn(&Entry) -> String,
    ) -> Result<Expired, Error> {
        let mut gone = Expired::default();
        self.redone(DataFile::shared(kind), |writer, snapshot| {
            writer.remove_expired_of(snapshot, kind, at, content, &mut gone)
        })?;
        Ok(gone)
    }

    fn remove_expired_of(
        &mut self,
        snapshot: &Snapshot,
        kind: Kind,
        at: &str,
        content: &dyn Fn(&Entry) -> String,
        removed: &mut Expired,
    ) -> Result<(), Error> {
        let (rows, expired) = self.store().expired_in(snapshot, kind)?;
        if rows.is_empty() {
            removed.unreadable = expired.unreadable;
            return Ok(());
        }
        let ids: Vec<&str> = expired.over.iter().map(|entry| entry.id.as_str()).collect();
        undo_journal::scrub(self.lock(), kind, &ids)?;
        let contents: Vec<String> = expired.over.iter().map(content).collect();
        let gone = expired.over.iter().zip(&contents);
        let gone: Vec<_> = gone.map(|(entry, text)| (entry, text.as_str())).collect();
        self.add_tombstones(kind, &gone, at)?;
        let done = self.store().file(snapshot.of).remove_all(snapshot, &rows);
        *removed = expired;
        self.followed(done)
    }
}

impl Writer {
    /// Removes every record of a kind that the caller may see, also expired ones, with one write.
    /// Leaves tombstones with nothing but the ids. A user removes only their own records; rules and
    /// lessons are shared. Returns the ids.
    pub fn remove_visible(&mut self, kind: Kind, at: &str) -> Result<Vec<String>, Error> {
        if *self.store().viewer() != Viewer::Owner && !kind.has_user() {
            return Ok(Vec::new());
        }
        let mut gone = Vec::new();
        for file in DataFile::of(kind) {
            let mut of_file = Vec::new();
            self.redone(file, |writer, snapshot| {
                writer.remove_visible_of(snapshot, kind, at, &mut of_file)
            })?;
            gone.append(&mut of_file);
        }
        Ok(gone)
    }

    fn remove_visible_of(
        &mut self,
        snapshot: &Snapshot,
        kind: Kind,
        at: &str,
        gone: &mut Vec<String>,
    ) -> Result<(), Error> {
        let rows = snapshot.rows()?;
        let mut ids = Vec::new();
        let mut offsets = HashSet::new();
        for row in rows {
            let entry = snapshot.entry(kind, &row)?;
            if self.store().access().covers(kind, &entry.text) {
                offsets.insert(row.at);
                ids.push(entry.id);
            }
        }
        if !ids.is_empty() {
            let touched: Vec<_> = ids.iter().map(|id| (id.as_str(), None)).collect();
            self.store().audit(AuditAction::Removed, &touched)?;
            self.add_id_tombstones(kind, &ids, at)?;
            let file = self.store().file(snapshot.of);
            let done = file.keep_only(snapshot, &|row| !offsets.contains(&row.at));
            *gone = ids;
            self.followed(done)?;
        }
        Ok(())
    }

    /// Removes all files and directories with memory content, in an order that is safe to
    /// interrupt: a crash never restores removed data, and the same call continues. Requires full
    /// access.
    pub fn purge(&mut self) -> Result<(), Error> {
        if !self.store().sees_all() {
            let what = "the whole memory".to_owned();
            return Err(Error::OutOfScope { what });
        }
        if self.at_primary().is_some() {
            // Records removed only from the files would be fetched again.
            for kind in Kind::ALL {
                let at = self.store().audit_context().at.clone();
                self.remove_visible(kind, &at)?;
            }
        }
        let rank = |role: Role| match role {
            Role::Account | Role::Journal => 0,
            Role::Log => 1,
            Role::Records(_) | Role::Remote | Role::Counters => 2,
            // While records remain, their ids must not be reused.
            Role::Tombstones => 3,
            Role::Copies | Role::Leftover => 4,
            // Last, because a concurrent search may write derived files from old reads.
            Role::Derived => 5,
            _ => 6,
        };
        let directory = self.lock().directory().clone();
        // The lock keeps session events from writing notes meanwhile.
        let _notes = session_scratch::lock(&directory, self.store().lock_limit())?;
        let mut items = inventory::inventory(&directory)?;
        items.retain(|item| item.role.is_memory());
        items.sort_by_key(|item| rank(item.role));
        for item in items {
            let removed = directory.remove_tree(&item.name);
            removed.map_err(Error::io("remove", &directory.join(&item.name)))?;
        }
        atomic::sync(&directory)?;
        // The log starts again, with an event that names the caller of the purge.
        self.store()
            .audit(AuditAction::Purged, &[("everything", None)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;
    use memctl_files::named;

    const ODD: &str = "{\"entries\": [\n{\"id\": \"MEM-001\",  \"x\": NaN},{\"id\":\"MEM-002\",\"n\": 1062.0}], \"format\": 1}";

    #[test]
    fn a_purge_leaves_what_is_no_memory_and_can_be_said_again() {
        let dir = tempfile::tempdir().unwrap();
        named::replace(&dir.path().join(Kind::Memory.file()), ODD.as_bytes()).unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
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
                ".gitignore", ".lock", "audit.anchor", "audit.jsonl", "config.toml", "mine.txt",
                "workspace.json"
            ]
        );
        let mut audited = Vec::new();
        store.audited(&mut |line| audited.push(line.did)).unwrap();
        assert_eq!(audited, [AuditAction::Purged]);
    }
}
