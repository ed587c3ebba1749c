//! Memories that lie in a database: the files here are a copy, which every read is made from.
//!
//! Invariants:
//! - A write is in the database before it is in a file, so that whoever was told of it can rely on it, and
//!   what a crash keeps out of the files is fetched by whoever comes next.
//! - The writers of all copies take turns: while a [`Writer`](super::Writer) lives, nothing changes in the
//!   database that it has not read.
//! - Without the database nothing is written.
//!
//! Logs and accounts (`audit`, `changes`, `hints`, what agents did) belong to the copy that wrote them.
//!
//! - `place`: where a memory lies, and how it comes to lie elsewhere. `follow`: bringing the files to what is
//!   in the database. `at_primary`: a writer's turn.
//!
//! Deliberately absent: the database. It stands behind [`Primary`].

mod at_primary;
mod follow;
mod place;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::Kind;

use super::error::Error;
use super::json_text;

pub(super) use at_primary::AtPrimary;
pub(super) use follow::fetch_anew;
pub(super) use place::PRIMARY;
pub use place::{Moving, PrimaryName};

/// What goes wrong in a database, in its own words.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;

/// A database that a memory lies in.
pub trait Primary: fmt::Debug + Send + Sync {
    /// A number that grows with every write.
    fn clock(&self) -> Result<i64, Fault>;

    /// Hands over what has changed since the change with this number, oldest first, in batches. Answers the
    /// number of the last one.
    fn changes(
        &self,
        after: i64,
        take: &mut dyn FnMut(Vec<PrimaryChange>) -> Result<(), Error>,
    ) -> Result<i64, Error>;

    /// Does beforehand what a turn needs, so that nobody waits for a login while somebody has the lock of the
    /// files.
    fn prepare(&self) -> Result<(), Fault>;

    /// Waits until nobody else writes, at most so long.
    fn turn(&self, limit: Duration) -> Result<Box<dyn Turn>, Fault>;
}

/// The right to write to a database, for as long as it lives. Every call is a transaction of its own, and
/// refuses where something has been written after the change with the number `after`. Each answers how far
/// it has come.
pub trait Turn: fmt::Debug + Send {
    /// Adds records, or changes them.
    fn put(&mut self, after: i64, kind: Kind, rows: &[PrimaryRow]) -> Result<Reached, Fault>;

    /// Removes records; of each is kept what is given with its id.
    fn bury(&mut self, after: i64, kind: Kind, gone: &[(String, String)])
    -> Result<Reached, Fault>;
}

/// How far a database has come, and a copy with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// The number that grows with every write.
    pub clock: i64,
    /// The number of the last change.
    pub seq: i64,
}

/// A record on its way to the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimaryRow {
    /// Its id.
    pub id: String,
    /// Its skill; empty where it has none.
    pub skill: String,
    /// Its text.
    pub text: String,
}

impl PrimaryRow {
    /// A record with this text.
    fn new(id: &str, text: &str) -> Self {
        let skill = json_text::string_field(text.as_bytes(), "skill");
        Self {
            id: id.to_owned(),
            skill: skill.unwrap_or_default().into_owned(),
            text: text.to_owned(),
        }
    }
}

/// What a record in the database is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimaryChange {
    /// Its kind.
    pub kind: Kind,
    /// Its id.
    pub id: String,
    /// Its text; `None` where it is gone.
    pub text: Option<String>,
    /// What is kept of it where it is gone.
    pub tombstone: Option<String>,
    /// When it went: RFC 3339, UTC.
    pub gone_at: Option<String>,
}
