//! Finds the entries of a data file by reading it from start to end: the slow path, used when the
//! derived offsets do not match the file.
//!
//! The file streams through a window that holds one entry at a time. A file that ends inside an
//! entry is the result of a crash: all entries before it count. Invalid bytes elsewhere are damage:
//! they are reported, and reading continues at the next text that looks like an entry.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use memctl_files::PositionedFile as _;
use memctl_files::json::{self, Stop};

use crate::store::{Problem, ProblemKind};

/// Structure of the file as a whole.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    /// Offset of the next entry: after the last one, or after the opening bracket.
    pub(crate) tail: u64,
    /// Offset of the array's closing bracket; `None` if the file ends before it.
    pub(crate) close: Option<u64>,
    /// Value of the `format` key; 1 if there is none.
    pub(crate) format: u64,
    /// Problems found.
    pub(crate) problems: Vec<Problem>,
    /// `true` if the file is empty or missing.
    pub(crate) empty: bool,
}

/// Scans `file`; `each` gets the offset and the text of every complete entry.
pub(crate) fn scan(
    file: &File,
    path: &Path,
    root_key: &str,
    each: &mut dyn FnMut(u64, &[u8]),
) -> io::Result<Outline> {
    let mut scan = Scan {
        window: Window::new(file),
        lines: LineNumbers::of(file, path),
        outline: Outline {
            format: 1,
            ..Outline::default()
        },
    };
    scan.root(root_key, each)?;
    Ok(scan.outline)
}

struct Scan<'a> {
    window: Window<'a>,
    lines: LineNumbers<'a>,
    outline: Outline,
}

impl Scan<'_> {
    fn root(&mut self, root_key: &str, each: &mut dyn FnMut(u64, &[u8])) -> io::Result<()> {
        self.window.skip_byte_order_mark()?;
        match self.window.next_byte()? {
            None => {
                self.outline.empty = true;
                return Ok(());
            }
            Some(b'{') => self.window.at += 1,
            Some(_) => return self.problem(ProblemKind::File, "the file is not a JSON object"),
        }
        let mut found = false;
        loop {
            match self.window.next_byte()? {
                Some(b'"') => {}
                Some(b'}') => break self.window.at += 1,
                Some(b',') => {
                    self.window.at += 1;
                    continue;
                }
                None if found => {
                    // The array's bracket reached the disk, but the root's did not.
                    self.outline.close = None;
                    return self.torn(self.outline.tail);
                }
                _ => return self.problem(ProblemKind::File, "the root object is broken here"),
            }
            let Some(key) = self.window.string()? else {
                return self.problem(ProblemKind::File, "the root object is broken here");
            };
            if self.window.next_byte()? != Some(b':') {
                return self.problem(ProblemKind::File, "expected `:` after a key of the root");
            }
            self.window.at += 1;
            let first = self.window.next_byte()?;
            if key == root_key && first == Some(b'[') && !found {
                found = true;
                self.window.at += 1;
                if !self.entries(each)? {
                    return Ok(());
                }
                continue;
            }
            match self.window.value()? {
                Ok(span) => {
                    if key == "format" {
                        let text = String::from_utf8_lossy(&self.window.buffer[span]).into_owned();
                        // An unknown format must not be overwritten.
                        self.outline.format = text.parse().unwrap_or(u64::MAX);
                    }
                }
                Err(_) => {
                    return self.problem(ProblemKind::File, "the root object is broken here");
                }
            }
        }
        if !found {
            let message = format!("the root object has no array `{root_key}`");
            return self.problem(ProblemKind::File, &message);
        }
        if self.window.next_byte()?.is_some() {
            return self.problem(
                ProblemKind::Damage,
                "unexpected text after the end of the root",
            );
        }
        Ok(())
    }

    /// Reads the entries after the array's opening bracket. Returns `true` if the end of the array
    /// was found.
    fn entries(&mut self, each: &mut dyn FnMut(u64, &[u8])) -> io::Result<bool> {
        self.outline.tail = self.window.position();
        let mut expect_comma = false;
        loop {
            match self.window.next_byte()? {
                None => {
                    self.torn(self.outline.tail)?;
                    return Ok(false);
                }
                Some(b']') => {
                    self.outline.close = Some(self.window.position());
                    self.window.at += 1;
                    return Ok(true);
                }
                Some(b',') => {
                    self.window.at += 1;
                    expect_comma = false;
                    continue;
                }
                Some(_) => {}
            }
            if expect_comma {
                self.problem(ProblemKind::Damage, "a comma is missing before this entry")?;
            }
            let start = self.window.position();
            match self.window.value()? {
                Ok(span) => {
                    each(start, &self.window.buffer[span]);
                    self.outline.tail = self.window.position();
                    self.window.drop_read();
                    expect_comma = true;
                }
                Err(Stop::Incomplete) => {
                    self.torn(start)?;
                    return Ok(false);
                }
                Err(Stop::Malformed { at, expected }) => {
                    let offset = self.window.base + at as u64;
                    if !self.window.resume_at_next_entry()? {
                        return self.broken_end(start, offset, expected);
                    }
                    let message = format!("the entry is broken: expected {expected}");
                    self.problem_at(offset, ProblemKind::Damage, message)?;
                    expect_comma = false;
                }
            }
        }
    }

    /// Handles an end of the file without a further entry. If the closing brackets are present, the
    /// last entry is damaged. Otherwise a write was cut off: between the old brackets and the new
    /// entry, or before the zeros that a file system leaves after a power failure.
    fn broken_end(&mut self, start: u64, offset: u64, expected: &str) -> io::Result<bool> {
        while !self.window.end {
            self.window.fill()?;
        }
        let from = usize::try_from(start - self.window.base).unwrap_or(0);
        let rest = self.window.buffer[from..].trim_ascii_end();
        let array = rest.strip_suffix(b"}").map(<[u8]>::trim_ascii_end);
        let Some(last) = array.and_then(|array| array.strip_suffix(b"]")) else {
            self.torn(start)?;
            return Ok(false);
        };
        self.outline.close = Some(start + last.len() as u64);
        self.outline.tail = start + last.trim_ascii_end().len() as u64;
        let message = format!("the entry is broken: expected {expected}");
        self.problem_at(offset, ProblemKind::Damage, message)?;
        Ok(false)
    }

    fn torn(&mut self, offset: u64) -> io::Result<()> {
        let message = "the file ends inside an entry".to_owned();
        self.problem_at(offset, ProblemKind::TornTail, message)
    }

    fn problem(&mut self, kind: ProblemKind, message: &str) -> io::Result<()> {
        self.problem_at(self.window.position(), kind, message.to_owned())
    }

    fn problem_at(&mut self, offset: u64, kind: ProblemKind, message: String) -> io::Result<()> {
        let problem = self.lines.problem(offset, kind, message)?;
        self.outline.problems.push(problem);
        Ok(())
    }
}

