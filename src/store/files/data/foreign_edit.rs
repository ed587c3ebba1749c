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
mod tests {
    //! Another program saves the file at every point of a write, in every way that editors use.

    use std::cell::Cell;
    use std::io::Write as _;
    use std::path::PathBuf;
    use std::rc::Rc;

    use memctl_files::Directory;
    use serde_json::{Value, json};

    use super::*;
    use crate::model::{Execution, Kind, Scope};
    use crate::store::files::data::MEANWHILE;
    use crate::store::writer::Writer;
    use crate::store::{Approvals, AuditContext, RemovalMode, Scoped};

    const NOW: chrono::DateTime<chrono::Utc> = chrono::DateTime::UNIX_EPOCH;

    /// A way to save a text over the file.
    type Save = fn(&Path, &[u8]);

    fn above(path: &Path) -> Directory {
        Directory::at(path.parent().unwrap())
    }

    fn rename_over(path: &Path, text: &[u8]) {
        atomic::replace(&above(path), path, text).unwrap();
    }

    fn write_in_place(path: &Path, text: &[u8]) {
        let mut file = atomic::open_for_update(&above(path), path)
            .unwrap()
            .unwrap();
        file.set_len(0).unwrap();
        file.write_all(text).unwrap();
    }

    /// Like vim: the old file becomes a backup for a moment, and the name is free.
    fn move_away_and_make_anew(path: &Path, text: &[u8]) {
        let backup = path.with_extension("json~");
        above(path).rename(path, &backup).unwrap();
        let mut file = atomic::open_or_create(&above(path), path).unwrap();
        file.write_all(text).unwrap();
        atomic::remove(&above(path), &backup).unwrap();
    }

    const SAVES: [Save; 3] = [rename_over, write_in_place, move_away_and_make_anew];

    fn table_path(directory: &Path) -> PathBuf {
        directory.join(".index/executions.offsets")
    }

    /// Installs an interference that runs once, the first time a write to the executions reaches a
    /// point.
    fn meanwhile(at: Point, mut other: impl FnMut(&Path) + 'static) -> Rc<Cell<bool>> {
        let came = Rc::new(Cell::new(false));
        let seen = Rc::clone(&came);
        MEANWHILE.set(Some(Box::new(move |point, path| {
            let is_file = path.ends_with(Kind::Execution.file());
            if is_file && point == at && !seen.replace(true) {
                other(path);
            }
        })));
        came
    }

    fn writer(dir: &Path) -> Writer {
        let audit_context = AuditContext {
            change: "c".to_owned(),
            ..AuditContext::default()
        };
        let store = Scoped::new(dir, Scope::All)
            .trusting(Approvals::of(Some(&dir.join("state")), dir, false))
            .acting(audit_context);
        store.write(&mut || "key".to_owned()).unwrap()
    }

    fn execution(note: &str) -> Execution {
        let value = json!({"skill": "hr/x", "output_summary": {"note": note}});
        serde_json::from_value(value).unwrap()
    }

    fn path(dir: &Path) -> PathBuf {
        dir.join(Kind::Execution.file())
    }

    /// Returns the ids in the file, which must be valid JSON.
    fn ids(dir: &Path) -> Vec<String> {
        let file: Value = serde_json::from_slice(&std::fs::read(path(dir)).unwrap()).unwrap();
        let id = |entry: &Value| entry["execution_id"].as_str().unwrap().to_owned();
        file["entries"].as_array().unwrap().iter().map(id).collect()
    }

    /// Adds an entry to the file, in Python's layout.
    fn with_one_more(text: &[u8], id: &str) -> Vec<u8> {
        let mut file: Value = serde_json::from_slice(text).unwrap();
        let entry = json!({"execution_id": id, "skill": "hr/x", "output_summary": {"note": id}});
        file["entries"].as_array_mut().unwrap().push(entry);
        serde_json::to_vec_pretty(&file).unwrap()
    }

    /// Keeps only the first entry of the file.
    fn with_one(text: &[u8]) -> Vec<u8> {
        let mut file: Value = serde_json::from_slice(text).unwrap();
        file["entries"].as_array_mut().unwrap().truncate(1);
        serde_json::to_vec(&file).unwrap()
    }

