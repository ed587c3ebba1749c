//! Removal of everything that a caller may see, or of the whole memory.

use std::collections::HashSet;

use crate::model::{Kind, Viewer};
use crate::store::atomic;
use crate::store::audit::audit_event::AuditAction;
use crate::store::error::Error;
use crate::store::files::data::json_file::Snapshot;
use crate::store::files::data_files::DataFile;
use crate::store::files::inventory::{self, Role};
use crate::store::index::session_scratch;

use super::Writer;

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
    use crate::store::Scoped;
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
