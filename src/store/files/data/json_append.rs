//! Appending to a data file: the closing brackets are replaced by the new entries and the closing
//! brackets, in one write, which is then synced. Its cost is independent of the size of the file.
//!
//! The invariants of `json_write` hold here too.

use std::fs::File;
use std::io::{self, Write as _};

use crate::model::IdShape;
use crate::store::atomic;
use crate::store::error::Error;
use memctl_files::{FileState, PositionedFile as _};

use super::data_file::CLOSING;
use super::foreign_edit::{AppendState, Point, WritePosition, reach};
use super::json_file::{FORMAT, JsonFile, Snapshot};
use super::json_write::{byte_before, cannot_read};
use super::offsets::{Header, Offsets, Row, generation};

/// Maximum length of the text after the last entry: closing brackets and a few keys of the root.
const LONGEST_CLOSING: u64 = 1 << 20;

/// An entry to append.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewEntry<'a> {
    /// Formatted JSON text.
    pub(crate) text: &'a str,
    pub(crate) id: &'a str,
    /// Empty if the entry has no skill.
    pub(crate) skill: &'a str,
}

impl JsonFile<'_> {
    /// Appends entries in one write, at a cost independent of the size of the file. A crash leaves
    /// some of them and a torn tail, which the next writer cuts.
    pub(crate) fn append(self, snapshot: &Snapshot, entries: &[NewEntry<'_>]) -> Result<(), Error> {
        let path = self.path();
        let old = &snapshot.table.header;
        let changing = || Error::Changing { path: path.clone() };
        if snapshot.file.is_none() {
            let opening = format!("{{\n  \"{}\": [\n    ", self.kind().root_key());
            let mut text = opening.into_bytes();
            let rows = lay_out(&mut text, 0, entries);
            let tail = text.len() as u64;
            text.extend_from_slice(CLOSING.as_bytes());
            let stamp = self.begin(snapshot, &text)?;
            // The entry is followed by a line break and two spaces.
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
        let closing = read_closing(&file, old).map_err(cannot_read(&path))?;
        reach(Point::EndRead, &path);
        let position =
            WritePosition::behind(self.directory, &file, &path, old).map_err(cannot_read(&path))?;
        let is_first = byte_before(&file, old.tail).map_err(cannot_read(&path))? == b'[';
        let between = distance(old.tail, old.close);
        if !is_closing(&closing, between) {
            return Err(self.distrust(&path)?);
        }
        // Empty arrays are expanded; otherwise the layout after the last entry is kept.
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
        let written = position.write(&bytes, old.stamp).and_then(|is_written| {
            file.sync_data()?;
            Ok(is_written)
        });
        match written {
            Ok(true) => {}
            Ok(false) => return Err(changing()),
            Err(source) => {
                // The old closing brackets fit in their old place even on a full disk.
                if position.is_preceded_as_before() {
                    drop(
                        file.write_all_at(&closing, old.tail)
                            .and_then(|()| file.set_len(old.stamp.size)),
                    );
                }
                return Err(Error::io("write", &path)(source));
            }
        }
        let state = position.verify(&bytes, self.kind().root_key());
        let AppendState::Here(stamp) = state.map_err(cannot_read(&path))? else {
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

    /// Creates a missing or empty file with this text. Returns its state.
    fn begin(self, snapshot: &Snapshot, text: &[u8]) -> Result<FileState, Error> {
        let path = &snapshot.path;
        let changing = || Error::Changing { path: path.clone() };
        let read = snapshot.table.header.stamp;
        let state = || self.directory.state(path).map_err(Error::io("read", path));
        let empty = state()?;
        if empty.unwrap_or_default() != read {
            return Err(changing());
        }
        reach(Point::Compared, path);
        if !atomic::replace_unchanged(self.directory, path, empty.as_ref(), |file| {
            file.write_all(text)
        })? {
            return Err(changing());
        }
        let made = state()?.ok_or_else(changing)?;
        (made.size == text.len() as u64)
            .then_some(made)
            .ok_or_else(changing)
    }

    /// Appends entries with one rewrite of the file. `around` is the text before and after them if
    /// there is no file yet.
    pub(crate) fn append_all(
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
        let closing = read_closing(file, old).map_err(cannot_read(path))?;
        let is_first = byte_before(file, old.tail).map_err(cannot_read(path))? == b'[';
        let between = distance(old.tail, old.close);
        if !is_closing(&closing, between) {
            return Err(self.distrust(path)?);
        }
        let keep = !is_first && closing[..between].iter().all(u8::is_ascii_whitespace);
        let gap = if keep { &closing[..between] } else { b"\n  " };
        let comma: &[u8] = if is_first { b"" } else { b"," };
        let bytes = [comma, b"\n    ", joined.as_bytes(), gap].concat();
        self.rewrite(snapshot, &[(old.tail..old.close, &bytes)])
    }

    /// Updates the saved table after an append. The next scan corrects any failure.
    fn record(self, old: &Header, stamp: FileState, rows: &[Row], table: Option<&Offsets>) {
        let shape = |row: &Row| {
            IdShape::of(self.kind(), &String::from_utf8_lossy(row.id())).unwrap_or_default()
        };
        let highest = rows.iter().map(shape).max().unwrap_or_default();
        let header = Header {
            // A new file starts a new generation.
            generation: match old.generation {
                0 => generation(&stamp),
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
}

/// Appends entries to the bytes to be written at `at`; returns their rows.
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
