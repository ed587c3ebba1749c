//! Writing one seed file.
//!
//! Invariants:
//! - An entry that is not changed is never written again, and keeps every byte.
//! - Appending writes the new entry and the closing brackets over the old closing brackets, in one
//!   write, then syncs: its cost does not depend on the size of the file.
//! - Changing and removing copy the file with the one span replaced, sync, and rename.
//! - What a crash has left behind the last whole entry is put aside, never thrown away.
//! - A file that is damaged where it matters, or newer than this program, is not written.
//! - A file that another program has changed since it was read is not written either: that is
//!   [`Error::Changing`], nothing counts as done, and [`redone`] begins anew. See `foreign_edit`.
//!
//! All of it needs the [`Lock`].

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use crate::model::IdShape;

use super::atomic;
use super::directory::Lock;
use super::error::{Error, Problem, ProblemKind};
use super::foreign_edit::{Landed, Point, Spot, reach};
use super::json_file::{FORMAT, JsonFile, Snapshot};
use super::offsets::{Header, Offsets, Row, Stamp};

/// Where the tails that crashes left are put, inside the memory directory.
pub(super) const RECOVERED: &str = "recovered";
/// A file that is made to see whether one can be made.
pub(super) const PROBE: &str = ".writable";
/// What may stand behind the last entry: closing brackets and a few keys of the root.
const LONGEST_CLOSING: u64 = 1 << 20;
/// What stands between two entries is a comma and some white space; more is looked at as damage.
const LONGEST_GAP: usize = 1 << 16;
pub(super) const CLOSING: &str = "\n  ]\n}\n";

/// How often a write begins anew where another program changes the file.
const TRIES: u32 = 12;
/// Pauses between two tries, each twice as long as the one before: three seconds in all.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Does what reads a file and writes it, and does it again where another program has changed the file in
/// between.
pub(super) fn redone<T>(mut attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
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

/// An entry that is to be added.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewEntry<'a> {
    /// Its JSON text, laid out.
    pub(super) text: &'a str,
    pub(super) id: &'a str,
    /// Empty where it has none.
    pub(super) skill: &'a str,
}

