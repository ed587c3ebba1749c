//! Byte-for-byte transfer of records and log lines between memory directories.
//!
//! An entry of a directory is imported as the same text, even if a strict parser rejects it. The text
//! around the entries of a file (a `format`, keys of other programs) stays there.
//!
//! Deliberately absent: the choice of records and ids to import; see `engine::import`.
//!
//! Digests of the entries of a file are for requests that look for an equal one. Only entries that came
//! since the last look are read; a file that was replaced is read again. The caller gets no text, so that
//! entries of other users stay hidden: a digest that is known only says that it pays to search.
//!
//! Deliberately absent: exactness of digests. Two texts may have one digest, and an entry may be expired
//! or belong to somebody else.
//!
//! Pulling of remote records: the only writer below `remote/`, where each kind has one file.
//!
//! Name of this copy of a memory: copies of a workspace share its identity and differ in this name.
//!
//! It stays out of version control, and a purge keeps it.
//!
//! Move of a memory to a database.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use memctl_files::{json, named};

use crate::model::Kind;
use crate::store::access::scoped::STATE;
use crate::store::files::data::offsets::Header;
use crate::store::files::data::write::apply;
use crate::store::files::directory::{self, PRIMARY, REPLICA, directory_name, is_pulled_origin};
use crate::store::files::log::{self, Sync};
use crate::store::{
    DataFile, Entry, Error, Identity, JsonFile, Lock, PrimaryName, Problem, PulledChange,
    PulledCount, SMALL_FILE, Scoped, Selection, Snapshot, Writer, atomic, is_origin, primary,
    redact,
};

/// An entry to store unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawEntry {
    /// Id; empty if the entry has none.
    pub id: String,
    /// JSON text.
    pub text: String,
}

/// Formats an entry in the layout of this program's files.
pub fn laid_out(json: &str) -> String {
    json::pretty(json, 2)
}

/// Returns the value of a string field of an entry, even if a strict parser rejects the entry.
pub fn text_field(entry: &[u8], name: &str) -> Option<String> {
    json::string_field(entry, name).map(Cow::into_owned)
}

