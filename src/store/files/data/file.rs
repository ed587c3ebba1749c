//! Reading of one data file: `{"entries": [ … ]}`, with entries kept as text.
//!
//! The saved table of offsets locates the entries if it matches the file; otherwise a scan does.
//! Reading needs no lock and waits at most briefly. Writing is in `write`.
//!
//! Read-ahead: entries that are read in the order of the file come from few large reads. Only bytes before the
//! tail are cached, because those change only when the file is replaced. A thread that finds the cache in use
//! does not wait, and reads for itself.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use memctl_files::json;
use memctl_files::{Directory, FileState, PositionedFile as _};

use crate::model::{IdShape, Kind};
use crate::store::files::data::offsets::{Header, Offsets, generation};
use crate::store::files::data::scan::{Outline, scan};
use crate::store::files::data::{Point, reach};
use crate::store::files::{directory, tombstones};
use crate::store::{DERIVED, DataFile, Entry, Error, Problem, ProblemKind, Row};

/// Newest format of data files that this program writes.
///
/// - 1: the source documents' own files, which have no `format` key.
pub const FORMAT: u64 = 1;
/// Size in bytes below which a scan is as cheap as reading a table.
const SMALL: u64 = 8 << 10;

/// One data file of a memory directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JsonFile<'a> {
    pub(crate) directory: &'a Directory,
    pub(crate) of: DataFile,
    /// `true` if the caller holds the lock, so that there is no writer to wait for.
    held: bool,
}

/// State of the file at one moment. Entries read later are of that moment, because bytes before the
/// tail change only when the file is replaced.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) of: DataFile,
    pub(crate) path: PathBuf,
    pub(crate) file: Option<File>,
    pub(crate) table: Offsets,
    ahead: ReadAhead,
    /// Problems found by the scan. Empty if the saved table made it unnecessary, even if
    /// `table.header.problems` is not zero.
    pub(crate) problems: Vec<Problem>,
}

impl Snapshot {
    /// Reads the entry of a row.
    pub(crate) fn entry(&self, row: &Row) -> Result<Entry, Error> {
        let kind = self.of.kind;
        let text = self.read(row)?;
        let id = if row.id_is_cut() {
            json::string_field(&text, kind.id_field())
                .unwrap_or_default()
                .into_owned()
        } else {
            String::from_utf8_lossy(row.id()).into_owned()
        };
        Ok(Entry {
            kind,
            id,
            text,
            is_local: self.of.is_local,
            offset: row.at,
        })
    }

    /// Reads the text of an entry.
    pub(crate) fn read(&self, row: &Row) -> Result<Vec<u8>, Error> {
        let Some(file) = &self.file else {
            return Ok(Vec::new());
        };
        let (length, tail) = (row.length as usize, self.table.header.tail);
        let bytes = self.ahead.read(file, row.at, length, tail);
        bytes.map_err(Error::io("read", &self.path))
    }

    /// Reads the whole file; fails if it has changed since.
    pub(crate) fn whole(&self) -> Result<Vec<u8>, Error> {
        let mut text = Vec::new();
        if let Some(mut file) = self.file.as_ref() {
            let read = file.rewind().and_then(|()| file.read_to_end(&mut text));
            let state = read.and_then(|_| FileState::of(file));
            if state.map_err(Error::io("read", &self.path))? != self.table.header.stamp {
                return Err(Error::Changing(self.path.clone()));
            }
        }
        Ok(text)
    }

    /// Returns all rows, oldest first.
    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = Row> {
        self.table.rows()
    }

    /// Returns the entries that `is_wanted`, with their rows.
    pub(crate) fn entries(
        &self,
        is_wanted: &dyn Fn(&Entry) -> bool,
    ) -> Result<Vec<(Row, Entry)>, Error> {
        self.among(self.rows(), is_wanted)
    }

    fn among(
        &self,
        rows: impl Iterator<Item = Row>,
        is_wanted: &dyn Fn(&Entry) -> bool,
    ) -> Result<Vec<(Row, Entry)>, Error> {
        let all = rows.map(|row| Ok((row, self.entry(&row)?)));
        all.filter(|one| one.as_ref().map_or(true, |(_, entry)| is_wanted(entry)))
            .collect()
    }

    /// Returns the entries with one of these ids, with their rows. A damaged file may have several with
    /// one id.
    pub(crate) fn of_ids(&self, ids: &HashSet<&str>) -> Result<Vec<(Row, Entry)>, Error> {
        let ids: HashSet<&[u8]> = ids.iter().map(|id| id.as_bytes()).collect();
        // The table has only the beginning of long ids; the entry has the rest.
        let rows = self
            .rows()
            .filter(|row| row.id_is_cut() || ids.contains(row.id()));
        let is_wanted = |entry: &Entry| !entry.id.is_empty() && ids.contains(entry.id.as_bytes());
        self.among(rows, &is_wanted)
    }

