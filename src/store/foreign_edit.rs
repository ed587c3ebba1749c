//! Edits of a seed file by programs that take no lock: editors, and other memories over the same files.
//!
//! They save in two ways: a new file is renamed over the old one, or the old one is emptied and written
//! anew. A writer here compares the state of the file with what it has read right before it writes, and
//! looks at it again right after. Where something has changed it reads again and begins anew.
//!
//! Invariants:
//! - Nothing is acknowledged before it was seen in the file that has the name.
//! - A version that was not read is not written over by a rename; see `atomic::replace_unchanged`.
//! - An append that fell into a file which was just emptied is taken out of it again.
//! - A file that is cut off, empty or missing is not repaired as long as it may be in the middle of a save.
//!
//! One gap stays open, since nothing but a lock closes it: an editor that empties **and** writes the
//! file between the comparison and the write behind it, two system calls in a row, is written over from
//! the old end on. And an editor that saves a copy which it read before an append removes what was
//! appended, as it does with every other program.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::platform::Directory;

use super::error::{Error, ProblemKind};
use super::json_file::{JsonFile, Snapshot};
use super::offsets::{Header, Offsets, Stamp};
use super::{directory, scan};

/// How long a file that looks half-saved must stay as it is before it is taken for what a crash left.
const QUIET: Duration = Duration::from_millis(200);
/// The same for a file without content that had entries: some programs empty a file before they lay out
/// what goes into it.
const LONG_QUIET: Duration = Duration::from_millis(1500);
/// A file that is never quiet is waited for no longer than this.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How much in front of an append is compared after it.
const CONTEXT: u64 = 512;
const PAUSE: Duration = Duration::from_millis(10);

/// The place of a write where tests let another program come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Point {
    /// The file was read, and nothing is written yet.
    Read,
    /// The file was found to be as it was read; the next call writes.
    Compared,
    /// The bytes are in the file, and were not looked at yet.
    Written,
}

/// Another program, as a test plays it.
#[cfg(test)]
type Other = Box<dyn FnMut(Point, &Path)>;

#[cfg(test)]
thread_local! {
    static MEANWHILE: std::cell::RefCell<Option<Other>> = const { std::cell::RefCell::new(None) };
}

/// Lets a test come in. Does nothing in the program.
pub(super) fn reach(point: Point, path: &Path) {
    #[cfg(test)]
    MEANWHILE.with_borrow_mut(|other| {
        if let Some(other) = other {
            other(point, path);
        }
    });
    #[cfg(not(test))]
    let _ = (point, path);
}

/// What another program does to a file while something is appended to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Landed {
    /// Nothing: the bytes stand where they should, in the file that has the name, which now has this state.
    Here(Stamp),
    /// Something: the bytes do not count.
    Elsewhere,
}

/// A place in a file that something is written to.
#[derive(Debug)]
pub(super) struct Spot<'a> {
    directory: &'a Directory,
    file: &'a File,
    path: &'a Path,
    at: u64,
    context: Vec<u8>,
}

impl<'a> Spot<'a> {
    /// The place behind the last entry.
    pub(super) fn behind(
        directory: &'a Directory,
        file: &'a File,
        path: &'a Path,
        header: &Header,
    ) -> io::Result<Self> {
        let length = header.tail.min(CONTEXT);
        let mut context = vec![0; usize::try_from(length).unwrap_or_default()];
        file.read_exact_at(&mut context, header.tail - length)?;
        Ok(Self {
            directory,
            file,
            path,
            at: header.tail,
            context,
        })
    }

    /// Writes up to the new end of the file, if it is as it was read. `false` is nothing written.
    pub(super) fn write(&self, bytes: &[u8], read: Stamp) -> io::Result<bool> {
        if Stamp::of(&self.file.metadata()?) != read {
            return Ok(false);
        }
        reach(Point::Compared, self.path);
        self.file.write_all_at(bytes, self.at)?;
        reach(Point::Written, self.path);
        Ok(true)
    }

    /// Where the written bytes are now. Those that fell into a file which was being saved anew are out of it
    /// when this returns, as far as they can be told from what was saved.
    pub(super) fn landed(&self, bytes: &[u8], root_key: &str) -> io::Result<Landed> {
        let state = self.file.metadata()?;
        if state.len() != self.at + bytes.len() as u64 || !self.holds(bytes)? {
            self.take_out(bytes, root_key)?;
            return Ok(Landed::Elsewhere);
        }
        let stamp = Stamp::of(&state);
        let Some(there) = self.directory.metadata(self.path)? else {
            return Ok(Landed::Elsewhere);
        };
        let there = Stamp::of(&there);
        Ok(if there.is_same_file(&stamp) {
            Landed::Here(stamp)
        } else {
            Landed::Elsewhere
        })
    }