/// Minimum number of bytes that are read at once.
pub(super) const CHUNK: usize = 1 << 20;

/// A part of the file in memory. Positions are relative to `base`.
pub(super) struct Window<'a> {
    file: &'a File,
    pub(super) base: u64,
    pub(super) buffer: Vec<u8>,
    /// Read position in the buffer.
    pub(super) at: usize,
    /// `true` if the end of the file is in the buffer.
    pub(super) end: bool,
    /// Number of bytes read in values that turned out to have no end.
    wasted: usize,
}

impl<'a> Window<'a> {
    pub(super) fn new(file: &'a File) -> Self {
        Self {
            file,
            base: 0,
            buffer: Vec::new(),
            at: 0,
            end: false,
            wasted: 0,
        }
    }

    pub(super) fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Reads more. Doubling keeps the cost of a very long entry linear.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        let want = self.buffer.len().max(CHUNK);
        let mut file = self.file;
        let read = file
            .by_ref()
            .take(want as u64)
            .read_to_end(&mut self.buffer)?;
        self.end = read == 0;
        Ok(())
    }

    pub(super) fn drop_read(&mut self) {
        // Move the rest only if it is no larger than the removed part.
        if self.at >= CHUNK && self.at >= self.buffer.len() / 2 {
            self.buffer.drain(..self.at);
            self.base += self.at as u64;
            self.at = 0;
        }
    }

    pub(super) fn skip_byte_order_mark(&mut self) -> io::Result<()> {
        self.fill()?;
        if self.buffer.starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        }
        Ok(())
    }

    /// Moves to the next byte that is not white space, without consuming it.
    pub(super) fn next_byte(&mut self) -> io::Result<Option<u8>> {
        loop {
            self.at = json::skip_space(&self.buffer, self.at);
            if let Some(&b) = self.buffer.get(self.at) {
                return Ok(Some(b));
            }
            if self.end {
                return Ok(None);
            }
            self.fill()?;
        }
    }

    /// Reads the value that starts here.
    pub(super) fn value(&mut self) -> io::Result<Result<std::ops::Range<usize>, Stop>> {
        let start = self.at;
        Ok(self.end_of(start)?.map(|end| {
            self.at = end;
            start..end
        }))
    }

    /// Returns the end of the value that starts at this buffer position.
    fn end_of(&mut self, start: usize) -> io::Result<Result<usize, Stop>> {
        loop {
            let done = json::skip_value(&self.buffer, start);
            match done {
                Ok(_) => {}
                Err(Stop::Incomplete) if !self.end => {
                    self.fill()?;
                    continue;
                }
                Err(Stop::Incomplete) => self.wasted += self.buffer.len() - start,
                Err(Stop::Malformed { at, .. }) => self.wasted += at - start,
            }
            return Ok(done);
        }
    }

    /// Reads the string that starts here; `None` if it has no end.
    pub(super) fn string(&mut self) -> io::Result<Option<String>> {
        Ok(self.value()?.ok().map(|span| {
            let quoted = &self.buffer[span];
            String::from_utf8_lossy(&quoted[1..quoted.len() - 1]).into_owned()
        }))
    }

    /// Moves to the next text that looks like the start of an entry, with an indentation of two
    /// spaces per level; `false` if there is none, or if so much was read in vain that the rest counts
    /// as one damaged part: containers that are opened and never closed would cost the square of the
    /// file.
    pub(super) fn resume_at_next_entry(&mut self) -> io::Result<bool> {
        const ENTRY: &[u8] = b"\n    {";
        let mut from = self.at + 1;
        loop {
            if self.wasted > patience(self.buffer.len()) {
                return Ok(false);
            }
            let Some(found) = memchr::memmem::find(&self.buffer[from..], ENTRY) else {
                if self.end {
                    return Ok(false);
                }
                from = self.buffer.len().saturating_sub(ENTRY.len()).max(from);
                self.fill()?;
                continue;
            };
            let start = from + found + ENTRY.len() - 1;
            if self.end_of(start)?.is_ok() {
                self.at = start;
                return Ok(true);
            }
            from = start;
        }
    }
}