/// Returns the JSON text of a field of an entry.
pub fn raw_field(entry: &str, name: &str) -> Option<String> {
    let text = json::field(entry.as_bytes(), name)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Returns the entries of a foreign memory directory, oldest first in each file, and the problems of
/// the files. Writes nothing there, not even derived files.
pub fn foreign_entries(directory: &Path, kind: Kind) -> Result<(Vec<Entry>, Vec<Problem>), Error> {
    let directory = named::directory(directory);
    let (mut entries, mut problems) = (Vec::new(), Vec::new());
    for file in DataFile::of(kind) {
        let snapshot = JsonFile::new(&directory, file, false).by_scan()?;
        for row in snapshot.rows() {
            entries.push(snapshot.entry(&row)?);
        }
        problems.extend(snapshot.problems);
    }
    Ok((entries, problems))
}

/// Returns the lines of a log in a foreign memory directory.
pub fn foreign_lines(directory: &Path, name: &str) -> Result<Vec<Vec<u8>>, Error> {
    log::lines(&named::directory(directory), name)
}

/// Returns the origin of the workspace that a foreign memory directory belongs to.
pub fn foreign_origin(directory: &Path) -> Option<String> {
    Some(directory::identity(&named::directory(directory))?.origin)
}

impl Scoped {
    /// Returns `true` if the caller may see and write an entry with this text, expired or not.
    pub fn covers(&self, kind: Kind, entry: &[u8]) -> bool {
        self.access().covers(kind, entry)
    }

    /// Returns the lines of a log, unchanged. A user sees the lines with their id; a limited scope
    /// sees none, because lines belong to no domain.
    pub fn lines(&self, name: &str) -> Result<Vec<Vec<u8>>, Error> {
        if !self.scope().allows(None) {
            return Ok(Vec::new());
        }
        let mut lines = log::lines(self.directory(), name)?;
        lines.retain(|line| self.sees_all() || self.is_own_line(line));
        Ok(lines)
    }

    /// Returns `true` if a line carries the caller's user id.
    fn is_own_line(&self, line: &[u8]) -> bool {
        let user = json::string_field(line, "user_id");
        user.is_some() && self.viewer().sees(user.as_deref())
    }
}

impl Writer {
    /// Returns an entry or a line with its secrets redacted.
    fn storable<'a>(&mut self, json: &'a str) -> Cow<'a, str> {
        let redacted = redact(json);
        self.left_out.extend(redacted.found);
        redacted.text
    }

    /// Appends entries unchanged except for redacted secrets. On return all are on disk. The ids must be
    /// free.
    pub fn restore(&mut self, kind: Kind, entries: &[RawEntry]) -> Result<(), Error> {
        if entries.is_empty() {
            return Ok(());
        }
        for entry in entries {
            if !self.store().access().covers(kind, entry.text.as_bytes()) {
                return Err(Error::OutOfScope(format!("{kind} {}", entry.id)));
            }
        }
        for file in DataFile::of(kind) {
            let belongs =
                |entry: &&RawEntry| DataFile::for_record(kind, entry.text.as_bytes()) == file;
            let here: Vec<RawEntry> = entries.iter().filter(belongs).cloned().collect();
            let mut is_first = true;
            self.redone(file, |writer, snapshot| {
                if std::mem::take(&mut is_first) {
                    return writer.restore_to(snapshot, kind, &here);
                }
                // Another program may have saved the entries of an earlier attempt.
                let mut missing = Vec::new();
                for entry in &here {
                    let is_there = !entry.id.is_empty() && snapshot.holds(&entry.id)?;
                    if !is_there {
                        missing.push(entry.clone());
                    }
                }
                writer.restore_to(snapshot, kind, &missing)
            })?;
        }
        Ok(())
    }

    fn restore_to(
        &mut self,
        snapshot: &Snapshot,
        kind: Kind,
        entries: &[RawEntry],
    ) -> Result<(), Error> {
        if entries.is_empty() {
            return Ok(());
        }
        let texts = entries.iter().map(|entry| self.storable(&entry.text));
        let texts: Vec<Cow<'_, str>> = texts.collect();
        let rows = entries.iter().zip(&texts);
        let rows: Vec<_> = rows.map(|(entry, text)| (&*entry.id, &**text)).collect();
        self.add_entries(kind, &rows, |writer| {
            writer.store.file(snapshot.of).append(snapshot, &rows)
        })
    }

    /// Appends lines to a log, unchanged except for redacted secrets.
    pub fn restore_lines(&mut self, name: &str, lines: &[String]) -> Result<(), Error> {
        let lines: Vec<String> = lines
            .iter()
            .map(|line| self.storable(line).into_owned())
            .collect();
        log::append_all(self.lock(), name, &lines, Sync::Wait)
    }

    /// Removes the lines of a log for which `is_kept` returns `false`. Returns their number.
    pub fn drop_lines(
        &mut self,
        name: &str,
        is_kept: &dyn Fn(&[u8]) -> bool,
    ) -> Result<u64, Error> {
        log::retain(self.lock(), name, is_kept)
    }
}

/// State of a file at which it was searched for an entry that says the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compared {
    generation: u64,
    end: u64,
}

impl Compared {
    pub(super) fn of(header: &Header) -> Self {
        Self {
            generation: header.generation,
            end: header.tail,
        }
    }

    /// Returns the position behind which entries came until `now`; `None` if the file was replaced.
    pub(super) fn until(self, now: Self) -> Option<u64> {
        let is_longer = self.generation == now.generation && self.end <= now.end;
        is_longer.then_some(self.end)
    }
}

/// Returns `true` for the JSON text of an entry that says the same.
pub type Repeats = dyn Fn(&[u8]) -> bool + Send;

/// Condition on which a record is not added.
pub struct SkipCondition {
    /// State of the file in which no entry said the same.
    pub compared: Compared,
    /// Comparison with the record.
    pub repeats: Box<Repeats>,
}

/// Digests of the entries of the shared file of one kind.
#[derive(Debug, Default)]
pub struct SeenEntries(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    compared: Option<Compared>,
    digests: HashSet<u64>,
}

