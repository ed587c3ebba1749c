//! Detection of edits to a data file by programs that take no lock: editors, and other memory tools. And
//! recovery before a write: a torn tail is saved to a copy, then cut off.
//!
//! Such programs save in two ways: they rename a new file over the old one, or truncate the old one
//! and write it again. A writer here compares the state of the file with the state it read, right
//! before and right after its write. On any change it reads the file again and retries.
//!
//! Invariants:
//! - A write is acknowledged only after it was seen in the file with the expected name.
//! - A rename never overwrites a version that was not read; see `Directory::replace_unchanged`.
//! - An append to a file that was just truncated is removed from it again.
//! - A truncated, empty or missing file is not repaired while a save may be in progress.
//! - Bytes that a crash left after the last complete entry are never discarded.
//!
//! Only a lock could close two gaps. An editor that truncates **and** writes the file between the comparison
//! and the following system call is overwritten, by an append from the old end on. An editor that saves a copy read
//! before an append removes the appended entry, as with every other program.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use memctl_files::{FileState, PositionedFile as _};

use crate::store::files::data::offsets::{Header, Offsets};
use crate::store::files::data::{CLOSING, Point, reach};
use crate::store::files::directory::RECOVERED;
use crate::store::{Error, JsonFile, Lock, Problem, ProblemKind, Snapshot, atomic};

/// Time without changes after which a half-saved file counts as the result of a crash.
const QUIET: Duration = Duration::from_millis(200);
/// Time without changes for an empty file that had entries: some programs truncate a file before
/// they format its content.
const LONG_QUIET: Duration = Duration::from_millis(1500);
/// Maximum wait for a file to stop changing.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Number of bytes before an append that are compared after it.
const CONTEXT: u64 = 512;
const PAUSE: Duration = Duration::from_millis(10);

impl JsonFile<'_> {
    /// Writes bytes over the `old` ones of a file that is still as it was read: over the text behind its last
    /// entry, or over as many bytes. Waits for the disk. Returns the new state of the file. If another
    /// program has changed it, the write does not count, and its bytes are removed as far as they are
    /// distinguishable.
    pub(super) fn write_over(
        self,
        file: &File,
        read: &FileState,
        at: u64,
        old: &[u8],
        bytes: &[u8],
    ) -> Result<FileState, Error> {
        let path = self.path();
        let size = read.size - old.len() as u64 + bytes.len() as u64;
        let changing = || Error::Changing(path.clone());
        let cannot_read = cannot_read(&path);
        let cannot_write = |source| Error::io("write", &path)(source);
        let from = at.saturating_sub(CONTEXT);
        let mut context = vec![0; usize::try_from(at - from).unwrap_or_default()];
        file.read_exact_at(&mut context, from)
            .map_err(&cannot_read)?;
        let is_preceded_as_before = || is_at(file, from, &context).unwrap_or(false);
        if FileState::of(file).map_err(cannot_write)? != *read {
            return Err(changing());
        }
        reach(Point::Compared, &path);
        if let Err(source) = file.write_all_at(bytes, at).and_then(|()| file.sync_data()) {
            // The old closing brackets fit in their old place even on a full disk.
            if is_preceded_as_before() {
                let restored = file.write_all_at(old, at);
                drop(restored.and_then(|()| file.set_len(read.size)));
            }
            return Err(cannot_write(source));
        }
        reach(Point::Written, &path);
        let state = FileState::of(file).map_err(&cannot_read)?;
        let is_whole = state.size == size && is_preceded_as_before();
        if !(is_whole && is_at(file, at, bytes).map_err(&cannot_read)?) {
            self.take_out(file, at, bytes).map_err(&cannot_read)?;
            return Err(changing());
        }
        let there = self.directory.state(&path).map_err(&cannot_read)?;
        let is_there = there.is_some_and(|there| there.is_same_file(&state));
        is_there.then_some(state).ok_or_else(changing)
    }

    /// Removes bytes that were written at a position after an editor truncated the file: they follow a
    /// hole, or the editor's text. Waits for the editor, then truncates the file to the end of its text if
    /// only such bytes follow.
    fn take_out(self, mut file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
        let _: bool = await_quiet(QUIET, || FileState::of(file))?;
        let read = FileState::of(file)?;
        file.rewind()?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let (_, outline) = self.table_of(&read, &text);
        let is_more = |p: &&Problem| outline.close.is_some() && p.kind == ProblemKind::Damage;
        // Without any text yet, the whole file may be ours; a slow editor then starts with an empty
        // file again.
        let end = match outline.problems.iter().find(is_more) {
            Some(problem) => problem.offset,
            None if outline.close.is_none() => 0,
            None => return Ok(()),
        };
        let is_own = read.size == at + bytes.len() as u64 && is_left_of(file, end, at, bytes)?;
        if is_own && FileState::of(file)? == read {
            file.set_len(end)?;
        }
        Ok(())
    }
}

/// Returns `true` if the file from `end` on is only the hole before the position and a suffix of these
/// bytes.
fn is_left_of(file: &File, end: u64, at: u64, bytes: &[u8]) -> io::Result<bool> {
    const PART: u64 = 1 << 16;
    let mut from = end;
    while from < at {
        let hole = (at - from).min(PART);
        if !is_at(
            file,
            from,
            &vec![0; usize::try_from(hole).unwrap_or_default()],
        )? {
            return Ok(false);
        }
        from += hole;
    }
    let rest = usize::try_from(from - at)
        .ok()
        .and_then(|start| bytes.get(start..));
    rest.map_or(Ok(false), |rest| is_at(file, from, rest))
}

