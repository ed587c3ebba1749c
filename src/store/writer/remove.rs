//! Removal of records with tombstones: a removed record is not relearned unasked, and its id is not
//! reused.
//!
//! Tombstones come first: a crash in between leaves records that can be removed again, not reusable
//! ids.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::model::Kind;
use crate::store::audit::audit_event::AuditAction;
use crate::store::entry::Entry;
use crate::store::error::Error;
use crate::store::files::data::json_file::Snapshot;
use crate::store::files::data::offsets::Row;
use crate::store::files::data_files::DataFile;
use crate::store::files::tombstones;
use crate::store::redaction::redact;
use crate::store::undo_journal::{self, step::Step};

use super::{Writer, not_found};

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