impl JsonFile<'_> {
    /// The file as it is now, mended and fit to be written to. What was mended is reported.
    pub(super) fn prepare(self, lock: &Lock, mended: &mut Vec<Problem>) -> Result<Snapshot, Error> {
        debug_assert_eq!(lock.directory(), self.directory);
        let snapshot = self.as_it_is()?;
        // What looks torn may be half of what another program is saving at this moment.
        let snapshot = if self.await_save(&snapshot)? {
            self.as_it_is()?
        } else {
            snapshot
        };
        let snapshot = self.mended_tail(snapshot, mended)?;
        reach(Point::Read, &snapshot.path);
        Ok(snapshot)
    }

    fn as_it_is(self) -> Result<Snapshot, Error> {
        match self.by_table()? {
            // A table spares the scan unless the file's end has to be looked at.
            Some(s) if s.file.is_none() || s.table.header.close != 0 => Ok(s),
            _ => self.by_scan(),
        }
    }

    /// The file with brackets at its end, once more where they had to be written.
    fn mended_tail(self, snapshot: Snapshot, mended: &mut Vec<Problem>) -> Result<Snapshot, Error> {
        let header = &snapshot.table.header;
        if header.format > FORMAT {
            return Err(Error::NewerFormat {
                path: snapshot.path,
                found: header.format,
                ours: FORMAT,
            });
        }
        if snapshot.file.is_none() || header.close != 0 {
            return Ok(snapshot);
        }
        // A torn tail is cut back only behind a sound beginning: between damaged parts nobody can
        // say which bracket closes what.
        let [torn] = snapshot.problems.as_slice() else {
            let broken = snapshot.problems.into_iter().next();
            return Err(broken.map_or_else(|| self.endless(), Error::Damaged));
        };
        if torn.kind != ProblemKind::TornTail {
            return Err(Error::Damaged(torn.clone()));
        }
        self.cut_back(header)?;
        mended.push(torn.clone());
        let snapshot = self.by_scan()?;
        if snapshot.table.header.close == 0 {
            return Err(self.endless());
        }
        Ok(snapshot)
    }

    fn endless(self) -> Error {
        Error::io("write", &self.path())(io::Error::other("its end was not found"))
    }

    /// Puts what stands behind the last whole entry aside and closes the brackets there.
    fn cut_back(self, header: &Header) -> Result<(), Error> {
        let path = self.path();
        let tail = header.tail;
        let Some(mut file) = atomic::open_for_update(self.directory, &path)? else {
            return Err(Error::Changing { path });
        };
        let mut rest = Vec::new();
        file.seek(SeekFrom::Start(tail))
            .and_then(|_| file.read_to_end(&mut rest))
            .map_err(Error::io("read", &path))?;
        if rest
            .iter()
            .any(|b| !b.is_ascii_whitespace() && *b != b',' && *b != 0)
        {
            let aside = self.directory.below(RECOVERED);
            atomic::create_dir(&aside)?;
            let name = format!("{}.{tail}.txt", self.kind.file());
            atomic::replace(&aside, name, &rest)?;
        }
        let now = file.metadata().map_err(Error::io("read", &path))?;
        if Stamp::of(&now) != header.stamp {
            return Err(Error::Changing { path });
        }
        // Shortening first: a crash here leaves a torn tail again, and nothing else.
        file.set_len(tail)
            .and_then(|()| file.write_all_at(CLOSING.as_bytes(), tail))
            .and_then(|()| file.sync_all())
            .map_err(Error::io("write", &path))
    }

    /// Whether the file, or the directory that it is to be made in, takes writes.
    pub(super) fn check_writable(self, snapshot: &Snapshot) -> Result<(), Error> {
        if snapshot.file.is_some() {
            return atomic::open_for_update(self.directory, self.path()).map(drop);
        }
        atomic::replace(self.directory, PROBE, b"")?;
        atomic::remove(self.directory, PROBE)
    }

    /// Adds entries behind the last one, in one write, whatever the size of the file. A crash leaves some
    /// of them, and a torn tail that the next writer cuts back.
    pub(super) fn append(self, snapshot: &Snapshot, entries: &[NewEntry<'_>]) -> Result<(), Error> {
        let path = self.path();
        let old = &snapshot.table.header;
        let changing = || Error::Changing { path: path.clone() };
        if snapshot.file.is_none() {
            let opening = format!("{{\n  \"{}\": [\n    ", self.kind.root_key());
            let mut text = opening.into_bytes();
            let rows = lay_out(&mut text, 0, entries);
            let tail = text.len() as u64;
            text.extend_from_slice(CLOSING.as_bytes());
            let stamp = self.begin(snapshot, &text)?;
            // Behind the entry comes one line break and two spaces.
            let header = Header {
                tail,
                close: tail + 3,
                count: 0,
                format: FORMAT,
                ..old.clone()
            };
            self.record(&header, stamp, &rows, None);
            return Ok(());
        }
        let file = atomic::open_for_update(self.directory, &path)?.ok_or_else(changing)?;
        let cannot_write = |source| Error::io("write", &path)(source);
        let closing = read_closing(&file, old).map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => changing(),
            _ => cannot_write(source),
        })?;
        let spot = Spot::behind(self.directory, &file, &path, old).map_err(cannot_write)?;
        let is_first = byte_before(&file, old.tail).map_err(cannot_write)? == b'[';
        let between = usize::try_from(old.close - old.tail).unwrap_or(0);
        if !is_closing(&closing, between) {
            return Err(self.distrust(&path)?);
        }
        // Empty arrays are opened up; otherwise the layout behind the last entry is kept.
        let keep = !is_first && closing[..between].iter().all(u8::is_ascii_whitespace);
        let (gap, rest) = if keep {
            closing.split_at(between)
        } else {
            (&b"\n  "[..], &closing[between..])
        };
        let comma = if is_first { "" } else { "," };
        let mut bytes = format!("{comma}\n    ").into_bytes();
        let rows = lay_out(&mut bytes, old.tail, entries);
        let tail = old.tail + bytes.len() as u64;
        let close = tail + gap.len() as u64;
        bytes.extend_from_slice(gap);
        bytes.extend_from_slice(rest);
        let written = spot.write(&bytes, old.stamp).and_then(|is_written| {
            file.sync_data()?;
            Ok(is_written)
        });
        match written {
            Ok(true) => {}
            Ok(false) => return Err(changing()),
            Err(source) => {
                // The old closing brackets fit where they were, however full the disk is.
                if spot.is_preceded_as_before() {
                    drop(
                        file.write_all_at(&closing, old.tail)
                            .and_then(|()| file.set_len(old.stamp.size)),
                    );
                }
                return Err(cannot_write(source));
            }
        }
        let landed = spot.landed(&bytes, self.kind.root_key());
        let Landed::Here(stamp) = landed.map_err(Error::io("read", &path))? else {
            return Err(changing());
        };
        let header = Header {
            tail,
            close,
            ..old.clone()
        };
        self.record(&header, stamp, &rows, Some(&snapshot.table));
        Ok(())
    }

    /// Makes the file with this text, where there was none, or an empty one. Answers its state.
    fn begin(self, snapshot: &Snapshot, text: &[u8]) -> Result<Stamp, Error> {
        let path = &snapshot.path;
        let changing = || Error::Changing { path: path.clone() };
        let read = snapshot.table.header.stamp;
        let state = || {
            self.directory
                .metadata(path)
                .map_err(Error::io("read", path))
        };
        let empty = state()?;
        if empty.as_ref().map_or_else(Stamp::default, Stamp::of) != read {
            return Err(changing());
        }
        reach(Point::Compared, path);
        if !atomic::replace_unchanged(self.directory, path, empty.as_ref(), |file| {
            file.write_all(text)
        })? {
            return Err(changing());
        }
        let made = state()?.ok_or_else(changing)?;
        let stamp = Stamp::of(&made);
        (stamp.size == text.len() as u64)
            .then_some(stamp)
            .ok_or_else(changing)
    }

    /// Adds entries behind the last one, the file being written once. `around` is what stands in front
    /// of them and behind them where there is no file yet.
    pub(super) fn append_all(
        self,
        snapshot: &Snapshot,
        entries: &[&str],
        around: (&str, &str),
    ) -> Result<(), Error> {
        let joined = entries.join(",\n    ");
        let Some(file) = &snapshot.file else {
            let text = [around.0, &joined, around.1].concat();
            self.begin(snapshot, text.as_bytes())?;
            return self.refresh();
        };
        let path = &snapshot.path;
        let old = &snapshot.table.header;
        let closing = read_closing(file, old).map_err(Error::io("read", path))?;
        let is_first = byte_before(file, old.tail).map_err(Error::io("read", path))? == b'[';
        let between = usize::try_from(old.close - old.tail).unwrap_or(0);
        let keep = !is_first && closing[..between].iter().all(u8::is_ascii_whitespace);
        let gap = if keep { &closing[..between] } else { b"\n  " };
        let comma: &[u8] = if is_first { b"" } else { b"," };
        let bytes = [comma, b"\n    ", joined.as_bytes(), gap].concat();
        self.rewrite(snapshot, &[(old.tail..old.close, &bytes)])
    }

    /// Keeps only the entries that are wanted, each with its bytes.
    pub(super) fn keep_only(
        self,
        snapshot: &Snapshot,
        is_kept: &dyn Fn(&Row) -> bool,
    ) -> Result<(), Error> {
        let mut rows = Vec::new();
        snapshot.each(false, &mut |row| {
            rows.push(row.clone());
            true
        })?;
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

    /// Moves the saved table on to a file that has just got some more entries. What fails here is
    /// made good by the next scan.
    fn record(self, old: &Header, stamp: Stamp, rows: &[Row], table: Option<&Offsets>) {
        let shape = |row: &Row| {
            IdShape::of(self.kind, &String::from_utf8_lossy(row.id())).unwrap_or_default()
        };
        let highest = rows.iter().map(shape).max().unwrap_or_default();
        let header = Header {
            // A file that is new starts a generation of its own.
            generation: match old.generation {
                0 => stamp.generation(),
                generation => generation,
            },
            stamp,
            count: old.count + rows.len() as u64,
            highest: old.highest.max(highest),
            ..old.clone()
        };
        if table.is_some_and(Offsets::is_saved) {
            drop(Offsets::append(
                self.directory,
                &self.table_path(),
                &header,
                rows,
            ));
            return;
        }
        let mut all = Vec::new();
        if let Some(table) = table {
            drop(table.each(false, &mut |row| {
                all.push(row.clone());
                true
            }));
        }
        all.extend_from_slice(rows);
        Offsets::in_memory(header, all).save(self.directory, &self.table_path());
    }

    /// Replaces the text of one entry.
    pub(super) fn replace(self, snapshot: &Snapshot, row: &Row, entry: &str) -> Result<(), Error> {
        self.replace_all(snapshot, &[(row, entry)])
    }

    /// Replaces the texts of some entries, in the order of the file.
    pub(super) fn replace_all(
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

    /// Removes some entries, in the order of the file, with the commas that belong to them.
    pub(super) fn remove_all(self, snapshot: &Snapshot, rows: &[Row]) -> Result<(), Error> {
        let Some(file) = &snapshot.file else {
            return Ok(());
        };
        let header = &snapshot.table.header;
        // Neighbours go as one: what each takes along by itself would overlap at the end.
        let mut runs: Vec<std::ops::Range<u64>> = Vec::new();
        for row in rows {
            self.read_exactly(snapshot, row)?;
            let end = row.at + u64::from(row.length);
            match runs.last_mut() {
                Some(run)
                    if follows(file, run.end, row.at)
                        .map_err(Error::io("read", &snapshot.path))? =>
                {
                    run.end = end;
                }
                _ => runs.push(row.at..end),
            }
        }
        let mut changes: Vec<(_, &[u8])> = Vec::new();
        for run in runs {
            let span = removal(file, run, header).map_err(Error::io("read", &snapshot.path))?;
            changes.push((span, b""));
        }
        self.rewrite(snapshot, &changes)
    }

    fn rewrite(
        self,
        snapshot: &Snapshot,
        changes: &[(std::ops::Range<u64>, &[u8])],
    ) -> Result<(), Error> {
        let Some(file) = &snapshot.file else {
            return Ok(());
        };
        let path = &snapshot.path;
        let read = file.metadata().map_err(Error::io("read", path))?;
        if Stamp::of(&read) != snapshot.table.header.stamp {
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
        // The table could be shifted, but changes are rare and a scan is sure.
        self.refresh()
    }

    /// Gives the file, which is there, another text.
    pub(super) fn write_anew(self, snapshot: &Snapshot, text: &[u8]) -> Result<(), Error> {
        let end = snapshot.table.header.stamp.size;
        self.rewrite(snapshot, &[(0..end, text)])
    }

    /// The text of an entry that is to be written over.
    fn read_exactly(self, snapshot: &Snapshot, row: &Row) -> Result<Vec<u8>, Error> {
        match snapshot.read(row) {
            Ok(text) if row.is_of(&text) => Ok(text),
            Err(Error::Io { source, .. }) if source.kind() != io::ErrorKind::UnexpectedEof => {
                Err(Error::io("read", &snapshot.path)(source))
            }
            _ => Err(self.distrust(&snapshot.path)?),
        }
    }

    /// Drops the saved table, which tells of other bytes than there are: two states of a file look the same
    /// where they are equally long and the clock of the file system did not tick between them.
    fn distrust(self, path: &Path) -> Result<Error, Error> {
        atomic::remove(self.directory, self.table_path())?;
        Ok(Error::Changing {
            path: path.to_owned(),
        })
    }

    /// Makes the saved table anew from the file.
    pub(super) fn refresh(self) -> Result<(), Error> {
        self.by_scan()?
            .table
            .save(self.directory, &self.table_path());
        Ok(())
    }
}

/// Puts entries behind each other into what is to be written at `at`; answers where they will lie.
fn lay_out(bytes: &mut Vec<u8>, at: u64, entries: &[NewEntry<'_>]) -> Vec<Row> {
    let mut rows = Vec::with_capacity(entries.len());
    for (number, entry) in entries.iter().enumerate() {
        if number > 0 {
            bytes.extend_from_slice(b",\n    ");
        }
        let start = at + bytes.len() as u64;
        rows.push(Row::new(
            start,
            entry.text.as_bytes(),
            entry.id,
            entry.skill,
        ));
        bytes.extend_from_slice(entry.text.as_bytes());
    }
    rows
}

/// What stands between the last entry and the end of the file.
fn read_closing(file: &File, header: &Header) -> io::Result<Vec<u8>> {
    let length = header.stamp.size - header.tail;
    if length > LONGEST_CLOSING {
        return Err(io::Error::other(
            "more than 1 MiB stands behind the last entry",
        ));
    }
    let mut closing = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut closing, header.tail)?;
    Ok(closing)
}

/// Whether this is what may stand behind the last entry, with the bracket of the array at its place.
fn is_closing(closing: &[u8], between: usize) -> bool {
    let is_gap = |b: &u8| b.is_ascii_whitespace() || *b == b',';
    closing.get(between) == Some(&b']') && closing[..between].iter().all(is_gap)
}

fn byte_before(file: &File, at: u64) -> io::Result<u8> {
    let mut byte = [0];
    file.read_exact_at(&mut byte, at.saturating_sub(1))?;
    Ok(byte[0])
}

/// Whether nothing but a comma and white space stands between two entries.
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

/// The span that has to go with an entry, or a run of them, so that the rest is an array again.
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
    // The last entry takes the comma before it along, or the white space where there is none.
    let mut from = start;
    while byte_before(file, from)?.is_ascii_whitespace() {
        from -= 1;
    }
    if byte_before(file, from)? == b',' {
        return Ok(from - 1..end);
    }
    Ok(from..next)
}
