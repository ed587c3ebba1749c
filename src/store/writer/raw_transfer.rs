//! Byte-for-byte transfer of records and log lines between memory directories.
//!
//! An entry of a directory is imported as the same text, even if a strict parser rejects it. The text
//! around the entries of a file (a `format`, keys of other programs) stays there.
//!
//! Deliberately absent: the choice of records and ids to import; see `engine::import`.
//!
//! Digests of the entries of a file are for requests that look for an equal one. Only entries that came
//! since the last look are read; a file that was replaced is read again. The caller gets no text, so that
//! entries of other users stay hidden: a digest that is known only says that it pays to search.
//!
//! Deliberately absent: exactness of digests. Two texts may have one digest, and an entry may be expired
//! or belong to somebody else.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use memctl_files::{json, named};

use crate::model::Kind;
use crate::store::files::data::offsets::Header;
use crate::store::files::directory;
use crate::store::files::log::{self, Sync};
use crate::store::{DataFile, Entry, Error, JsonFile, Problem, Scoped, Snapshot, Writer, redact};

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
        for row in snapshot.rows() {
            entries.push(snapshot.entry(&row)?);
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
        self.left_out.extend(redacted.found);
        redacted.text
    }

    /// Appends entries unchanged except for redacted secrets. On return all are on disk. The ids must be
    /// free.
    pub fn restore(&mut self, kind: Kind, entries: &[RawEntry]) -> Result<(), Error> {
        if entries.is_empty() {
            return Ok(());
        }
        for entry in entries {
            if !self.store().access().covers(kind, entry.text.as_bytes()) {
                return Err(Error::OutOfScope(format!("{kind} {}", entry.id)));
            }
        }
        for file in DataFile::of(kind) {
            let belongs =
                |entry: &&RawEntry| DataFile::for_record(kind, entry.text.as_bytes()) == file;
            let here: Vec<RawEntry> = entries.iter().filter(belongs).cloned().collect();
            let mut is_first = true;
            self.redone(file, |writer, snapshot| {
                if std::mem::take(&mut is_first) {
                    return writer.restore_to(snapshot, kind, &here);
                }
                // Another program may have saved the entries of an earlier attempt.
                let mut missing = Vec::new();
                for entry in &here {
                    let is_there = !entry.id.is_empty() && snapshot.holds(&entry.id)?;
                    if !is_there {
                        missing.push(entry.clone());
                    }
                }
                writer.restore_to(snapshot, kind, &missing)
            })?;
        }
        Ok(())
    }

    fn restore_to(
        &mut self,
        snapshot: &Snapshot,
        kind: Kind,
        entries: &[RawEntry],
    ) -> Result<(), Error> {
        if entries.is_empty() {
            return Ok(());
        }
        let texts = entries.iter().map(|entry| self.storable(&entry.text));
        let texts: Vec<Cow<'_, str>> = texts.collect();
        let rows = entries.iter().zip(&texts);
        let rows: Vec<_> = rows.map(|(entry, text)| (&*entry.id, &**text)).collect();
        self.add_entries(kind, &rows, |writer| {
            writer.store.file(snapshot.of).append(snapshot, &rows)
        })
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
        log::retain(self.lock(), name, is_kept)
    }
}

/// State of a file at which it was searched for an entry that says the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compared {
    generation: u64,
    end: u64,
}

impl Compared {
    pub(super) fn of(header: &Header) -> Self {
        Self {
            generation: header.generation,
            end: header.tail,
        }
    }

    /// Returns the position behind which entries came until `now`; `None` if the file was replaced.
    pub(super) fn until(self, now: Self) -> Option<u64> {
        let is_longer = self.generation == now.generation && self.end <= now.end;
        is_longer.then_some(self.end)
    }
}

/// Returns `true` for the JSON text of an entry that says the same.
pub type Repeats = dyn Fn(&[u8]) -> bool + Send;

/// Condition on which a record is not added.
pub struct SkipCondition {
    /// State of the file in which no entry said the same.
    pub compared: Compared,
    /// Comparison with the record.
    pub repeats: Box<Repeats>,
}

/// Digests of the entries of the shared file of one kind.
#[derive(Debug, Default)]
pub struct SeenEntries(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    compared: Option<Compared>,
    digests: HashSet<u64>,
}

impl SeenEntries {
    /// Returns `true` if an entry may have this digest, and the state of the file that this holds
    /// for. `digest_of` computes the digest of an entry's text.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn may_hold(
        &self,
        store: &Scoped,
        kind: Kind,
        digest: u64,
        digest_of: &dyn Fn(&[u8]) -> Option<u64>,
    ) -> Result<(bool, Compared), Error> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = store.file(DataFile::shared(kind)).snapshot()?;
        let now = Compared::of(&snapshot.table.header);
        // Until all is read, nothing is known to be compared.
        let from = seen.compared.take().and_then(|before| before.until(now));
        if from.is_none() {
            seen.digests.clear();
        }
        let from = from.unwrap_or(0);
        for row in snapshot.rows().rev().take_while(|row| row.at >= from) {
            seen.digests.extend(digest_of(&snapshot.read(&row)?));
        }
        seen.compared = Some(now);
        Ok((seen.digests.contains(&digest), now))
    }
}

#[cfg(test)]
mod tests;
