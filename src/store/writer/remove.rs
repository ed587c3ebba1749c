//! Removal of records with tombstones: a removed record is not learned again without a request, and its id is
//! not reused.
//!
//! Tombstones come first: a crash in between leaves records that can be removed again, not reusable
//! ids.
//!
//! Expired records are already hidden. Here they are removed from disk, each with a tombstone and
//! all in one write. An entry with an unreadable expiry stays until a user corrects it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use memctl_files::hex;

use crate::model::{Expiry, Kind, Viewer};
use crate::store::access::expiry;
use crate::store::files::directory::LOCAL_TOMBSTONES;
use crate::store::files::log::{self, Sync};
use crate::store::files::{inventory, tombstones};
use crate::store::primary::Sent;
use crate::store::sessions::lock_scratch;
use crate::store::trust::{Mac, digests_of};
use crate::store::{
    AuditAction, DataFile, Entry, Error, Row, Scoped, Selection, Snapshot, Step, Tombstone, Writer,
    redact, undo_journal,
};

/// Mode of a removal: can it be undone?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalMode {
    /// The undo journal keeps the text.
    Undoable,
    /// The undo journal keeps the text; an addition is reverted, and git gets no tombstone: nobody has decided that
    /// the record is to stay away.
    Reverted,
    /// The undo journal forgets the record too.
    Permanent,
}

/// Finds the records of a file that are to be removed.
type Select<'a> = dyn Fn(&Scoped, &Snapshot) -> Result<Vec<(Row, Entry)>, Error> + 'a;
/// Returns the text of a record that is recognised when it comes again; `None` to keep the id alone.
type Content<'a> = dyn Fn(&Entry) -> Option<String> + 'a;

