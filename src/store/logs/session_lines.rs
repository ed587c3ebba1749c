//! Removal and restoration of a session's lines in the execution log.
//!
//! Byte offsets are stable, because the log otherwise only grows. They restore lines to their old
//! positions.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};

use crate::store::atomic;
use crate::store::error::Error;
use crate::store::files::directory;
use crate::store::files::directory::EXECUTION_LOGS as FILE;
use crate::store::undo_journal::step::{PlacedLine, Step};
use crate::store::writer::Writer;

use super::execution_logs::{each_line, read};

impl Writer {
    /// Removes the lines of a session, given its names; all other lines keep their bytes. Returns
    /// the number of removed lines. With `for_good`, the undo journal does not keep them.
    pub fn remove_execution_logs(
        &mut self,
        id: &str,
        sessions: &[String],
        for_good: bool,
    ) -> Result<usize, Error> {
        let viewer = self.store().viewer().clone();
        let is_gone = |line: &[u8]| {
            let line = read(line).filter(|line| viewer.sees(line.user_id.as_deref()));
            let session = line.and_then(|line| line.session_id);
            session.is_some_and(|session| sessions.contains(&session))
        };
        let gone = self.placed(&is_gone)?;
        if gone.is_empty() {
            return Ok(0);
        }
        if !for_good {
            self.note_lines(id, false, &gone);
        }
        self.rewrite_execution_logs(&|at, _| !gone.iter().any(|line| line.at == at), &[])?;
        Ok(gone.len())
    }

    /// Removes restored lines, at any position.
    pub fn take_out_lines(&mut self, id: &str, lines: &[PlacedLine]) -> Result<usize, Error> {
        let gone = self.placed(&|line| lines.iter().any(|known| known.is(line)))?;
        if gone.is_empty() {
            return Ok(0);
        }
        self.note_lines(id, false, &gone);
        self.rewrite_execution_logs(&|at, _| !gone.iter().any(|line| line.at == at), &[])?;
        Ok(gone.len())
    }

    /// Restores lines at their old positions, or after the lines there now. Skips lines that
    /// already exist.
    pub fn put_lines_back(&mut self, id: &str, lines: &[PlacedLine]) -> Result<usize, Error> {
        let there = self.placed(&|line| lines.iter().any(|known| known.is(line)))?;
        let is_missing = |line: &&PlacedLine| !there.iter().any(|other| other.text == line.text);
        let missing: Vec<PlacedLine> = lines.iter().filter(is_missing).cloned().collect();
        if missing.is_empty() {
            return Ok(0);
        }
        self.note_lines(id, true, &missing);
        self.rewrite_execution_logs(&|_, _| true, &missing)?;
        Ok(missing.len())
    }

    fn note_lines(&mut self, id: &str, came: bool, lines: &[PlacedLine]) {
        self.journal(Step::Lines {
            id: id.to_owned(),
            came,
            lines: lines.to_vec(),
        });
    }

    /// Returns the matching lines with their offsets; none if the scope excludes logs.
    fn placed(&self, is_wanted: &dyn Fn(&[u8]) -> bool) -> Result<Vec<PlacedLine>, Error> {
        let mut found = Vec::new();
        let Some(file) = self.open_execution_logs()? else {
            return Ok(found);
        };
        let mut at = 0;
        let walked = each_line(file, &mut |line| {
            if let Some(text) = std::str::from_utf8(line).ok().filter(|_| is_wanted(line)) {
                let text = text.trim_end_matches('\n').to_owned();
                found.push(PlacedLine { at, text });
            }
            at += line.len() as u64;
            Ok(())
        });
        walked.map_err(Error::io("read", &self.store().directory().join(FILE)))?;
        Ok(found)
    }

    fn open_execution_logs(&self) -> Result<Option<File>, Error> {
        if !self.store().scope().allows(None) {
            return Ok(None);
        }
        directory::open_data(self.store().directory(), FILE)
    }

    /// Rewrites the log: the kept lines, with the given lines inserted at their offsets.
    fn rewrite_execution_logs(
        &self,
        is_kept: &dyn Fn(u64, &[u8]) -> bool,
        back: &[PlacedLine],
    ) -> Result<(), Error> {
        let old = self.open_execution_logs()?;
        atomic::replace_with(self.store().directory(), FILE, |new| {
            let mut new = BufWriter::new(new);
            let mut back = back.iter().peekable();
            let put = |new: &mut BufWriter<&mut File>, line: &PlacedLine| -> io::Result<()> {
                new.write_all(line.text.as_bytes())?;
                new.write_all(b"\n")
            };
            // Offsets refer to the log that contains the lines.
            let (mut read, mut written) = (0, 0);
            if let Some(old) = old {
                each_line(old, &mut |line| {
                    while let Some(next) = back.next_if(|next| next.at <= written) {
                        put(&mut new, next)?;
                        written += next.text.len() as u64 + 1;
                    }
                    if is_kept(read, line) {
                        new.write_all(line)?;
                        written += line.len() as u64;
                    }
                    read += line.len() as u64;
                    Ok(())
                })?;
            }
            for line in back {
                put(&mut new, line)?;
            }
            new.flush()
        })
    }
}
