//! Line numbers of positions in a file, for messages.

use std::fs::File;
use std::io;

use memctl_files::PositionedFile as _;

/// Number of bytes that are read at once.
const BLOCK: usize = 64 << 10;

/// Line numbers, from 1, of bytes in a file. Queries in file order read the file only once.
#[derive(Debug)]
pub(crate) struct LineNumbers<'a> {
    file: &'a File,
    at: u64,
    line: u64,
    chunk: Vec<u8>,
}

impl<'a> LineNumbers<'a> {
    pub(crate) fn of(file: &'a File) -> Self {
        Self {
            file,
            at: 0,
            line: 1,
            chunk: Vec::new(),
        }
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