/// Error of a read at a position that a scan has found. A file that ends before it was truncated since, by
/// a program that saves it in place.
pub(super) fn cannot_read(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| match source.kind() {
        io::ErrorKind::UnexpectedEof => Error::Changing(path.to_owned()),
        _ => Error::io("read", path)(source),
    }
}

fn is_at(file: &File, at: u64, bytes: &[u8]) -> io::Result<bool> {
    let mut found = vec![0; bytes.len()];
    match file.read_exact_at(&mut found, at) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        done => done.map(|()| found == bytes),
    }
}

/// Waits until a file stays unchanged for `quiet`; `false` if it never does.
fn await_quiet(
    quiet: Duration,
    mut state: impl FnMut() -> io::Result<FileState>,
) -> io::Result<bool> {
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
    /// Waits while a half-saved file keeps changing. Returns `true` if it has changed since the
    /// snapshot.
    fn await_save(self, snapshot: &Snapshot) -> Result<bool, Error> {
        let is_torn = |p: &Problem| p.kind == ProblemKind::TornTail;
        let had_entries = || {
            let table = Offsets::open(self.directory, &self.table_path());
            table.is_some_and(|table| table.header.count > 0)
        };
        let quiet = match &snapshot.file {
            Some(_) if snapshot.problems.iter().any(is_torn) => QUIET,
            None if had_entries() => LONG_QUIET,
            None if snapshot.table.header.stamp != FileState::default() => QUIET,
            _ => return Ok(false),
        };
        let path = &snapshot.path;
        let read = snapshot.table.header.stamp;
        // A file that was saved meanwhile is read at once.
        let mut changed = false;
        let is_quiet = await_quiet(quiet, || {
            let now = self.stamp().map_err(io::Error::other)?;
            changed |= now != read;
            Ok(now)
        })
        .map_err(Error::io("read", path))?;
        is_quiet
            .then_some(changed)
            .ok_or_else(|| Error::Changing(path.clone()))
    }
}

impl JsonFile<'_> {
    /// Returns the current state of the file, repaired and ready for a write. Reports each repair.
    pub(crate) fn prepare(
        self,
        lock: &Lock,
        repaired: &mut Vec<Problem>,
    ) -> Result<Snapshot, Error> {
        debug_assert_eq!(lock.directory(), self.directory);
        // Opening it for a write makes a file private that another program has saved. That changes
        // the state of the file, so it is done before the state is read.
        drop(atomic::open_for_update(self.directory, self.path())?);
        let snapshot = self.as_it_is()?;
        // A torn tail may be part of another program's save in progress.
        let snapshot = if self.await_save(&snapshot)? {
            self.as_it_is()?
        } else {
            snapshot
        };
        if let Some(conflict) = self.conflict(&snapshot)? {
            return Err(Error::Damaged(conflict));
        }
        let snapshot = self.repaired_tail(snapshot, repaired)?;
        reach(Point::Read, &snapshot.path);
        Ok(snapshot)
    }

    /// Returns the merge conflict in the file, if there is one: what is written into one side of it would be lost.
    fn conflict(self, snapshot: &Snapshot) -> Result<Option<Problem>, Error> {
        if snapshot.table.header.problems == 0 {
            return Ok(None);
        }
        let mut problems = self.by_scan()?.problems.into_iter();
        Ok(problems.find(|problem| problem.kind == ProblemKind::Conflict))
    }

    fn as_it_is(self) -> Result<Snapshot, Error> {
        match self.by_table()? {
            // The table makes a scan unnecessary unless the end of the file is in doubt.
            Some(s) if s.file.is_none() || s.table.header.close != 0 => Ok(s),
            _ => self.by_scan(),
        }
    }

    /// Closes the brackets at the end of the file if they are missing, and scans it again.
    fn repaired_tail(
        self,
        snapshot: Snapshot,
        repaired: &mut Vec<Problem>,
    ) -> Result<Snapshot, Error> {
        let header = &snapshot.table.header;
        snapshot.check_format()?;
        if snapshot.file.is_none() || header.close != 0 {
            return Ok(snapshot);
        }
        // A torn tail is cut only after an intact beginning: between damaged parts, the matching
        // brackets are ambiguous.
        let [torn] = snapshot.problems.as_slice() else {
            let broken = snapshot.problems.into_iter().next();
            return Err(broken.map_or(Error::Changing(snapshot.path), Error::Damaged));
        };
        if torn.kind != ProblemKind::TornTail {
            return Err(Error::Damaged(torn.clone()));
        }
        self.cut_back(header)?;
        repaired.push(torn.clone());
        let snapshot = self.by_scan()?;
        if snapshot.table.header.close == 0 {
            return Err(Error::Changing(snapshot.path));
        }
        Ok(snapshot)
    }

    /// Saves the bytes after the last complete entry to a copy, and closes the brackets there.
    fn cut_back(self, header: &Header) -> Result<(), Error> {
        let path = self.path();
        let tail = header.tail;
        let Some(mut file) = atomic::open_for_update(self.directory, &path)? else {
            return Err(Error::Changing(path));
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
            let name = format!("{}.{tail}.txt", self.of.name());
            atomic::replace(&aside, name, &rest)?;
        }
        let now = FileState::of(&file).map_err(Error::io("read", &path))?;
        if now != header.stamp {
            return Err(Error::Changing(path));
        }
        // Truncate first: a crash here only leaves a torn tail again.
        file.set_len(tail)
            .and_then(|()| file.write_all_at(CLOSING.as_bytes(), tail))
            .and_then(|()| file.sync_all())
            .map_err(Error::io("write", &path))
    }
}

#[cfg(test)]
mod tests;