    /// Returns the first entry with this id that is wanted, with its row.
    pub(crate) fn find(
        &self,
        id: &str,
        is_wanted: impl Fn(&Entry) -> bool,
    ) -> Result<Option<(Row, Entry)>, Error> {
        for row in self.rows().filter(|row| !id.is_empty() && row.may_be(id)) {
            let entry = self.entry(&row)?;
            if entry.id == id && is_wanted(&entry) {
                return Ok(Some((row, entry)));
            }
        }
        Ok(None)
    }

    /// Returns `true` if an id is taken, by any user's record.
    pub(crate) fn holds(&self, id: &str) -> Result<bool, Error> {
        Ok(self.find(id, |_| true)?.is_some())
    }

    /// Returns the state of a file that a writer has locked: an entry in progress is not reported as torn.
    fn in_progress(mut self) -> Self {
        self.problems
            .retain(|problem| problem.kind != ProblemKind::TornTail);
        self.table.header.problems = self.problems.len() as u64;
        self
    }

    /// Fails if the file is of a newer format: it can be read, but not written.
    pub(crate) fn check_format(&self) -> Result<(), Error> {
        let found = self.table.header.format;
        if found > FORMAT {
            return Err(Error::NewerFormat {
                path: self.path.clone(),
                found,
                ours: FORMAT,
            });
        }
        Ok(())
    }
}

impl<'a> JsonFile<'a> {
    pub(crate) fn new(directory: &'a Directory, of: DataFile, held: bool) -> Self {
        Self {
            directory,
            of,
            held,
        }
    }

    /// Returns the kind of the records in the file.
    pub(crate) fn kind(self) -> Kind {
        self.of.kind
    }

    pub(crate) fn path(self) -> PathBuf {
        self.directory.join(self.of.name())
    }

    pub(crate) fn table_path(self) -> PathBuf {
        let name = format!("{}.offsets", self.of.derived_name());
        self.directory.join(DERIVED).join(name)
    }

    /// Returns the current state for a reader, and saves its table if the file is large enough.
    ///
    /// A writer updates its two files within microseconds, and an entry is partial for less.
    /// Looking again is cheaper than reading 150 MB, and the retries are bounded.
    pub(crate) fn snapshot(self) -> Result<Snapshot, Error> {
        let is_being_written = || !self.held && directory::is_being_written(self.directory);
        let mut before = None;
        for _ in 0..60 {
            if let Some(snapshot) = self.by_table()? {
                return Ok(snapshot);
            }
            let (state, is_busy) = (self.stamp()?, is_being_written());
            // A file unchanged since the last look is complete even if a writer holds the lock, so
            // a held lock blocks no reader.
            if is_busy && before != Some(state) {
                before = Some(state);
                std::thread::sleep(Duration::from_micros(500));
                continue;
            }
            let snapshot = self.by_scan()?;
            let is_steady = self.stamp()? == snapshot.table.header.stamp;
            if is_steady && is_busy {
                return Ok(snapshot.in_progress());
            }
            if is_steady && !is_being_written() {
                if snapshot.table.header.stamp.size >= SMALL {
                    snapshot.table.save(self.directory, &self.table_path());
                }
                return Ok(snapshot);
            }
        }
        Ok(self.by_scan()?.in_progress())
    }

    /// Returns the state of the file; the default one if it is missing.
    pub(super) fn stamp(self) -> Result<FileState, Error> {
        let file = directory::open_data(self.directory, self.of.name())?;
        let state = file.as_ref().map(FileState::of).transpose();
        Ok(state
            .map_err(Error::io("read", &self.path()))?
            .unwrap_or_default())
    }

    /// Scans the current file, ignoring the saved table.
    pub(crate) fn by_scan(self) -> Result<Snapshot, Error> {
        let path = self.path();
        let Some(file) = directory::open_data(self.directory, self.of.name())? else {
            return Ok(self.missing());
        };
        let cannot_read = |source| Error::io("read", &path)(source);
        let stamp = FileState::of(&file).map_err(cannot_read)?;
        reach(Point::Sized, &path);
        let mut text = Vec::new();
        (&file).read_to_end(&mut text).map_err(cannot_read)?;
        let (table, outline) = self.table_of(&stamp, &text);
        let file = (!outline.empty).then_some(file);
        Ok(Snapshot {
            problems: outline.problems,
            ..self.state(file, table)
        })
    }

    /// Returns the table of a file with this state and text, and the structure of the file.
    pub(super) fn table_of(self, stamp: &FileState, text: &[u8]) -> (Offsets, Outline) {
        let mut highest = self.highest_removed(stamp);
        let mut rows = Vec::new();
        let outline = scan(
            text,
            &self.path(),
            self.kind().root_key(),
            &mut |at, entry| {
                let row = Row::of(self.kind(), at, entry);
                let id = String::from_utf8_lossy(row.id());
                highest = highest.max(IdShape::of(self.kind(), &id).unwrap_or_default());
                rows.push(row);
            },
        );
        let header = Header {
            stamp: *stamp,
            count: rows.len() as u64,
            tail: outline.tail,
            close: outline.close.unwrap_or(0),
            format: outline.format,
            highest,
            generation: generation(stamp),
            problems: outline.problems.len() as u64,
        };
        (Offsets::in_memory(header, rows), outline)
    }

