//! Writing of one data file: appends, and changes that rewrite it.
//!
//! Invariants:
//! - An unchanged entry is never rewritten, and keeps every byte.
//! - A change or removal copies the file with one span replaced, syncs, and renames. The table of the
//!   offsets follows without a scan.
//! - A verdict on an execution is written over the old one, whatever the size of the file, if it takes the
//!   same room within one sector of the disk: a crash leaves the old one or the new one.
//! - A file with relevant damage, or of a newer format, is not written.
//! - A file that another program has changed since the read is not written either. The write fails
//!   with [`Error::Changing`], counts as not done, and [`redone`] retries it. See `foreign_edit`.
//!
//! Every write requires the [`Lock`](crate::store::Lock).
//!
//! In an append, the closing brackets are replaced by the new entries and the closing
//! brackets, in one write, which is then synced. Its cost is independent of the size of the file.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use memctl_files::{FileState, PositionedFile as _, json};

use crate::model::{IdShape, Kind};
use crate::store::files::data::foreign_edit::cannot_read;
use crate::store::files::data::offsets::{Header, Offsets, generation};
use crate::store::files::data::{CLOSING, Point, reach};
use crate::store::files::directory::PROBE;
use crate::store::{Error, FORMAT, Frame, JsonFile, Row, Snapshot, atomic};

/// Maximum length of the comma and white space between two entries; anything longer counts as
/// damage.
const LONGEST_GAP: usize = 1 << 16;

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
pub(crate) fn redone<T>(mut attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
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
        atomic::replace(self.directory, PROBE, b"")?;
        atomic::remove(self.directory, PROBE)
    }

    /// Replaces the texts of entries, given in file order, in one rewrite. An entry without a new text
    /// is removed with its comma.
    pub(crate) fn change(
        self,
        snapshot: &Snapshot,
        changes: &[(Row, Option<String>)],
    ) -> Result<(), Error> {
        let Some(file) = snapshot.file.as_ref().filter(|_| !changes.is_empty()) else {
            return Ok(());
        };
        let cannot_read = cannot_read(&snapshot.path);
        let mut spans: Vec<(Range<u64>, Option<&str>)> = Vec::new();
        for (row, text) in changes {
            let old = self.verified(snapshot, row)?;
            if let ([_], Some(text)) = (changes, text)
                && self.overwrite(snapshot, row, &old, text.as_bytes())?
            {
                return Ok(());
            }
            match (spans.last_mut(), text) {
                // Adjacent entries are one run: the spans removed for each would overlap at the end.
                (Some((run, None)), None)
                    if follows(file, run.end, row.at).map_err(&cannot_read)? =>
                {
                    run.end = row.end();
                }
                _ => spans.push((row.at..row.end(), text.as_deref())),
            }
        }
        let mut edits = Vec::with_capacity(spans.len());
        for (span, text) in spans {
            let span = match text {
                Some(_) => span,
                None => removal(file, span, &snapshot.table.header).map_err(&cannot_read)?,
            };
            edits.push((span, text.unwrap_or_default().as_bytes()));
        }
        let state = self.rewrite(file, snapshot, &edits)?;
        match snapshot.table.edited(self.kind(), state, &edits) {
            Some(table) => table.save(self.directory, &self.table_path()),
            None => self.refresh()?,
        }
        Ok(())
    }

    /// Returns the state of the file with these parts replaced.
    fn rewrite(
        self,
        file: &File,
        snapshot: &Snapshot,
        edits: &[(Range<u64>, &[u8])],
    ) -> Result<FileState, Error> {
        let path = &snapshot.path;
        let read = FileState::of(file).map_err(Error::io("read", path))?;
        if read != snapshot.table.header.stamp {
            return Err(Error::Changing(path.clone()));
        }
        let placed = atomic::replace_unchanged(self.directory, path, Some(&read), |out| {
            let mut source = file;
            let mut at = 0;
            for (span, new) in edits {
                source.seek(SeekFrom::Start(at))?;
                io::copy(&mut source.take(span.start - at), out)?;
                out.write_all(new)?;
                at = span.end;
            }
            source.seek(SeekFrom::Start(at))?;
            io::copy(&mut source, out)?;
            reach(Point::Compared, path);
            Ok(())
        })?;
        placed.ok_or_else(|| Error::Changing(path.clone()))
    }

    /// Writes the text of an execution over its old one, and returns `true`, if that takes one write to one
    /// sector.
    fn overwrite(
        self,
        snapshot: &Snapshot,
        row: &Row,
        old: &[u8],
        new: &[u8],
    ) -> Result<bool, Error> {
        let table = &snapshot.table;
        let is_large = table.header.stamp.size >= LARGE && table.is_saved();
        if self.kind() != Kind::Execution || !is_large || old.len() != new.len() {
            return Ok(false);
        }
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

    /// Replaces the whole text of an existing file.
    pub(crate) fn write_anew(self, snapshot: &Snapshot, text: &[u8]) -> Result<(), Error> {
        let end = snapshot.table.header.stamp.size;
        if let Some(file) = &snapshot.file {
            self.rewrite(file, snapshot, &[(0..end, text)])?;
            self.refresh()?;
        }
        Ok(())
    }

    /// Returns the text of an entry that is to be replaced; fails unless it is as the table says.
    fn verified(self, snapshot: &Snapshot, row: &Row) -> Result<Vec<u8>, Error> {
        let is_cut = |error: &Error| matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::UnexpectedEof);
        match snapshot.read(row) {
            Ok(text) if row.is_of(&text) => Ok(text),
            Err(error) if !is_cut(&error) => Err(error),
            _ => Err(self.distrust(&snapshot.path)?),
        }
    }

    /// Deletes the saved table, which describes other bytes. Two states of a file look alike if
    /// they have the same length and the clock of the file system did not tick between them.
    fn distrust(self, path: &Path) -> Result<Error, Error> {
        atomic::remove(self.directory, self.table_path())?;
        Ok(Error::Changing(path.to_owned()))
    }

    /// Rebuilds the saved table from the file.
    pub(crate) fn refresh(self) -> Result<(), Error> {
        self.by_scan()?
            .table
            .save(self.directory, &self.table_path());
        Ok(())
    }
}

