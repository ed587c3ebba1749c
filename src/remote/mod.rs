//! Shared store: a PostgreSQL database with pgvector, plain or Supabase.
//!
//! - `address`: parsed database URL, with the security policy of a connection.
//! - `connection`: connects and logs in, using `tls`, which refuses to reveal the password.
//! - `migrate`: schema versions, and existing objects of other programs.
//! - `users`: logins, each mapped to one user. `check`: isolation check.
//! - `choice`: choice between files and the database that the environment names.
//! - `status`: row counts, and removal of expired rows.
//! - `logs`: audit events, and the log of agents.
//! - `tables`: table and columns of each kind.
//! - `sync`: synchronisation of a local store with the shared store.
//! - `primary`: memories with the database as their primary store and local files as a copy.
//! - `schema/*.sql`: tables, functions and policies, each with a rationale.
//!
//! Invariants: only [`init`] works on a database without our schema, and it changes nothing unless
//! all existing objects are compatible. The database derives the user from the role that logged in;
//! no request names a user. No error and no file contains a password.
//!
//! Deliberately absent: retries (only the caller knows if an operation may run twice), and a
//! connection pool (one command uses one session).

mod address;
mod check;
mod choice;
mod connection;
mod error;
mod logs;
mod migrate;
mod primary;
mod status;
mod sync;
mod tables;
mod tls;
mod users;

pub use address::Address;
pub use check::{Check, CheckReport, check};
pub use choice::{Choice, ChosenStore, StoreSetting, Undecided, forget_answers};
pub use error::{Error, Shrinking};
pub use migrate::{InitReport, Migration, init, is_ours};
pub use primary::{JoinReport, PgStore, has_memory, join};
pub use status::{RemotePruneReport, StatusReport, TableCount, prune, status};
pub use sync::{
    Direction, Moved, MovedLines, OnSync, SharedEmbedder, SyncOptions, SyncReport, SyncStage,
    VectorsReport, fill_vectors, sync,
};
pub use users::{UserReport, add_user};
