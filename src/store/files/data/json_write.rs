//! Writing of one data file; `json_append` has the appends.
//!
//! Invariants:
//! - An unchanged entry is never rewritten, and keeps every byte.
//! - A change or removal copies the file with one span replaced, syncs, and renames.
//! - A file with relevant damage, or of a newer format, is not written.
//! - A file that another program has changed since the read is not written either. The write fails
//!   with [`Error::Changing`], counts as not done, and [`redone`] retries it. See `foreign_edit`.
//!
//! Every write requires the [`Lock`](crate::store::files::directory::Lock).

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::Duration;

use crate::store::atomic;
use crate::store::error::Error;
use crate::store::files::directory::PROBE;
use memctl_files::{FileState, PositionedFile as _};

use super::foreign_edit::{Point, reach};
use super::json_file::{JsonFile, Snapshot};
use super::offsets::{Header, Row};

/// Maximum length of the comma and white space between two entries; anything longer counts as
/// damage.
const LONGEST_GAP: usize = 1 << 16;

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
            Err(Error::Changing { .. }) => std::thread::sleep(pause),
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

    /// Keeps only the entries for which `is_kept` returns `true`, each with its bytes.
    pub(crate) fn keep_only(
        self,
        snapshot: &Snapshot,
        is_kept: &dyn Fn(&Row) -> bool,
    ) -> Result<(), Error> {
        let rows = snapshot.rows()?;
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let start = first.at;
        let mut kept = Vec::new();
        for row in rows.iter().filter(|row| is_kept(row)) {
            if !kept.is_empty() {
                kept.extend_from_slice(b",\n    ");
            }
            kept.extend_from_slice(&self.read_exactly(snapshot, row)?);
        }
        let end = snapshot.table.header.tail;
        self.rewrite(snapshot, &[(start..end, &kept)])
    }

    /// Replaces the text of one entry.
    pub(crate) fn replace(self, snapshot: &Snapshot, row: &Row, entry: &str) -> Result<(), Error> {
        self.replace_all(snapshot, &[(row, entry)])
    }

    /// Replaces the texts of several entries, given in file order.
    pub(crate) fn replace_all(
        self,
        snapshot: &Snapshot,
        entries: &[(&Row, &str)],
    ) -> Result<(), Error> {
        for (row, _) in entries {
            self.read_exactly(snapshot, row)?;
        }
        let span = |row: &Row| row.at..row.at + u64::from(row.length);
        let changes: Vec<_> = entries
            .iter()
            .map(|(row, entry)| (span(row), entry.as_bytes()))
            .collect();
        self.rewrite(snapshot, &changes)
    }

    /// Removes several entries, given in file order, with their commas.
    pub(crate) fn remove_all(self, snapshot: &Snapshot, rows: &[Row]) -> Result<(), Error> {
        let Some(file) = &snapshot.file else {
            return Ok(());
        };
        let header = &snapshot.table.header;
        // Adjacent entries form one run: the spans removed for each would overlap at the end.
        let mut runs: Vec<std::ops::Range<u64>> = Vec::new();
        for row in rows {
            self.read_exactly(snapshot, row)?;
            let end = row.at + u64::from(row.length);
            match runs.last_mut() {
                Some(run)
                    if follows(file, run.end, row.at).map_err(cannot_read(&snapshot.path))? =>
                {
                    run.end = end;
                }
                _ => runs.push(row.at..end),
            }
        }
        let mut changes: Vec<(_, &[u8])> = Vec::new();
        for run in runs {
            let span = removal(file, run, header).map_err(cannot_read(&snapshot.path))?;
            changes.push((span, b""));
        }
        self.rewrite(snapshot, &changes)
    }

    pub(super) fn rewrite(
        self,
        snapshot: &Snapshot,
        changes: &[(std::ops::Range<u64>, &[u8])],
    ) -> Result<(), Error> {
        let Some(file) = &snapshot.file else {
            return Ok(());
        };
        let path = &snapshot.path;
        let read = FileState::of(file).map_err(Error::io("read", path))?;
        if read != snapshot.table.header.stamp {
            return Err(Error::Changing { path: path.clone() });
        }
        let is_placed = atomic::replace_unchanged(self.directory, path, Some(&read), |out| {
            let mut source = file;
            let mut at = 0;
            for (span, new) in changes {
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
        if !is_placed {
            return Err(Error::Changing { path: path.clone() });
        }
        // Shifting the table would be possible, but changes are rare and a scan is safe.
        self.refresh()
    }

    /// Replaces the whole text of an existing file.
    pub(crate) fn write_anew(self, snapshot: &Snapshot, text: &[u8]) -> Result<(), Error> {
        let end = snapshot.table.header.stamp.size;
        self.rewrite(snapshot, &[(0..end, text)])
    }

    /// Reads an entry that is to be replaced, and verifies it.
    fn read_exactly(self, snapshot: &Snapshot, row: &Row) -> Result<Vec<u8>, Error> {
        match snapshot.read(row) {
            Ok(text) if row.is_of(&text) => Ok(text),
            Err(Error::Io { source, .. }) if source.kind() != io::ErrorKind::UnexpectedEof => {
                Err(Error::io("read", &snapshot.path)(source))
            }
            _ => Err(self.distrust(&snapshot.path)?),
        }
    }

    /// Deletes the saved table, which describes other bytes. Two states of a file look alike if
    /// they have the same length and the clock of the file system did not tick between them.
    pub(super) fn distrust(self, path: &Path) -> Result<Error, Error> {
        atomic::remove(self.directory, self.table_path())?;
        Ok(Error::Changing {
            path: path.to_owned(),
        })
    }

    /// Rebuilds the saved table from the file.
    pub(crate) fn refresh(self) -> Result<(), Error> {
        self.by_scan()?
            .table
            .save(self.directory, &self.table_path());
        Ok(())
    }
}

/// Error of a read at a position that a scan has found. A file that ends before it was truncated since, by
/// a program that saves it in place.
pub(super) fn cannot_read(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| match source.kind() {
        io::ErrorKind::UnexpectedEof => Error::Changing {
            path: path.to_owned(),
        },
        _ => Error::io("read", path)(source),
    }
}

pub(super) fn byte_before(file: &File, at: u64) -> io::Result<u8> {
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
    std::ops::Range { start, end }: std::ops::Range<u64>,
    header: &Header,
) -> io::Result<std::ops::Range<u64>> {
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
