//! Writing of records, within a scope, under the lock of the directory.
//!
//! One write, from a record to the disk:
//!
//! 1. [`Scoped::write`] takes the lock, and the turn at the primary database if there is one.
//! 2. `append` (which numbers records without an id), `update` (also for reversals) or `remove` checks the
//!    caller's access and redacts the text.
//! 3. [`Writer::change_file`] reads the file (`JsonFile::prepare`, which repairs a torn tail), and begins again
//!    if another program changes it meanwhile.
//! 4. The undo journal and the audit log are written. Then [`Writer::write_through`] writes the primary
//!    database and the file: `JsonFile::append` or `JsonFile::change`, which return once the bytes are on
//!    disk.
//! 5. Records that this user vouches for are approved (`trust`).
//!
//! Files of the room:
//!
//! - `group_commit`: additions of several requests in one write.
//! - `local_files`: records that move between the local and the shared file of their kind, their two ids,
//!   and references to them.
//! - `transfer`: byte-for-byte export and import, and the move of a memory to a database.
//! - `repair`: checks and repairs for `doctor`.

pub(crate) mod append;
pub(crate) mod group_commit;
pub(crate) mod local_files;
pub(crate) mod remove;
pub(crate) mod repair;
pub(crate) mod transfer;
pub(crate) mod update;

use std::borrow::Cow;

use memctl_files::json;
use serde::Serialize;

use crate::model::Kind;
use crate::store::files::data::write::retried;
use crate::store::primary::{AtPrimary, Sent};
use crate::store::trust::UserKey;
use crate::store::{
    Basis, DataFile, Error, Identity, Lock, Problem, Scoped, Snapshot, Step, ignore_local_files,
    redact, undo_journal,
};

/// Returns the JSON text of a value. Refuses what would be in the way of every later reader.
fn readable(value: &impl Serialize) -> Result<String, Error> {
    let text = serde_json::to_string(value)?;
    match json::unreadable(&text) {
        Some(value) => Err(unreadable(value)),
        None => Ok(text),
    }
}

/// Error of a JSON value that common readers refuse.
pub(crate) fn unreadable(value: &str) -> Error {
    let value = memctl_redact::redact(value).text;
    let shown = &value[..value.floor_char_boundary(40)];
    Error::input(
        format!("no JSON reader takes `{}`", shown.escape_debug()),
        "write a number beyond 1.8e308 as text, whole characters in texts, and nest at most 100 brackets",
    )
}

/// Exclusive write access. Keep it briefly: other writers wait for it.
#[derive(Debug)]
pub struct Writer {
    store: Scoped,
    /// Turn at the primary database, if there is one.
    at_primary: Option<AtPrimary>,
    /// `true` if it may write only logs, which belong to this copy.
    is_for_logs: bool,
    lock: Lock,
    identity: Identity,
    /// Key of the user who writes.
    key: Option<UserKey>,
    repaired: Vec<Problem>,
    left_out: Vec<&'static str>,
    /// Random word of the ids that this writer gives to records of this machine alone.
    word: String,
    /// `true` if no move between two files is known to be unfinished.
    is_settled: bool,
}

impl Scoped {
    /// Waits for the lock and opens the directory for writing. `random` supplies the identity of a
    /// workspace that has none.
    pub fn write(&self, random: &mut dyn FnMut() -> String) -> Result<Writer, Error> {
        // Checked first so that a refusal creates no directory, and again under the lock.
        self.must_be_enabled()?;
        if let Some(primary) = self.primary() {
            primary.prepare()?;
        }
        let mut writer = self.write_logs(random)?;
        writer.at_primary = AtPrimary::begin(self, &writer.lock)?;
        writer.is_for_logs = false;
        Ok(writer)
    }