fn byte_before(file: &File, at: u64) -> io::Result<u8> {
    let mut byte = [0];
    file.read_exact_at(&mut byte, at.saturating_sub(1))?;
    Ok(byte[0])
}

/// Returns `true` if only a comma and white space separate two entries.
fn follows(file: &File, end: u64, start: u64) -> io::Result<bool> {
    let length = start.checked_sub(end).and_then(|n| usize::try_from(n).ok());
    let Some(length) = length.filter(|n| *n <= LONGEST_GAP) else {
        return Ok(false);
    };
    let mut between = vec![0; length];
    file.read_exact_at(&mut between, end)?;
    Ok(between
        .iter()
        .all(|b| b.is_ascii_whitespace() || *b == b','))
}

/// Returns the span to remove with a run of entries, so that the rest is a valid array.
fn removal(
    file: &File,
    Range { start, end }: Range<u64>,
    header: &Header,
) -> io::Result<Range<u64>> {
    let skip = |mut at: u64| -> io::Result<u64> {
        while at < header.stamp.size && byte_before(file, at + 1)?.is_ascii_whitespace() {
            at += 1;
        }
        Ok(at)
    };
    let next = skip(end)?;
    if byte_before(file, next + 1)? == b',' {
        return Ok(start..skip(next + 1)?);
    }
    // The last entry takes the comma before it along, or the white space if there is none.
    let mut from = start;
    while byte_before(file, from)?.is_ascii_whitespace() {
        from -= 1;
    }
    if byte_before(file, from)? == b',' {
        return Ok(from - 1..end);
    }
    Ok(from..next)
}

/// Maximum length of the text after the last entry: closing brackets and a few keys of the root.
const LONGEST_CLOSING: u64 = 1 << 20;