impl SeenEntries {
    /// Returns `true` if an entry may have this digest, and the state of the file that this holds
    /// for. `digest_of` computes the digest of an entry's text.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn may_hold(
        &self,
        store: &Scoped,
        kind: Kind,
        digest: u64,
        digest_of: &dyn Fn(&[u8]) -> Option<u64>,
    ) -> Result<(bool, Compared), Error> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = store.file(DataFile::shared(kind)).snapshot()?;
        let now = Compared::of(&snapshot.table.header);
        // Until all is read, nothing is known to be compared.
        let from = seen.compared.take().and_then(|before| before.until(now));
        if from.is_none() {
            seen.digests.clear();
        }
        let from = from.unwrap_or(0);
        for row in snapshot.rows().rev().take_while(|row| row.at >= from) {
            seen.digests.extend(digest_of(&snapshot.read(&row)?));
        }
        seen.compared = Some(now);
        Ok((seen.digests.contains(&digest), now))
    }
}

/// Maximum wait for another process that pulls.
const PATIENCE: Duration = Duration::from_secs(2);

/// Exclusive access for pulling.
#[derive(Debug)]
pub struct Puller {
    store: Scoped,
    lock: Lock,
}

impl Scoped {
    fn pulled_from(&self, origin: &str) -> Self {
        let directory = self.pulled_directory().below(directory_name(origin));
        self.moved_to(directory, origin)
    }

    /// Begins a pull. Requires full access, because remote records may be of any user and domain.
    pub fn pull(&self) -> Result<Puller, Error> {
        self.must_be_enabled()?;
        if !self.sees_all() {
            return Err(Error::OutOfScope("what other workspaces share".to_owned()));
        }
        Ok(Puller {
            store: self.clone(),
            lock: Lock::take(self.pulled_directory(), PATIENCE)?,
        })
    }
}

impl Puller {
    /// Returns the origins with a damaged file.
    pub fn damaged(&self) -> Vec<String> {
        // A valid file is never empty: it holds at least an object.
        let is_empty = |store: &Scoped, kind: Kind| {
            let state = store.directory().state(kind.file());
            state.is_ok_and(|state| state.is_some_and(|state| state.size == 0))
        };
        let is_damaged = |store: &Scoped, kind| match store.file(DataFile::shared(kind)).snapshot()
        {
            Ok(snapshot) => snapshot.table.header.problems > 0 || is_empty(store, kind),
            Err(Error::NewerFormat { .. }) => false,
            Err(_) => true,
        };
        let pulled = self.store.pulled().into_iter();
        pulled
            .filter(|pulled| {
                Kind::ALL
                    .iter()
                    .any(|kind| is_damaged(&pulled.store, *kind))
            })
            .map(|pulled| pulled.origin)
            .collect()
    }

