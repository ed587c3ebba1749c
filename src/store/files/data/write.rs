//! Writing of one data file: appends, changes that rewrite it, and changes from another copy.
//!
//! Invariants:
//! - An unchanged entry is never rewritten, and keeps every byte.
//! - A change or removal writes a new file, syncs it, and renames it over the old one.
//! - A verdict on an execution is written over the old one, at any file size, if it has the same length within
//!   one sector of the disk. A crash then leaves the old verdict or the new one.
//! - A file with relevant damage, or of a newer format, is not written.
//! - A file that another program has changed since the read is not written either. The write fails
//!   with [`Error::Changing`], counts as not done, and [`retried`] retries it. See `foreign_edit`.
//!
//! Every write requires the [`Lock`].
//!
//! An append replaces the closing brackets by the new entries and new brackets, in one write that is then
//! synced. Its cost is independent of the size of the file.
//!
//! Changes also come from another workspace, or from the primary database. The last of several changes to one
//! record wins. New records go to the end of the file, changed ones keep their position. After a crash,
//! applying the same changes again completes them.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use memctl_files::{FileState, PositionedFile as _, json};

use crate::model::{IdShape, Kind};
use crate::store::files::data::foreign_edit::cannot_read;
use crate::store::files::data::offsets::{Header, Offsets};
use crate::store::files::data::{Point, reach};
use crate::store::{Error, Frame, JsonFile, Lock, Row, Snapshot, atomic, redact};