    /// Whether the file still has what it had in front of the place.
    pub(super) fn is_preceded_as_before(&self) -> bool {
        let from = self.at - self.context.len() as u64;
        is_at(self.file, from, &self.context).unwrap_or(false)
    }

    fn holds(&self, bytes: &[u8]) -> io::Result<bool> {
        Ok(is_at(self.file, self.at, bytes)? && self.is_preceded_as_before())
    }

    /// An editor had emptied the file: what was written here stands behind a hole, or behind the editor's
    /// text. When the editor is done, what is behind the end of its text and is nothing but that is cut off.
    fn take_out(&self, bytes: &[u8], root_key: &str) -> io::Result<()> {
        let _: bool = await_quiet(QUIET, || Ok(Stamp::of(&self.file.metadata()?)))?;
        let read = self.file.metadata()?;
        let mut source = self.file;
        io::Seek::rewind(&mut source)?;
        let outline = scan::scan(self.file, self.path, root_key, &mut |_, _| {})?;
        let more = outline
            .problems
            .iter()
            .find(|problem| outline.close.is_some() && problem.kind == ProblemKind::Damage);
        // Where no text is yet, all of it may be ours: a slow editor then begins with an empty file again.
        let end = match more {
            Some(problem) => problem.offset,
            None if outline.close.is_none() => 0,
            None => return Ok(()),
        };
        let is_own = self.is_left_of(bytes, end, read.len())?;
        if is_own && Stamp::of(&self.file.metadata()?) == Stamp::of(&read) {
            self.file.set_len(end)?;
        }
        Ok(())
    }

    /// Whether all of the file from `end` on is the hole in front of the place, or a rest of these bytes.
    fn is_left_of(&self, bytes: &[u8], end: u64, length: u64) -> io::Result<bool> {
        if length != self.at + bytes.len() as u64 {
            return Ok(false);
        }
        let mut at = end;
        while at < self.at {
            let mut hole = vec![
                0;
                usize::try_from(self.at - at)
                    .unwrap_or(1 << 16)
                    .min(1 << 16)
            ];
            self.file.read_exact_at(&mut hole, at)?;
            if hole.iter().any(|b| *b != 0) {
                return Ok(false);
            }
            at += hole.len() as u64;
        }
        let rest = usize::try_from(at - self.at).ok();
        rest.and_then(|from| bytes.get(from..))
            .map_or(Ok(false), |rest| is_at(self.file, at, rest))
    }
}

fn is_at(file: &File, at: u64, bytes: &[u8]) -> io::Result<bool> {
    let mut found = vec![0; bytes.len()];
    match file.read_exact_at(&mut found, at) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        done => done.map(|()| found == bytes),
    }
}

/// Waits until a file stays in one state for `quiet`. `false` where it never does.
fn await_quiet(quiet: Duration, mut state: impl FnMut() -> io::Result<Stamp>) -> io::Result<bool> {
    let start = Instant::now();
    let (mut last, mut since) = (state()?, start);
    while since.elapsed() < quiet {
        if start.elapsed() > LONGEST_WAIT {
            return Ok(false);
        }
        sleep(PAUSE);
        let now = state()?;
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    Ok(true)
}

impl JsonFile<'_> {
    /// Waits as long as a file that looks half-saved goes on changing. Answers whether it has changed since
    /// this was read.
    pub(super) fn await_save(self, snapshot: &Snapshot) -> Result<bool, Error> {
        let is_torn = |p: &super::error::Problem| p.kind == ProblemKind::TornTail;
        let had_entries = || {
            let table = Offsets::open(self.directory, &self.table_path());
            table.is_some_and(|table| table.header.count > 0)
        };
        let quiet = match &snapshot.file {
            Some(_) if snapshot.problems.iter().any(is_torn) => QUIET,
            None if had_entries() => LONG_QUIET,
            None if snapshot.table.header.stamp != Stamp::default() => QUIET,
            _ => return Ok(false),
        };
        let path = &snapshot.path;
        let state = || match directory::open_data(self.directory, self.kind.file()) {
            Ok(Some(file)) => Ok(Stamp::of(&file.metadata()?)),
            Ok(None) => Ok(Stamp::default()),
            Err(error) => Err(io::Error::other(error)),
        };
        let read = snapshot.table.header.stamp;
        // A file that was saved meanwhile is read at once.
        let mut changed = false;
        let is_quiet = await_quiet(quiet, || {
            let now = state()?;
            changed |= now != read;
            Ok(now)
        })
        .map_err(Error::io("read", path))?;
        if is_quiet {
            Ok(changed)
        } else {
            Err(Error::Changing { path: path.clone() })
        }
    }
}

#[cfg(test)]
mod tests;
