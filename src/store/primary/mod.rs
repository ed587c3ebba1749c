//! Memories with a database as the primary store: the files are a copy that serves all reads.
//!
//! Invariants:
//! - A write reaches the database before a file, so that an acknowledged write is never lost. The
//!   next reader fetches changes that a crash kept out of the files.
//! - The writers of all copies take turns. While a [`Writer`](super::Writer) exists, the database
//!   holds no change that it has not read.
//! - Without the database there are no writes.
//!
//! Logs (`audit`, `changes`, `hints`, the execution log) belong to the copy that wrote them.
//!
//! Here is the interface of the database; `copy` brings the files up to date with it.
//!
//! Deliberately absent: the database itself, which implements [`Primary`].

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::Kind;
use crate::store::{Error, Puller};

pub(crate) mod copy;

/// A database that is the primary store of a memory.
pub trait Primary: fmt::Debug + Send + Sync {
    /// Returns a number that grows with every write.
    fn clock(&self) -> Result<i64, Error>;

    /// Passes the changes after the given number to `take`, oldest first, in batches.
    fn changes(
        &self,
        after: i64,
        take: &mut dyn FnMut(Vec<PrimaryChange>) -> Result<(), Error>,
    ) -> Result<Fetched, Error>;

    /// Takes in the rows that other programs have put beside the memory since the last time.
    fn take_in_others(&self, puller: &Puller) -> Result<(), Error>;

    /// Disables the memory for a user, or enables it again.
    fn switch_user(&self, user: &str, is_disabled: bool) -> Result<(), Error>;

    /// Adds lines of the log of agents. Lines that are there already stay as they are.
    fn put_logs(&self, lines: &[String]) -> Result<(), Error>;

    /// Returns the newest log lines of these sessions or of all, and of this user or of all, newest first, from all
    /// copies of the memory.
    fn newest_logs(
        &self,
        sessions: Option<&[String]>,
        user: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, Error>;

    /// Deletes the lines of the log of agents of a user; without a user those of the memory.
    fn delete_logs(&self, user: Option<&str>) -> Result<(), Error>;

    /// Adds audit events. Those that are there already stay as they are.
    fn put_audit(&self, lines: &[SharedLine]) -> Result<(), Error>;

    /// Passes the audit events of all copies of the memory to `take`, oldest first.
    fn audit(&self, take: &mut dyn FnMut(SharedLine)) -> Result<(), Error>;

    /// Prepares a turn, for example with a login, so that this does not happen under the lock of
    /// the files.
    fn prepare(&self) -> Result<(), Error>;

    /// Waits for exclusive write access, up to the limit.
    fn turn(&self, limit: Duration) -> Result<Box<dyn Turn>, Error>;
}

/// Exclusive write access to a database. Every call is a transaction of its own, and fails if there
/// are changes after the number `after`. Each returns the new progress.
pub trait Turn: fmt::Debug + Send {
    /// Adds or changes records, each given with its JSON text.
    fn put(&mut self, after: i64, kind: Kind, records: &[(&str, &str)]) -> Result<Reached, Error>;

    /// Removes records, each given with its tombstone line.
    fn bury(
        &mut self,
        after: i64,
        kind: Kind,
        removed: &[(String, String)],
    ) -> Result<Reached, Error>;
}

/// A line of the audit log. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedLine {
    /// Id, unique within a memory.
    pub id: String,
    /// JSON text.
    pub text: String,
}

/// State of a database after all changes were passed on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Number of the last change.
    pub seq: i64,
    /// Users for whom the memory is disabled.
    pub disabled_users: Vec<String>,
}

/// Progress of a database, or of a copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// Number that grows with every write; zero if rows of other programs have yet to be taken in.
    pub clock: i64,
    /// Number of the last change.
    pub seq: i64,
}

/// State of a record in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimaryChange {
    /// Kind of the record.
    pub kind: Kind,
    /// Id of the record.
    pub id: String,
    /// JSON text; `None` if the record is removed.
    pub text: Option<String>,
    /// Tombstone line of a removed record.
    pub tombstone: Option<String>,
    /// Time of the removal: RFC 3339, UTC.
    pub gone_at: Option<String>,
}

/// Identity of a primary database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrimaryName {
    /// Unique identifier of the database and of the user in it.
    pub database: String,
    /// Host and name of the database, for display.
    pub shown: String,
    /// Name of the memory in the database.
    pub origin: String,
}
