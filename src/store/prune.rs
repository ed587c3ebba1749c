//! Removing what has expired.
//!
//! What has expired is hidden already; here it leaves the disk, each record with a tombstone, and the
//! file is written once however many there are. An entry whose end nobody can read stays: it is a
//! person's to mend.

use crate::model::{Expiry, Kind};

use super::changes;
use super::error::Error;
use super::json_file::Snapshot;
use super::offsets::Row;
use super::scoped::{Entry, Scoped};
use super::sight::expiry;
use super::writer::Writer;

/// Records that have expired.
#[derive(Debug, Default)]
pub struct Expired {
    /// Those whose end has come, oldest first.
    pub over: Vec<Entry>,
    /// The ids of those that are hidden because nobody can read when they end.
    pub unreadable: Vec<String>,
}

impl Scoped {
    /// The records of a kind that have expired, of those that the scope and the viewer cover. None
    /// where nobody has said what time it is.
    pub fn expired(&self, kind: Kind) -> Result<Expired, Error> {
        let snapshot = self.file(kind).snapshot()?;
        Ok(self.expired_in(&snapshot, kind)?.1)
    }

    fn expired_in(&self, snapshot: &Snapshot, kind: Kind) -> Result<(Vec<Row>, Expired), Error> {
        let mut rows = Vec::new();
        let mut expired = Expired::default();
        let Some(now) = self.sight().now.filter(|_| kind.may_expire()) else {
            return Ok((rows, expired));
        };
        let mut all = Vec::new();
        snapshot.each(false, &mut |row| {
            all.push(row.clone());
            true
        })?;
        for row in all {
            let entry = Self::read(snapshot, kind, &row)?;
            if !self.sight().covers(kind, &entry.text) {
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
    /// Removes the records of a kind that have expired, and leaves a tombstone of each with the hash
    /// of its `content`. They are gone for good, from the journal of changes too. `at` is the time that
    /// the tombstones say: RFC 3339, UTC.
    pub fn remove_expired(
        &mut self,
        kind: Kind,
        at: &str,
        content: &dyn Fn(&Entry) -> String,
    ) -> Result<Expired, Error> {
        let mut gone = Expired::default();
        self.redone(kind, |writer, snapshot| {
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
        changes::scrub(self.lock(), kind, &ids)?;
        let contents: Vec<String> = expired.over.iter().map(content).collect();
        let gone = expired.over.iter().zip(&contents);
        let gone: Vec<_> = gone.map(|(entry, text)| (entry, text.as_str())).collect();
        self.bury(kind, &gone, at)?;
        let done = self.store().file(kind).remove_all(snapshot, &rows);
        *removed = expired;
        self.followed(done)
    }
}
