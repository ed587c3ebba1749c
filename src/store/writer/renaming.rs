//! References to a record that got another id when it moved between two files.
//!
//! Deliberately absent: ids inside sentences, and logs, whose lines are what happened. A reader of a
//! log asks [`Scoped::current_id`](crate::store::Scoped::current_id).

use std::collections::HashMap;

use crate::model::LOCAL_ID;
use crate::store::error::Error;
use crate::store::files::data::json_file::Snapshot;
use crate::store::files::data_files::DataFile;
use memctl_files::json;

use super::Writer;

impl Writer {
    /// Replaces ids in the records that can refer to a local one. Damage in the files of one kind keeps
    /// no other back.
    pub(super) fn rename(&mut self, ids: &HashMap<String, String>) -> Result<(), Error> {
        let ids: HashMap<String, String> = ids
            .iter()
            .filter(|(old, new)| old != new)
            .map(|(old, new)| (old.clone(), new.clone()))
            .collect();
        if ids.is_empty() {
            return Ok(());
        }
        let kinds = DataFile::ALL.into_iter().filter(|file| file.is_local);
        for kind in kinds.map(|file| file.kind) {
            for file in DataFile::of(kind) {
                match self.redone(file, |writer, snapshot| writer.rename_in(snapshot, &ids)) {
                    Ok(()) | Err(Error::Damaged(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn rename_in(&self, snapshot: &Snapshot, ids: &HashMap<String, String>) -> Result<(), Error> {
        let mut changes = Vec::new();
        for row in snapshot.rows()? {
            let text = snapshot.read(&row)?;
            let text = String::from_utf8_lossy(&text);
            let Some(new) = json::with_other_strings(&text, ids) else {
                continue;
            };
            let new = match json::field(text.as_bytes(), LOCAL_ID) {
                Some(own) => {
                    let own = String::from_utf8_lossy(own).into_owned();
                    json::with_fields(&new, &[(LOCAL_ID, own)], 6)
                }
                None => new,
            };
            if new != text {
                changes.push((row, new));
            }
        }
        if changes.is_empty() {
            return Ok(());
        }
        let changes: Vec<_> = changes.iter().map(|(row, text)| (row, &**text)).collect();
        self.store()
            .file(snapshot.of)
            .replace_all(snapshot, &changes)
    }
}