    /// Removes all records of an origin, so that they can be pulled again.
    pub fn discard(&self, origin: &str) -> Result<(), Error> {
        let (above, name) = (self.lock.directory(), directory_name(origin));
        match above.remove_tree(&name) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove", &above.join(name))(error))
            }
            _ => Ok(()),
        }
    }

    /// Returns the saved progress of pulling.
    pub fn state(&self) -> Option<Vec<u8>> {
        self.lock.directory().read(STATE, SMALL_FILE).ok().flatten()
    }

    /// Saves the progress of pulling.
    pub fn keep_state(&self, state: &[u8]) -> Result<(), Error> {
        atomic::replace(self.lock.directory(), STATE, state)
    }

    /// Returns the number of these records that are present.
    pub fn count_held(&self, origin: &str, kind: Kind, ids: &[&str]) -> Result<u64, Error> {
        let store = self.store.pulled_from(origin);
        let Ok(snapshot) = store.file(DataFile::shared(kind)).snapshot() else {
            // A damaged file is pulled again as a whole.
            return Ok(0);
        };
        let found = snapshot.of_ids(&ids.iter().copied().collect())?.into_iter();
        let found: HashSet<String> = found.map(|(_, entry)| entry.id).collect();
        Ok(found.len() as u64)
    }

    /// Returns the ids of the records of an origin.
    pub fn ids(&self, origin: &str, kind: Kind) -> Result<Vec<String>, Error> {
        let store = self.store.pulled_from(origin);
        let mut ids = Vec::new();
        store.each_entry(kind, &Selection::default(), &mut |entry| ids.push(entry.id))?;
        Ok(ids)
    }

    /// Returns the total number of remote records.
    pub fn total(&self) -> Result<u64, Error> {
        let mut total = 0;
        for pulled in self.store.pulled() {
            for kind in Kind::ALL {
                let snapshot = pulled.store.file(DataFile::shared(kind)).snapshot();
                total += snapshot.map_or(0, |snapshot| snapshot.table.header.count);
            }
        }
        Ok(total)
    }

    /// Applies changes to the records of another workspace. The last of several changes to one
    /// record wins. All changes are on disk when this returns. After a crash, applying the same
    /// changes again completes them.
    pub fn apply(
        &self,
        origin: &str,
        kind: Kind,
        changes: &[PulledChange],
    ) -> Result<PulledCount, Error> {
        if !is_pulled_origin(origin) {
            return Err(Error::OutOfScope(format!(
                "the workspace `{}`",
                origin.escape_debug()
            )));
        }
        let directory = self.lock.directory().below(directory_name(origin));
        let lock = Lock::take(&directory, PATIENCE)?;
        let store = self.store.moved_to(directory, origin).held();
        let changes = changes
            .iter()
            .map(|change| (&*change.id, change.text.as_deref()));
        let file = store.file(DataFile::shared(kind));
        apply(file, &lock, &changes.collect::<Vec<_>>())
    }
}

impl Scoped {
    /// Returns the name of this copy, if it has one.
    pub fn replica(&self) -> Option<String> {
        let text = self.directory().read_text(REPLICA, SMALL_FILE).ok()??;
        let name = text.trim();
        is_origin(name).then(|| name.to_owned())
    }

    /// Returns the identity of the workspace and the name of this copy; creates missing ones.
    pub fn name_itself(
        &self,
        random: &mut dyn FnMut() -> String,
    ) -> Result<(Identity, String), Error> {
        let writer = self.write(random)?;
        let identity = writer.identity().clone();
        if let Some(name) = self.replica() {
            return Ok((identity, name));
        }
        let name = random();
        let text = format!("{name}\n");
        atomic::replace(self.directory(), REPLICA, text.as_bytes())?;
        Ok((identity, name))
    }
}

/// Exclusive access for moving a memory to a database. No other writer can change the files
/// meanwhile.
#[derive(Debug)]
pub struct Moving(Writer);

impl Scoped {
    /// Waits for the lock to move the current memory to a database. `random` supplies the identity
    /// of a workspace that has none.
    pub fn begin_to_move(&self, random: &mut dyn FnMut() -> String) -> Result<Moving, Error> {
        Ok(Moving(self.write(random)?))
    }
}

impl Moving {
    /// Returns the store to move.
    pub fn store(&self) -> &Scoped {
        self.0.store()
    }

    /// Returns the identity of the workspace.
    pub fn identity(&self) -> &Identity {
        self.0.identity()
    }

    /// Makes a database the primary store, under the identity that the memory has there.
    pub fn finish(
        self,
        name: &PrimaryName,
        identity: &Identity,
        replica: &str,
    ) -> Result<(), Error> {
        let lock = self.0.lock();
        let directory = lock.directory();
        directory::name(lock, identity)?;
        atomic::replace(directory, REPLICA, format!("{replica}\n").as_bytes())?;
        primary::forget(directory)?;
        // Last: from here on, nothing is written without the database.
        atomic::replace_json(directory, PRIMARY, name)
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod puller_tests;

#[cfg(test)]
mod tests_of_replica {
    use super::*;
    use crate::model::Scope;

    #[test]
    fn a_copy_is_named_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        assert_eq!(store.replica(), None);
        let mut n = 0;
        let mut random = || {
            n += 1;
            format!("name-{n}")
        };
        let first = store.name_itself(&mut random).unwrap();
        assert_ne!(first.0.origin, first.1);
        assert_eq!(store.name_itself(&mut random).unwrap(), first);
        assert_eq!(store.replica(), Some(first.1));
    }
}