impl JsonFile<'_> {
    /// Appends entries, each an id and a text, in one write, at a cost independent of the size of the
    /// file. A crash leaves some of them and a torn tail, which the next writer cuts.
    pub(crate) fn append(self, snapshot: &Snapshot, entries: &[(&str, &str)]) -> Result<(), Error> {
        if snapshot.file.is_none() {
            return self.begin(snapshot, entries);
        }
        let path = self.path();
        let old = &snapshot.table.header;
        let file = atomic::open_for_update(self.directory, &path)?;
        let file = file.ok_or_else(|| Error::Changing(path.clone()))?;
        let closing = read_closing(&file, old).map_err(cannot_read(&path))?;
        reach(Point::EndRead, &path);
        let is_first = byte_before(&file, old.tail).map_err(cannot_read(&path))? == b'[';
        let between = distance(old.tail, old.close);
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
        let rows = lay_out(&mut bytes, old.tail, entries);
        let tail = old.tail + bytes.len() as u64;
        bytes.extend_from_slice(gap);
        bytes.extend_from_slice(&closing[between..]);
        let header = Header {
            stamp: self.write_over(&file, &old.stamp, old.tail, &closing, &bytes)?,
            tail,
            close: tail + gap.len() as u64,
            ..old.clone()
        };
        self.record(header, &rows, Some(&snapshot.table));
        Ok(())
    }

    /// Creates a missing or empty file with these entries.
    fn begin(self, snapshot: &Snapshot, entries: &[(&str, &str)]) -> Result<(), Error> {
        let (path, old) = (&snapshot.path, &snapshot.table.header);
        let changing = || Error::Changing(path.clone());
        let empty = self.directory.state(path);
        let empty = empty.map_err(Error::io("read", path))?;
        if empty.unwrap_or_default() != old.stamp {
            return Err(changing());
        }
        let mut text = Frame::plain(self.kind()).head.into_bytes();
        let rows = lay_out(&mut text, 0, entries);
        let tail = text.len() as u64;
        text.extend_from_slice(CLOSING.as_bytes());
        reach(Point::Compared, path);
        let made = atomic::replace_unchanged(self.directory, path, empty.as_ref(), |file| {
            file.write_all(&text)
        })?;
        let header = Header {
            stamp: made
                .filter(|made| made.size == text.len() as u64)
                .ok_or_else(changing)?,
            tail,
            // The entry is followed by a line break and two spaces.
            close: tail + 3,
            count: 0,
            format: FORMAT,
            ..old.clone()
        };
        self.record(header, &rows, None);
        Ok(())
    }

    /// Updates the saved table after an append to the file that `header` describes but for these rows. The
    /// next scan corrects any failure.
    fn record(self, mut header: Header, rows: &[Row], table: Option<&Offsets>) {
        for row in rows {
            let shape = IdShape::of(self.kind(), &String::from_utf8_lossy(row.id()));
            header.highest = header.highest.max(shape.unwrap_or_default());
        }
        header.count += rows.len() as u64;
        // A new file starts a new generation.
        if header.generation == 0 {
            header.generation = generation(&header.stamp);
        }
        let path = self.table_path();
        if table.is_some_and(Offsets::is_saved) {
            drop(Offsets::append(self.directory, &path, &header, rows));
            return;
        }
        let old = table.into_iter().flat_map(Offsets::rows);
        let table = Offsets::in_memory(header, old.chain(rows.iter().copied()));
        table.save(self.directory, &path);
    }
}

/// Appends entries to the bytes to be written at `at`; returns their rows.
fn lay_out(bytes: &mut Vec<u8>, at: u64, entries: &[(&str, &str)]) -> Vec<Row> {
    let mut rows = Vec::with_capacity(entries.len());
    for (number, (id, text)) in entries.iter().enumerate() {
        if number > 0 {
            bytes.extend_from_slice(b",\n    ");
        }
        let skill = json::string_field(text.as_bytes(), "skill").unwrap_or_default();
        let start = at + bytes.len() as u64;
        rows.push(Row::new(start, text.as_bytes(), id, &skill));
        bytes.extend_from_slice(text.as_bytes());
    }
    rows
}

/// Returns the number of bytes between two positions; 0 if they are in the wrong order.
fn distance(from: u64, to: u64) -> usize {
    usize::try_from(to.saturating_sub(from)).unwrap_or(0)
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