    /// Creates a store with this number of executions.
    fn store_of(count: usize) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..count {
            writer(dir.path())
                .append(execution(&n.to_string()), NOW)
                .unwrap();
        }
        dir
    }

    #[test]
    fn an_append_and_an_edit_before_it_are_both_there() {
        for at in [Point::Read, Point::EndRead] {
            for save in SAVES {
                for edit in [|text: &[u8]| with_one_more(text, "EXEC-1"), with_one] {
                    let dir = store_of(4);
                    let came = meanwhile(at, move |path| {
                        save(path, &edit(&std::fs::read(path).unwrap()));
                    });
                    let expected = ids_after(dir.path(), edit);
                    let own = writer(dir.path()).append(execution("own"), NOW).unwrap();
                    assert!(came.get());
                    MEANWHILE.set(None);
                    let stored = ids(dir.path());
                    assert_eq!(stored, [expected, vec![own.execution_id]].concat());
                    // Derived data matches this version of the file.
                    let found = writer(dir.path()).store().find(Kind::Execution, &stored[0]);
                    assert_eq!(found.unwrap().unwrap().id, stored[0]);
                }
            }
        }
    }

    /// Otherwise a program that saves again and again would find each attempt to be the first one.
    #[cfg(unix)]
    #[test]
    fn an_append_to_a_file_that_others_may_read_takes_one_attempt() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = store_of(2);
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(path(dir.path()), open).unwrap();
        let attempts = Rc::new(Cell::new(0));
        let counted = Rc::clone(&attempts);
        MEANWHILE.set(Some(Box::new(move |point, path| {
            if path.ends_with(Kind::Execution.file()) && point == Point::Read {
                counted.set(counted.get() + 1);
            }
        })));
        writer(dir.path()).append(execution("own"), NOW).unwrap();
        MEANWHILE.set(None);
        assert_eq!((attempts.get(), ids(dir.path()).len()), (1, 3));
        let mode = std::fs::metadata(path(dir.path())).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
    }

    fn ids_after(dir: &Path, edit: impl Fn(&[u8]) -> Vec<u8>) -> Vec<String> {
        let file: Value =
            serde_json::from_slice(&edit(&std::fs::read(path(dir)).unwrap())).unwrap();
        let id = |entry: &Value| entry["execution_id"].as_str().unwrap().to_owned();
        file["entries"].as_array().unwrap().iter().map(id).collect()
    }

    /// Another program reads before the append and renames after it. Without a second append, the
    /// record would be lost.
    #[test]
    fn an_append_to_a_file_that_was_just_replaced_is_done_again() {
        for at in [Point::Compared, Point::Written] {
            for save in [rename_over, move_away_and_make_anew] as [Save; 2] {
                let dir = store_of(3);
                let before = std::fs::read(path(dir.path())).unwrap();
                let edited = with_one_more(&before, "EXEC-1");
                let came = meanwhile(at, move |path| save(path, &edited));
                let own = writer(dir.path()).append(execution("own"), NOW).unwrap();
                assert!(came.get());
                MEANWHILE.set(None);
                let stored = ids(dir.path());
                assert_eq!(stored.len(), 5, "{at:?}: {stored:?}");
                assert_eq!(stored[3..], ["EXEC-1".to_owned(), own.execution_id.clone()]);
                // The failed attempt is not in the journal.
                let lines = writer(dir.path()).store().changes().unwrap();
                let of_own = lines
                    .iter()
                    .filter(|line| line.step.target() == Some(&own.execution_id));
                assert_eq!(of_own.count(), 1);
            }
        }
    }

    /// Another program reads what was just written, and saves it before the verification.
    #[test]
    fn an_append_that_another_program_has_saved_is_not_done_twice() {
        for save in SAVES {
            let dir = store_of(3);
            let came = meanwhile(Point::Written, move |path| {
                save(
                    path,
                    &with_one_more(&std::fs::read(path).unwrap(), "EXEC-1"),
                );
            });
            let own = writer(dir.path()).append(execution("own"), NOW).unwrap();
            assert!(came.get());
            MEANWHILE.set(None);
            let stored = ids(dir.path());
            assert_eq!(stored[3..], [own.execution_id, "EXEC-1".to_owned()]);
            assert_eq!(stored.len(), 5);
        }
    }

    /// Another program truncates the file before the append, and fills it afterwards.
    #[test]
    fn an_append_into_a_file_that_was_just_emptied_leaves_no_rest_in_it() {
        let more = |text: &[u8]| with_one_more(text, "EXEC-1");
        for edit in [more, with_one, |text: &[u8]| {
            with_one_more(&more_space(text), "EXEC-1")
        }] {
            let dir = store_of(3);
            let edited = edit(&std::fs::read(path(dir.path())).unwrap());
            let expected = ids_after(dir.path(), edit);
            let (emptied, filled) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
            let (was_emptied, was_filled) = (Rc::clone(&emptied), Rc::clone(&filled));
            MEANWHILE.set(Some(Box::new(move |point, path| {
                if point == Point::Compared && !emptied.replace(true) {
                    let file = atomic::open_for_update(&above(path), path)
                        .unwrap()
                        .unwrap();
                    file.set_len(0).unwrap();
                }
                if point == Point::Written && !filled.replace(true) {
                    let mut file = atomic::open_for_update(&above(path), path)
                        .unwrap()
                        .unwrap();
                    file.write_all(&edited).unwrap();
                }
            })));
            let own = writer(dir.path()).append(execution("own"), NOW).unwrap();
            assert!(was_emptied.get() && was_filled.get());
            MEANWHILE.set(None);
            assert_eq!(ids(dir.path()), [expected, vec![own.execution_id]].concat());
        }
    }

    /// Pads the text so that it ends behind every append to the other one.
    fn more_space(text: &[u8]) -> Vec<u8> {
        let file: Value = serde_json::from_slice(text).unwrap();
        let mut file = file;
        file["note"] = json!("x".repeat(4000));
        serde_json::to_vec_pretty(&file).unwrap()
    }

    /// The program that truncated the file is slow.
    #[test]
    fn an_emptied_file_is_waited_for() {
        for at in [Point::Read, Point::Compared, Point::Written] {
            let dir = store_of(3);
            let edited = with_one_more(&std::fs::read(path(dir.path())).unwrap(), "EXEC-1");
            let slow = Rc::new(Cell::new(None));
            let thread = Rc::clone(&slow);
            let came = meanwhile(at, move |path| {
                let mut file = atomic::open_for_update(&above(path), path)
                    .unwrap()
                    .unwrap();
                file.set_len(0).unwrap();
                let edited = edited.clone();
                thread.set(Some(std::thread::spawn(move || {
                    for part in edited.chunks(200) {
                        sleep(Duration::from_millis(60));
                        file.write_all(part).unwrap();
                    }
                })));
            });
            let own = writer(dir.path()).append(execution("own"), NOW).unwrap();
            assert!(came.get());
            MEANWHILE.set(None);
            slow.take().unwrap().join().unwrap();
            let stored = ids(dir.path());
            assert_eq!(
                stored[3..],
                ["EXEC-1".to_owned(), own.execution_id],
                "{at:?}"
            );
        }
    }

    #[test]
    fn a_change_and_an_edit_before_it_are_both_there() {
        for at in [Point::Read, Point::Compared] {
            for save in SAVES {
                let dir = store_of(3);
                let id = ids(dir.path())[1].clone();
                let came = meanwhile(at, move |path| {
                    save(
                        path,
                        &with_one_more(&std::fs::read(path).unwrap(), "EXEC-1"),
                    );
                });
                let mut own = writer(dir.path());
                own.update(Kind::Execution, &id, &[("outcome", json!("rejected"))])
                    .unwrap();
                assert!(came.get());
                let changed = own.store().get::<Execution>(&id).unwrap();
                assert_eq!(changed.outcome.as_str(), "rejected");
                assert_eq!(ids(dir.path()).len(), 4, "{at:?}");

                let came = meanwhile(at, move |path| {
                    save(
                        path,
                        &with_one_more(&std::fs::read(path).unwrap(), "EXEC-2"),
                    );
                });
                let removed =
                    own.remove(Kind::Execution, &[(&id, "x")], NOW, RemovalMode::Undoable);
                assert!(came.get());
                MEANWHILE.set(None);
                assert_eq!(removed.unwrap()[0].id, id);
                let stored = ids(dir.path());
                assert_eq!(stored[2..], ["EXEC-1", "EXEC-2"], "{at:?}");
                assert!(!stored.contains(&id));
            }
        }
    }

    /// A change applies to the value of the other program, and undo restores that value.
    #[test]
    fn a_change_starts_from_the_edit_before_it() {
        let dir = store_of(2);
        let id = ids(dir.path())[1].clone();
        let came = meanwhile(Point::Read, move |path| {
            let text = std::fs::read_to_string(path).unwrap();
            rename_over(
                path,
                text.replace("\"note\": \"1\"", "\"note\": \"edited\"")
                    .as_bytes(),
            );
        });
        let mut own = writer(dir.path());
        own.update(
            Kind::Execution,
            &id,
            &[("output_summary", json!({"note": "own"}))],
        )
        .unwrap();
        assert!(came.get());
        MEANWHILE.set(None);
        let lines = own.store().changes().unwrap();
        let edits = lines.iter().filter(|line| line.step.target() == Some(&id));
        let edits: Vec<String> = edits.map(|line| format!("{:?}", line.step)).collect();
        assert_eq!(edits.len(), 2, "{edits:?}");
        assert!(edits[1].contains("edited"), "{edits:?}");
    }

    #[test]
    fn a_file_that_never_rests_is_an_error_and_stays_as_the_other_program_has_it() {
        let dir = store_of(2);
        let mut n = 0;
        MEANWHILE.set(Some(Box::new(move |point, path| {
            if point == Point::Read {
                n += 1;
                rename_over(
                    path,
                    &with_one_more(&std::fs::read(path).unwrap(), &format!("EXEC-{n}")),
                );
            }
        })));
        let failed = writer(dir.path()).append(execution("own"), NOW);
        MEANWHILE.set(None);
        assert!(matches!(failed, Err(Error::Changing(..))), "{failed:?}");
        let stored = ids(dir.path());
        assert!(
            stored.len() > 10 && stored[2..].iter().all(|id| id.len() < 8),
            "{stored:?}"
        );
        assert_eq!(writer(dir.path()).store().changes().unwrap().len(), 2);
    }

    /// Another program saves between the look at the file's size and the scan of its content, which
    /// then ends behind that size.
    #[test]
    fn a_file_that_grows_during_the_scan_is_read_again() {
        for save in SAVES {
            let dir = store_of(3);
            let edited = with_one_more(&std::fs::read(path(dir.path())).unwrap(), "EXEC-1");
            // Without a table, the next writer scans.
            let table = table_path(dir.path());
            atomic::remove(&above(&table), &table).unwrap();
            let came = meanwhile(Point::Sized, move |path| save(path, &edited));
            let own = writer(dir.path()).append(execution("own"), NOW).unwrap();
            assert!(came.get());
            MEANWHILE.set(None);
            let stored = ids(dir.path());
            assert_eq!(stored[3..], ["EXEC-1".to_owned(), own.execution_id]);
        }
    }

    /// A file of equal length, written within one tick of a coarse clock, looks unchanged.
    #[test]
    fn a_table_of_other_bytes_is_not_written_by() {
        let dir = store_of(3);
        let id = ids(dir.path())[2].clone();
        let path = path(dir.path());
        let text = std::fs::read_to_string(&path).unwrap();
        // One byte moves from the first entry to the end, so all later offsets are wrong.
        let moved = text.replacen("\"note\": \"0\"", "\"note\":\"0\"", 1) + " ";
        assert_eq!(moved.len(), text.len());
        write_in_place(&path, moved.as_bytes());
        let table = table_path(dir.path());
        let old = Offsets::open(&above(&table), &table).unwrap();
        let file = atomic::open_for_update(&above(&path), &path)
            .unwrap()
            .unwrap();
        let header = Header {
            stamp: FileState::of(&file).unwrap(),
            ..old.header.clone()
        };
        Offsets::write(&above(&table), &table, &header, header.count, &[]).unwrap();
        let mut own = writer(dir.path());
        own.update(Kind::Execution, &id, &[("outcome", json!("rejected"))])
            .unwrap();
        let new = own.append(execution("own"), NOW).unwrap();
        let stored = ids(dir.path());
        assert_eq!((stored.len(), &stored[3]), (4, &new.execution_id));
    }
}