/// Returns the number of bytes that may be read in vain in a broken text of this length.
pub(crate) fn patience(length: usize) -> usize {
    length.saturating_mul(4).saturating_add(4 << 20)
}

/// Number of bytes that are read at once.
const BLOCK: usize = 64 << 10;

/// Line numbers, from 1, of bytes in a file. Queries in file order read the file only once.
#[derive(Debug)]
pub(crate) struct LineNumbers<'a> {
    file: &'a File,
    path: &'a Path,
    at: u64,
    line: u64,
    chunk: Vec<u8>,
}

impl<'a> LineNumbers<'a> {
    pub(crate) fn of(file: &'a File, path: &'a Path) -> Self {
        Self {
            file,
            path,
            at: 0,
            line: 1,
            chunk: Vec::new(),
        }
    }

    /// Returns a problem at `offset`.
    pub(crate) fn problem(
        &mut self,
        offset: u64,
        kind: ProblemKind,
        message: String,
    ) -> io::Result<Problem> {
        let path = self.path.to_owned();
        Ok(Problem {
            path,
            offset,
            line: self.at(offset)?,
            kind,
            message,
        })
    }

    /// Returns the line of the byte at `offset`.
    pub(crate) fn at(&mut self, offset: u64) -> io::Result<u64> {
        if offset < self.at {
            (self.at, self.line) = (0, 1);
        }
        self.chunk.resize(BLOCK, 0);
        while self.at < offset {
            let want = usize::try_from(offset - self.at)
                .unwrap_or(BLOCK)
                .min(BLOCK);
            let read = self.file.read_at(&mut self.chunk[..want], self.at)?;
            if read == 0 {
                break;
            }
            self.line += memchr::memchr_iter(b'\n', &self.chunk[..read]).count() as u64;
            self.at += read as u64;
        }
        Ok(self.line)
    }
}

#[cfg(test)]
mod tests;
