//! The lines of the log of actions that go with a session when it is forgotten, and come back with it.
//!
//! The log is only ever added to, so that a place in it, counted in bytes from its start, stays what it is
//! for all that stands before. By these places lines come back to where they were.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};

use super::atomic;
use super::changes::{PlacedLine, Step};
use super::directory;
use super::error::Error;
use super::execution_logs::{FILE, each_line, read};
use super::writer::Writer;

impl Writer {
    /// Removes the lines of a session, by the names that it has; every other line keeps its bytes. Answers
    /// how many went. With `for_good` the journal keeps none of them.
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

    /// Takes out lines that have come back, wherever they stand.
    pub fn take_out_lines(&mut self, id: &str, lines: &[PlacedLine]) -> Result<usize, Error> {
        let gone = self.placed(&|line| lines.iter().any(|known| known.is(line)))?;
        if gone.is_empty() {
            return Ok(0);
        }
        self.note_lines(id, false, &gone);
        self.rewrite_execution_logs(&|at, _| !gone.iter().any(|line| line.at == at), &[])?;
        Ok(gone.len())
    }

    /// Puts lines back to where they stood, or behind what stands there now. Lines that are there already
    /// are not doubled.
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

    /// The lines that are wanted, each with its place; none where the scope sees no log.
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

    /// Writes the log anew: the lines that are kept, and these ones at their places.
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
            // Places are those of the log with the lines in it.
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
