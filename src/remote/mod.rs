//! Shared store: a PostgreSQL database with pgvector, plain or Supabase.
//!
//! - `address`: parsed database URL. `policy`: security policy of a connection.
//! - `dial`: connects and logs in, using `stream`, `tls` and `login_guard`, which refuses to reveal
//!   the password.
//! - `connection`: a session and its errors.
//! - `migrate`: schema versions. `foreign`: existing objects of other programs.
//! - `users`: logins, each mapped to one user. `check`: isolation check. `status`: row counts.
//! - `search`, `prune`: search of the shared store, and removal of expired rows.
//! - `audit`: audit events.
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
mod audit;
mod check;
mod connection;
mod dial;
mod error;
mod foreign;
mod login_guard;
mod migrate;
mod policy;
mod primary;
mod prune;
mod search;
pub(crate) mod sharing;
mod status;
mod stream;
mod sync;
mod tls;
mod users;

pub use sharing::{SharedEmbedder, catch_up, note_sync, shared_embedder};

pub use address::Address;
pub use check::{Check, CheckReport, check};
pub use error::Error;
pub use login_guard::Refusal;
pub use migrate::{InitReport, Migration, init, is_ours};
pub use primary::{JoinReport, PgStore, has_memory, join};
pub use prune::{RemotePruneReport, prune};
pub use search::{RemoteHit, RemoteQuestion, search};
pub use status::{StatusReport, TableCount, status};
pub use sync::{
    Direction, Moved, MovedLines, OnSync, Shrinking, SyncOptions, SyncReport, SyncStage, Vectorise,
    VectorsReport, fill_vectors, sync,
};
pub use users::{UserReport, add_user};

/// Tables that hold records, each with rows of all users.
const TABLES: [&str; 7] = [
    "executions", "corrections", "reflexions", "context_eng_memories", "agent_memory",
    "agent_sessions", "agent_execution_logs",
];

/// Tables of the schema `memctl` that hold lines of all users.
const LOGS: [&str; 1] = ["audit_events"];