/// Size of a file in bytes from which an entry may be written over: a smaller one is copied as fast, and no
/// other program saves a larger one between a look and a write.
const LARGE: u64 = 1 << 20;
/// Number of bytes that a disk writes as a whole or not at all.
const SECTOR: u64 = 512;
/// Number of attempts to write a file that another program changes.
const TRIES: u32 = 12;
/// Pause after the first attempt. It doubles each time, up to [`LONGEST_PAUSE`]: 1.5 s in all.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Runs a read and write of a file, and retries if another program has changed the file meanwhile.
pub(crate) fn retried<T>(mut attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..TRIES {
        match attempt() {
            Err(Error::Changing(..)) => std::thread::sleep(pause),
            done => return done,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    attempt()
}

impl JsonFile<'_> {
    /// Fails unless the file, or the directory for a new one, is writable.
    pub(crate) fn check_writable(self, snapshot: &Snapshot) -> Result<(), Error> {
        if snapshot.file.is_some() {
            return atomic::open_for_update(self.directory, self.path()).map(drop);
        }
        let checked = self.directory.check_writable();
        checked.map_err(Error::io("write", self.directory))
    }

    /// Replaces the texts of entries, given in file order, in one rewrite. An entry without a new text
    /// is removed with its comma.
    pub(crate) fn change(
        self,
        snapshot: &Snapshot,
        changes: &[(Row, Option<String>)],
    ) -> Result<(), Error> {
        if changes.is_empty() {
            return Ok(());
        }
        if let [(row, Some(text))] = changes
            && self.overwrite(snapshot, row, text.as_bytes())?
        {
            return Ok(());
        }
        let old = snapshot.whole()?;
        let mut new = Vec::with_capacity(old.len());
        let mut at = 0;
        for (row, text) in changes {
            let span = row.span();
            // The table may describe other bytes.
            let is_there = old.get(span.clone()).is_some_and(|old| row.is_of(old));
            let before = old.get(at..span.start).filter(|_| is_there);
            let Some(before) = before else {
                return Err(self.distrust(&snapshot.path)?);
            };
            new.extend_from_slice(before);
            at = span.end;
            if let Some(text) = text {
                new.extend_from_slice(text.as_bytes());
                continue;
            }
            let next = json::skip_space(&old, at);
            if old.get(next) == Some(&b',') {
                at = json::skip_space(&old, next + 1);
                continue;
            }
            // The last entry takes the comma before it along, or the white space if there is none.
            new.truncate(new.trim_ascii_end().len());
            match new.last() {
                Some(b',') => drop(new.pop()),
                _ => at = next,
            }
        }
        new.extend_from_slice(&old[at..]);
        self.rewrite(snapshot, &new)
    }

    /// Replaces the whole text of a file, or creates it.
    pub(crate) fn rewrite(self, snapshot: &Snapshot, text: &[u8]) -> Result<(), Error> {
        let path = &snapshot.path;
        let read = Some(&snapshot.table.header.stamp).filter(|read| **read != FileState::default());
        let placed = self.directory.replace_unchanged(path, read, |out| {
            out.write_all(text)?;
            reach(Point::Compared, path);
            Ok(())
        });
        let placed = placed.map_err(Error::io("write", path))?;
        let state = placed.ok_or_else(|| Error::Changing(path.clone()))?;
        let (table, _) = self.table_of(&state, text);
        table.save(self.directory, &self.table_path());
        Ok(())
    }

    /// Writes the text of an execution over its old one, and returns `true`, if that takes one write to one
    /// sector.
    fn overwrite(self, snapshot: &Snapshot, row: &Row, new: &[u8]) -> Result<bool, Error> {
        let table = &snapshot.table;
        let is_large = table.header.stamp.size >= LARGE && table.is_saved();
        if self.kind() != Kind::Execution || !is_large || row.span().len() != new.len() {
            return Ok(false);
        }
        let Some(old) = snapshot.read(row).ok().filter(|old| row.is_of(old)) else {
            return Ok(false);
        };
        let differs = |at: &usize| old[*at] != new[*at];
        let places = 0..old.len();
        let (first, last) = (places.clone().find(differs), places.rev().find(differs));
        let (Some(first), Some(last)) = (first, last) else {
            return Ok(false);
        };
        let at = row.at + first as u64;
        if at / SECTOR != (row.at + last as u64) / SECTOR {
            return Ok(false);
        }
        let path = self.path();
        let file = atomic::open_for_update(self.directory, &path)?;
        let file = file.ok_or_else(|| Error::Changing(path))?;
        let (old, new_part) = (&old[first..=last], &new[first..=last]);
        let stamp = self.write_over(&file, &table.header.stamp, at, old, new_part)?;
        let row = Row::of(self.kind(), row.at, new);
        table.replace_row(self.directory, &self.table_path(), stamp, row);
        Ok(true)
    }

    /// Deletes the saved table, which describes other bytes. Two states of a file look alike if
    /// they have the same length and the clock of the file system did not tick between them.
    fn distrust(self, path: &Path) -> Result<Error, Error> {
        atomic::remove(self.directory, self.table_path())?;
        Ok(Error::Changing(path.to_owned()))
    }
}

fn byte_before(file: &File, at: u64) -> io::Result<u8> {
    let mut byte = [0];
    file.read_exact_at(&mut byte, at.saturating_sub(1))?;
    Ok(byte[0])
}

/// Maximum length of the text after the last entry: closing brackets and a few keys of the root.
const LONGEST_CLOSING: u64 = 1 << 20;

impl JsonFile<'_> {
    /// Appends entries, each an id and a text, in one write, at a cost independent of the size of the
    /// file. A crash leaves some of them and a torn tail, which the next writer cuts.
    pub(crate) fn append(self, snapshot: &Snapshot, entries: &[(&str, &str)]) -> Result<(), Error> {
        if snapshot.file.is_none() {
            let texts: Vec<&str> = entries.iter().map(|(_, text)| *text).collect();
            let text = Frame::plain(self.kind()).around(self.kind(), &texts);
            return self.rewrite(snapshot, &text);
        }
        let path = self.path();
        let old = &snapshot.table.header;
        let file = atomic::open_for_update(self.directory, &path)?;
        let file = file.ok_or_else(|| Error::Changing(path.clone()))?;
        let closing = read_closing(&file, old).map_err(cannot_read(&path))?;
        reach(Point::EndRead, &path);
        let is_first = byte_before(&file, old.tail).map_err(cannot_read(&path))? == b'[';
        let between = usize::try_from(old.close.saturating_sub(old.tail)).unwrap_or(0);
        if !is_closing(&closing, between) {
            return Err(self.distrust(&path)?);
        }
        // Empty arrays are expanded; otherwise the layout after the last entry is kept.
        let is_kept = !is_first && closing[..between].iter().all(u8::is_ascii_whitespace);
        let gap: &[u8] = if is_kept {
            &closing[..between]
        } else {
            b"\n  "
        };
        let opening: &[u8] = if is_first { b"\n    " } else { b",\n    " };
        let mut bytes = opening.to_vec();
        let rows = self.lay_out(&mut bytes, old.tail, entries);
        let tail = old.tail + bytes.len() as u64;
        bytes.extend_from_slice(gap);
        bytes.extend_from_slice(&closing[between..]);
        let header = Header {
            stamp: self.write_over(&file, &old.stamp, old.tail, &closing, &bytes)?,
            tail,
            close: tail + gap.len() as u64,
            ..old.clone()
        };
        self.record(&snapshot.table, header, &rows);
        Ok(())
    }

    /// Appends entries to the bytes to be written at `at`; returns their rows.
    fn lay_out(self, bytes: &mut Vec<u8>, at: u64, entries: &[(&str, &str)]) -> Vec<Row> {
        let mut rows = Vec::with_capacity(entries.len());
        for (number, (_, text)) in entries.iter().enumerate() {
            if number > 0 {
                bytes.extend_from_slice(b",\n    ");
            }
            let start = at + bytes.len() as u64;
            rows.push(Row::of(self.kind(), start, text.as_bytes()));
            bytes.extend_from_slice(text.as_bytes());
        }
        rows
    }

    /// Adds rows to the table after an append to the file that `header` describes but for them. The next scan
    /// corrects any failure.
    fn record(self, table: &Offsets, mut header: Header, rows: &[Row]) {
        for row in rows {
            let shape = IdShape::of(self.kind(), &String::from_utf8_lossy(row.id()));
            header.highest = header.highest.max(shape.unwrap_or_default());
        }
        let (path, first) = (self.table_path(), header.count);
        header.count += rows.len() as u64;
        if table.is_saved() {
            drop(Offsets::write(self.directory, &path, &header, first, rows));
        } else {
            let rows = table.rows().chain(rows.iter().copied());
            Offsets::in_memory(header, rows).save(self.directory, &path);
        }
    }
}