    /// Returns the state that a saved table describes; `None` if that is of another version of the file.
    pub(crate) fn by_table(self) -> Result<Option<Snapshot>, Error> {
        let Some(file) = directory::open_data(self.directory, self.of.name())? else {
            return Ok(Some(self.missing()));
        };
        let stamp = FileState::of(&file).map_err(Error::io("read", &self.path()))?;
        let table = Offsets::open(self.directory, &self.table_path());
        let table = table.filter(|table| table.header.stamp == stamp);
        Ok(table.map(|table| self.state(Some(file), table)))
    }

    /// Returns the highest id ever removed, where it is used: by a writer, or in a table that is saved.
    fn highest_removed(self, stamp: &FileState) -> IdShape {
        if self.held || stamp.size >= SMALL {
            tombstones::highest(self.directory, self.kind())
        } else {
            IdShape::default()
        }
    }

    fn missing(self) -> Snapshot {
        let header = Header {
            format: FORMAT,
            highest: self.highest_removed(&FileState::default()),
            ..Header::default()
        };
        self.state(None, Offsets::in_memory(header, Vec::new()))
    }

    fn state(self, file: Option<File>, table: Offsets) -> Snapshot {
        Snapshot {
            of: self.of,
            path: self.path(),
            file,
            table,
            ahead: ReadAhead::default(),
            problems: Vec::new(),
        }
    }
}

/// Number of bytes that are read ahead.
const AHEAD: usize = 64 << 10;
/// Largest gap between two entries that follow each other.
const GAP: usize = 64;

/// Bytes that were read ahead.
#[derive(Debug, Default)]
struct ReadAhead(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    /// Offset of the bytes.
    start: u64,
    bytes: Vec<u8>,
}

impl ReadAhead {
    /// Reads the bytes at an offset. `tail` is the offset up to which the file does not change.
    pub(crate) fn read(
        &self,
        file: &File,
        at: u64,
        length: usize,
        tail: u64,
    ) -> io::Result<Vec<u8>> {
        let mut size = length;
        let mut window = self.0.try_lock().ok();
        if let Some(window) = &window
            && let Some(Ok(from)) = at.checked_sub(window.start).map(usize::try_from)
        {
            if let Some(found) = window.bytes.get(from..from.saturating_add(length)) {
                return Ok(found.to_vec());
            }
            if from <= window.bytes.len() + GAP {
                let left = usize::try_from(tail.saturating_sub(at)).unwrap_or(usize::MAX);
                size = AHEAD.min(left).max(length);
            }
        }
        let mut bytes = vec![0; size];
        file.read_exact_at(&mut bytes, at)?;
        let entry = bytes[..length].to_vec();
        if let Some(window) = &mut window {
            **window = Window { start: at, bytes };
        }
        Ok(entry)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn read_ahead_equals_the_file(
            entries in prop::collection::vec((0usize..40_000, 0usize..90), 1..30),
            order in prop::collection::vec((0usize..30, 1usize..20), 1..12),
        ) {
            let mut file = tempfile::tempfile().unwrap();
            let mut at = 0;
            let mut places = Vec::new();
            for (n, (length, gap)) in entries.iter().enumerate() {
                let bytes: Vec<u8> = (0..length + gap).map(|i| (i * 7 + n).to_le_bytes()[0]).collect();
                file.write_all(&bytes).unwrap();
                places.push((at, *length));
                at += bytes.len() as u64;
            }
            let ahead = ReadAhead::default();
            for (first, count) in order {
                for (at, length) in places.iter().skip(first).take(count) {
                    let tail = places.last().map(|(at, length)| at + *length as u64).unwrap();
                    let mut expected = vec![0; *length];
                    file.read_exact_at(&mut expected, *at).unwrap();
                    prop_assert_eq!(ahead.read(&file, *at, *length, tail).unwrap(), expected);
                }
            }
        }
    }

    #[test]
    fn nothing_behind_the_tail_is_kept() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"aaabbbccc").unwrap();
        let ahead = ReadAhead::default();
        for (at, expected) in [(0, b"aaa"), (3, b"bbb")] {
            assert_eq!(ahead.read(&file, at, 3, 6).unwrap(), expected);
        }
        file.write_all_at(b"ddd", 6).unwrap();
        assert_eq!(ahead.read(&file, 6, 3, 9).unwrap(), b"ddd");
        assert!(ahead.read(&file, 9, 3, 9).is_err());
    }
}