impl Writer {
    /// Removes records of a kind, each with its content, in one write. Leaves tombstones with the hash of each
    /// `content`. Skips missing records.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn remove(
        &mut self,
        kind: Kind,
        removals: &[(&str, &str)],
        now: DateTime<Utc>,
        mode: RemovalMode,
    ) -> Result<Vec<Entry>, Error> {
        let contents: HashMap<&str, &str> = removals.iter().copied().collect();
        let ids: HashSet<&str> = contents.keys().copied().collect();
        let select: &Select<'_> = &|store, snapshot| store.of_ids(snapshot, &ids);
        let content = |entry: &Entry| contents.get(entry.id.as_str()).map(ToString::to_string);
        self.remove_where(kind, &now.to_rfc3339(), mode, select, &content)
    }

    /// Removes the expired records of a kind permanently. Leaves tombstones with the hash of each
    /// `content`. `at` is the time in the tombstones: RFC 3339, UTC.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn remove_expired(
        &mut self,
        kind: Kind,
        at: &str,
        content: &dyn Fn(&Entry) -> String,
    ) -> Result<Vec<Entry>, Error> {
        let select: &Select<'_> = &|store, snapshot| {
            let mut over = store.outlived(snapshot)?;
            over.retain(|(_, entry)| matches!(expiry(&entry.text), Expiry::At(_)));
            Ok(over)
        };
        let content = |entry: &Entry| Some(content(entry));
        self.remove_where(kind, at, RemovalMode::Permanent, select, &content)
    }

    /// Removes every record of a kind that the caller may see, also expired ones, with one write.
    /// Leaves tombstones with nothing but the ids. A user removes only their own records; rules and
    /// lessons are shared. Returns the ids.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn remove_visible(&mut self, kind: Kind, at: &str) -> Result<Vec<String>, Error> {
        if *self.store().viewer() != Viewer::Owner && !kind.has_user() {
            return Ok(Vec::new());
        }
        let select: &Select<'_> =
            &|store, snapshot| snapshot.entries(&|entry| store.access().covers(kind, &entry.text));
        let removed = self.remove_where(kind, at, RemovalMode::Permanent, select, &|_| None)?;
        Ok(removed.into_iter().map(|entry| entry.id).collect())
    }

    /// Removes what `select` finds in the files of a kind, each file in one write. Returns the removed
    /// records, including those that an attempt removed which was not acknowledged.
    fn remove_where(
        &mut self,
        kind: Kind,
        at: &str,
        mode: RemovalMode,
        select: &Select<'_>,
        content: &Content<'_>,
    ) -> Result<Vec<Entry>, Error> {
        let mut removed = Vec::new();
        for file in DataFile::of(kind) {
            let mut of_file = Vec::new();
            self.change_file(file, |writer, snapshot| {
                let mut going = select(writer.store(), snapshot)?;
                if going.is_empty() {
                    return Ok(());
                }
                going.sort_by_key(|(row, _)| row.at);
                let (rows, entries): (Vec<_>, Vec<_>) = going
                    .into_iter()
                    .map(|(row, entry)| ((row, None), entry))
                    .unzip();
                let buried = writer.announce_removal(file, &entries, content, at, mode)?;
                let stones = match mode {
                    RemovalMode::Reverted => LOCAL_TOMBSTONES,
                    RemovalMode::Undoable | RemovalMode::Permanent => tombstones::beside(file),
                };
                of_file = entries;
                writer.write_through(kind, &Sent::Removals(&buried), |writer| {
                    let lines: Vec<String> = buried.iter().map(|(_, line)| line.clone()).collect();
                    log::append(writer.lock.directory(), stones, &lines, Sync::Wait)?;
                    writer.store.file(file).change(snapshot, &rows)
                })
            })?;
            removed.append(&mut of_file);
        }
        self.disown(kind, &removed, mode)?;
        Ok(removed)
    }

    /// Takes back the approval of the words of removed rules and lessons: the same words from somebody else are
    /// data again. Those of a record that stays are kept.
    fn disown(&mut self, kind: Kind, removed: &[Entry], mode: RemovalMode) -> Result<(), Error> {
        let acts = matches!(kind, Kind::Reflexion | Kind::Procedure);
        let Some(key) = self.key.clone().filter(|_| acts && !removed.is_empty()) else {
            return Ok(());
        };
        let digests = |entry: &Entry| digests_of(&key, entry);
        let all: Vec<Mac> = removed.iter().flat_map(digests).collect();
        // Most records have no approval: then no other record has to be read.
        let mut listed = self.store.approvals().new_among(&all, false);
        if listed.is_empty() {
            return Ok(());
        }
        self.store
            .each_entry(kind, &Selection::default(), &mut |entry| {
                for digest in digests(&entry) {
                    listed.remove(&digest);
                }
            })?;
        for entry in removed {
            let mut gone = digests(entry);
            gone.retain(|digest| listed.contains(digest));
            match mode {
                RemovalMode::Undoable | RemovalMode::Reverted => {
                    let gone: Vec<String> = gone.iter().map(|digest| hex(digest)).collect();
                    self.set_approved(kind, &entry.id, &gone, false)?;
                }
                RemovalMode::Permanent => self.store.approvals().set(&gone, false)?,
            }
        }
        Ok(())
    }

    /// Journals and audits records before they leave their file. Returns their ids with their
    /// tombstone lines.
    fn announce_removal(
        &mut self,
        file: DataFile,
        going: &[Entry],
        content: &Content<'_>,
        at: &str,
        mode: RemovalMode,
    ) -> Result<Vec<(String, String)>, Error> {
        let kind = file.kind;
        match mode {
            RemovalMode::Undoable | RemovalMode::Reverted => {
                // In reverse order, so that undo restores them in the order of the file.
                for entry in going.iter().rev() {
                    let text = std::str::from_utf8(&entry.text);
                    self.journal(Step::Removed {
                        kind,
                        id: entry.id.clone(),
                        local: file.is_local,
                        text: text.ok().map(|text| redact(text).text.into_owned()),
                    });
                }
            }
            RemovalMode::Permanent => {
                let ids: Vec<&str> = going.iter().map(|entry| entry.id.as_str()).collect();
                undo_journal::scrub(self.lock(), kind, &ids)?;
            }
        }
        let going: Vec<_> = going.iter().map(|entry| (entry, content(entry))).collect();
        // A record without retained content has no user.
        let records = going.iter().map(|(entry, content)| {
            let text = content.as_ref().map_or(&b""[..], |_| &entry.text);
            (entry.id.as_str(), text)
        });
        self.store
            .audit_records(AuditAction::Removed, kind, records)?;
        let key = &self.identity().tombstone_key;
        let buried = going.iter().map(|(entry, content)| {
            let user = entry.user_id().filter(|_| content.is_some());
            let digest = |content| tombstones::digest(key, kind, content);
            let tombstone = Tombstone {
                user_id: user.map(Cow::into_owned),
                digest: content.as_deref().map(digest).unwrap_or_default(),
                ..Tombstone::new(kind, &entry.id, at)
            };
            Ok((entry.id.clone(), serde_json::to_string(&tombstone)?))
        });
        buried.collect()
    }

    /// Removes all files and directories with memory content, in the order of their roles: after a crash the same call
    /// continues. Requires full access.
    pub fn purge(&mut self) -> Result<(), Error> {
        if !self.store().sees_all() {
            return Err(Error::OutOfScope("the whole memory".to_owned()));
        }
        if self.is_at_primary() {
            // Records removed only from the files would be fetched again.
            for kind in Kind::ALL {
                let at = self.store().audit_context().at.clone();
                self.remove_visible(kind, &at)?;
            }
        }
        let directory = self.lock().directory().clone();
        // The lock keeps session events from writing notes meanwhile.
        let _scratch = lock_scratch(&directory, self.store().lock_limit())?;
        let mut items = inventory::inventory(&directory)?;
        items.retain(|item| item.role.is_memory());
        items.sort_by_key(|item| item.role);
        for item in items {
            let removed = directory.remove_tree(&item.name);
            removed.map_err(Error::io("remove", &directory.join(&item.name)))?;
        }
        directory.sync().map_err(Error::io("write", &directory))?;
        // The log starts again, with an event that names the caller of the purge.
        self.store()
            .audit(AuditAction::Purged, &[("everything", None)])
    }
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
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn expired(&self, kind: Kind) -> Result<Expired, Error> {
        let mut expired = Expired::default();
        for snapshot in self.snapshots(kind)? {
            for (_, entry) in self.outlived(&snapshot)? {
                match expiry(&entry.text) {
                    Expiry::At(_) => expired.over.push(entry),
                    _ => expired.unreadable.push(entry.id),
                }
            }
        }
        Ok(expired)
    }

    /// Returns the entries that are expired, or have an unreadable expiry.
    fn outlived(&self, snapshot: &Snapshot) -> Result<Vec<(Row, Entry)>, Error> {
        let kind = snapshot.of.kind;
        let Some(now) = self.access().now.filter(|_| kind.may_expire()) else {
            return Ok(Vec::new());
        };
        snapshot.entries(&|entry| {
            self.access().covers(kind, &entry.text) && expiry(&entry.text).is_over(Some(now))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;
    use memctl_files::named;

    const ODD: &str = "{\"entries\": [\n{\"id\": \"MEM-001\",  \"x\": NaN},{\"id\":\"MEM-002\",\"n\": 1062.0}], \"format\": 1}";

    #[test]
    fn purge_leaves_other_files_and_can_be_repeated() {
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
