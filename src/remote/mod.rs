//! The shared store: a PostgreSQL database with pgvector, plain or Supabase's.
//!
//! - `address`: a database's URL, and what of it may be shown. `policy`: how the way there is secured.
//! - `dial`: from an address to a session, by `stream`, `tls` and `login_guard`, which keeps the password from
//!   servers that ask for it.
//! - `connection`: a session, and what its errors say. `limits`: how long it waits, and for whom.
//! - `migrate`: the schema in its versions. `foreign`: what else lies in the database.
//! - `users`: logins, each of one user. `check`: the proof that rows are kept apart. `status`: counts.
//! - `search`, `prune`: the shared store asked itself, and rid of what has expired.
//! - `sync`: a memory and the shared store, brought to the same state.
//! - `primary`: memories that lie in the shared store, with files that are a copy.
//! - `schema/*.sql`: tables, functions, policies, with the reasons for each.
//!
//! Invariants: a database without our schema is read by nobody but [`init`], which changes nothing in
//! it unless all of it fits. Who somebody is, the database decides by the role that logged in; nothing
//! that is sent here names a user. A password stands in no error and in no file.
//!
//! Deliberately absent: retries (the caller knows whether a thing may be done twice), and a pool (one
//! command, one session).

mod address;
mod check;
mod connection;
mod dial;
mod error;
mod foreign;
mod limits;
mod login_guard;
mod migrate;
mod policy;
mod primary;
mod prune;
mod search;
mod status;
mod stream;
mod sync;
mod tls;
mod users;

pub use address::Address;
pub use check::{Check, CheckReport, check};
pub use error::Error;
pub use limits::Holder;
pub use login_guard::Refusal;
pub use migrate::{InitReport, Migration, init};
pub use primary::{JoinReport, PgStore, join};
pub use prune::{RemotePruneReport, prune};
pub use search::{RemoteHit, RemoteQuestion, search};
pub use status::{StatusReport, TableCount, status};
pub use sync::{
    Moved, OnSync, Shrinking, SyncOptions, SyncReport, SyncStage, Vectorise, VectorsReport, Way,
    fill_vectors, sync,
};
pub use users::{UserReport, add_user};

/// The tables that hold what is remembered, each with rows of all users.
const TABLES: [&str; 8] = [
    "executions", "corrections", "reflexions", "fixes", "context_eng_memories", "agent_memory",
    "agent_sessions", "agent_execution_logs",
];