    /// Opens the directory for writing logs only. Does not contact a primary database.
    pub fn write_logs(&self, random: &mut dyn FnMut() -> String) -> Result<Writer, Error> {
        self.must_be_enabled()?;
        let lock = Lock::take(self.directory(), self.lock_limit())?;
        self.must_be_enabled()?;
        let is_new = lock.is_new();
        let has_identity = self.identity().is_some();
        let identity = lock.identity(random)?;
        if !has_identity {
            ignore_local_files(lock.directory())?;
        }
        if is_new {
            // Without a note, only individually approved records count; that is no reason to reject
            // a write.
            let at = &self.audit_context().at;
            drop(self.approvals().trust(Basis::Began, at, random));
        }
        let key = self.approvals().make_key(random);
        Ok(Writer {
            key,
            store: self.held(),
            at_primary: None,
            is_for_logs: true,
            lock,
            identity,
            repaired: Vec::new(),
            left_out: Vec::new(),
            word: random(),
            is_settled: false,
        })
    }
}

impl Writer {
    /// Returns the store that is written to. Read through it while the writer exists: no other
    /// writer can change the data meanwhile.
    pub fn store(&self) -> &Scoped {
        &self.store
    }

    pub(crate) fn is_at_primary(&self) -> bool {
        self.at_primary.is_some()
    }

    pub(crate) fn lock(&self) -> &Lock {
        &self.lock
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the crash damage that this writer has repaired, and clears the list. Call once, at
    /// the end.
    pub fn take_repairs(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.repaired)
    }

    /// Returns the kinds of secrets redacted from this writer's records, and clears the list. Call
    /// once, at the end.
    pub fn take_left_out(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.left_out)
    }

    /// Serializes a value, redacted.
    pub(crate) fn redacted(&mut self, value: &impl Serialize) -> Result<String, Error> {
        Ok(self.redact(&readable(value)?).into_owned())
    }

    /// Returns a JSON text with its secrets redacted.
    pub(super) fn redact<'a>(&mut self, json: &'a str) -> Cow<'a, str> {
        let redacted = redact(json);
        self.left_out.extend(redacted.found);
        redacted.text
    }

    /// Fails unless records of this kind can be added now. Call before work that depends on it.
    pub fn check(&mut self, kind: Kind) -> Result<(), Error> {
        for file in DataFile::of(kind) {
            self.change_file(file, |writer, snapshot| {
                writer.store.file(file).check_writable(snapshot)
            })?;
        }
        Ok(())
    }

    /// Reads and writes a data file, and retries if another program changes it meanwhile. Failed
    /// attempts leave no line in the journal.
    pub(crate) fn change_file<T>(
        &mut self,
        file: DataFile,
        mut attempt: impl FnMut(&mut Self, &Snapshot) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.finish_moves()?;
        retried(|| {
            let length = undo_journal::length(self.lock.directory());
            let done = self
                .prepare(file)
                .and_then(|snapshot| attempt(self, &snapshot));
            if matches!(done, Err(Error::Changing(..))) {
                undo_journal::back_to(&self.lock, length)?;
            }
            done
        })
    }

    /// Journals a write before it happens. A failure only makes the write impossible to revert, so
    /// it does not block the write.
    pub(crate) fn journal(&mut self, step: Step) {
        drop(self.try_journal(step));
    }

    /// Journals a write.
    pub(super) fn try_journal(&mut self, step: Step) -> Result<(), Error> {
        let steps = std::iter::once((self.store.audit_context(), step));
        undo_journal::append(&self.lock, self.key.as_ref(), steps)
    }

    /// Sends records to the database, where there is one, and then writes them to a file by `write`.
    pub(super) fn write_through<T>(
        &mut self,
        kind: Kind,
        records: &Sent<'_>,
        write: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if let Some(at) = &mut self.at_primary {
            at.send(kind, records)?;
        } else if self.is_for_logs && self.store.primary_name()?.is_some() {
            return Err(Error::NoPrimary(self.store.directory().to_path_buf()));
        }
        let done = write(self);
        if let Some(at) = &mut self.at_primary {
            at.followed(done.is_ok());
        }
        done
    }

    pub(crate) fn prepare(&mut self, file: DataFile) -> Result<Snapshot, Error> {
        self.store
            .file(file)
            .prepare(&self.lock, &mut self.repaired)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(at) = &self.at_primary {
            at.keep_reached(self.lock.directory());
        }
    }
}
