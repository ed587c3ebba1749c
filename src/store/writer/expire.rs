//! Removal of expired records.
//!
//! Expired records are already hidden. Here they are removed from disk, each with a tombstone and
//! all in one write. An entry with an unreadable expiry stays until a user corrects it.

use crate::model::{Expiry, Kind};
use crate::store::access::access_filter::expiry;
use crate::store::access::scoped::Scoped;
use crate::store::entry::Entry;
use crate::store::error::Error;
use crate::store::files::data::json_file::Snapshot;
use crate::store::files::data::offsets::Row;
use crate::store::files::data_files::DataFile;
use crate::store::undo_journal;

use super::Writer;

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