/// Reads the text between the last entry and the end of the file. A file that grew while it was
/// scanned ends before its last entry, which is reported as `UnexpectedEof`.
fn read_closing(file: &File, header: &Header) -> io::Result<Vec<u8>> {
    let length = header.stamp.size.checked_sub(header.tail);
    let length = length.ok_or(io::ErrorKind::UnexpectedEof)?;
    if length > LONGEST_CLOSING {
        return Err(io::Error::other(
            "more than 1 MiB of text follows the last entry",
        ));
    }
    let mut closing = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut closing, header.tail)?;
    Ok(closing)
}

/// Returns `true` if the text may follow the last entry, with the array's bracket in its place.
fn is_closing(closing: &[u8], between: usize) -> bool {
    let is_gap = |b: &u8| b.is_ascii_whitespace() || *b == b',';
    closing.get(between) == Some(&b']') && closing[..between].iter().all(is_gap)
}

/// State of a remote record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PulledChange {
    /// Id in its workspace.
    pub id: String,
    /// JSON text; `None` if the record is removed.
    pub text: Option<String>,
}

/// Effect of applied changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PulledCount {
    /// Number of new records.
    pub added: u64,
    /// Number of changed records.
    pub changed: u64,
    /// Number of removed records.
    pub removed: u64,
    /// Number of rejected texts: not a record with the given id.
    pub refused: u64,
}

impl std::ops::AddAssign for PulledCount {
    fn add_assign(&mut self, other: Self) {
        self.added += other.added;
        self.changed += other.changed;
        self.removed += other.removed;
        self.refused += other.refused;
    }
}

/// Applies the changes. `file` must belong to the writer that holds this lock. All changes are on
/// disk when this returns.
pub(crate) fn apply(
    file: JsonFile<'_>,
    lock: &Lock,
    changes: &[(&str, Option<&str>)],
) -> Result<PulledCount, Error> {
    let kind = file.kind();
    let mut refused = PulledCount::default();
    let mut last: HashMap<&str, Option<String>> = HashMap::with_capacity(changes.len());
    let mut order = Vec::with_capacity(changes.len());
    for (id, text) in changes {
        // Secrets that the other side let through are redacted here.
        let text = text.map(|text| redact(text).text.into_owned());
        if text.as_ref().is_some_and(|text| !is_record(kind, id, text)) {
            refused.refused += 1;
        } else if last.insert(*id, text).is_none() {
            order.push(*id);
        }
    }
    retried(|| {
        let (mut count, snapshot) = (refused, file.prepare(lock, &mut Vec::new())?);
        let (mut changes, mut there) = (Vec::new(), HashSet::new());
        for (row, entry) in snapshot.of_ids(&last.keys().copied().collect())? {
            let new = &last[entry.id.as_str()];
            if new.as_deref().map(str::as_bytes) != Some(&entry.text) {
                let counted = if new.is_some() {
                    &mut count.changed
                } else {
                    &mut count.removed
                };
                *counted += 1;
                changes.push((row, new.clone()));
            }
            there.insert(entry.id);
        }
        let new = order.iter().copied().filter(|id| !there.contains(*id));
        let new: Vec<(&str, &str)> = new
            .filter_map(|id| Some((id, last[id].as_deref()?)))
            .collect();
        count.added = new.len() as u64;
        file.change(&snapshot, &changes)?;
        if !new.is_empty() {
            // The change has moved the end of the file.
            let snapshot = file.prepare(lock, &mut Vec::new())?;
            file.append(&snapshot, &new)?;
        }
        Ok(count)
    })
}

/// Returns `true` if the text is one whole object with this id, so that it can be stored as an
/// entry.
pub(crate) fn is_record(kind: Kind, id: &str, text: &str) -> bool {
    let bytes = text.as_bytes();
    let start = json::skip_space(bytes, 0);
    let is_whole =
        json::skip_value(bytes, start).is_ok_and(|end| json::skip_space(bytes, end) == bytes.len());
    is_whole
        && bytes.get(start) == Some(&b'{')
        && u32::try_from(bytes.len()).is_ok()
        && !id.is_empty()
        && json::string_field(bytes, kind.id_field()).is_some_and(|own| own == id)
}
