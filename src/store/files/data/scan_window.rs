//! Window through which a data file is read: it holds at least the entry that is being read.

use std::fs::File;
use std::io::{self, Read as _};

use memctl_files::json::{self, Stop, Walk};

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
    /// Known results for incomplete containers and the containers inside them.
    walk: Walk,
}

impl<'a> Window<'a> {
    pub(super) fn new(file: &'a File) -> Self {
        Self {
            file,
            base: 0,
            buffer: Vec::new(),
            at: 0,
            end: false,
            walk: Walk::default(),
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
        if let Some(known) = self.walk.known(self.base + start as u64, self.base) {
            return Ok(known);
        }
        loop {
            match json::skip_value(&self.buffer, start) {
                Ok(end) => return Ok(Ok(end)),
                Err(Stop::Incomplete) if !self.end => self.fill()?,
                // Parse again to record the result for containers inside.
                Err(_) => return Ok(self.walk.end_of(&self.buffer, start, self.base)),
            }
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
    /// spaces per level; `false` if there is none.
    pub(super) fn resume_at_next_entry(&mut self) -> io::Result<bool> {
        const ENTRY: &[u8] = b"\n    {";
        let mut from = self.at + 1;
        loop {
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
