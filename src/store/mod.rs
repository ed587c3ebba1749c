//! The `.agentura` directory: durable storage in plain JSON files.
//!
//! Synchronous, and the only module that writes data files. A program holds one [`Scoped`] store
//! and reads through it. It writes through a [`Writer`], which holds the lock of the directory for
//! its lifetime. Keep a writer for one read-modify-write, never during a request to a model.
//!
//! # Rooms, from low to high
//!
//! A room imports only from rooms above it in this list. One circle is left: `access` holds the database of
//! `primary`, and that reads and writes through it.
//!
//! 1. `error`, `atomic`: errors, atomic writes.
//! 2. `files`: files as bytes: location, identity and lock of the directory, data files with crash
//!    recovery and the text of an entry, logs, tombstones.
//! 3. `trust`: records that count as this user's own word; its notes are outside the workspace.
//! 4. `audit`: chained log of all writes, and of reads of users' records.
//! 5. `access`: reading through the access filter: scope, user, expiry.
//! 6. `undo_journal`: the replaced values of every write. `primary`: files as a copy of a
//!    database, and what that offers.
//! 7. `index`: derived data: positions, terms, storage for indexes. `sessions`: log and scratch files of running
//!    sessions, and session files that were read. `pulled`: remote records.
//! 8. `writer`: writing under the lock, and all that extends it: removal, undo, transfer, repair.
//! 9. `logs`: execution log, its lines on their way to a database, late calls.
//! 10. `skill`: skills on disk. `project`: where a session works. `workspace`: all of it, opened.
//!
//! Deliberately absent: interpretation of records beyond id, skill, user and expiry; the clock and
//! randomness, which are arguments; and asynchronous code.

pub(crate) mod access;
pub(crate) mod atomic;
pub(crate) mod audit;
pub(crate) mod error;
pub(crate) mod files;
pub(crate) mod index;
pub(crate) mod logs;
pub(crate) mod primary;
pub(crate) mod project;
pub(crate) mod pulled;
pub(crate) mod renaming;
pub(crate) mod sessions;
pub mod skill;
pub(crate) mod trust;
pub(crate) mod undo_journal;
pub mod workspace;
pub(crate) mod writer;

pub(crate) use access::AccessFilter;
pub use access::Scoped;
pub use access::disabled::{disabled_users, is_disabled};
pub use access::query::{Listing, Selection};
pub use audit::{AuditAction, AuditContext, Audited, ChainError, Line as AuditLine, Touched};
pub use error::{Error, MERGE_AGAIN, Problem, ProblemKind, Refusal, advice};
pub use files::Map;
pub use files::counters::fields as counter_fields;
pub use files::data::file::FORMAT;
pub(crate) use files::data::file::{JsonFile, Snapshot};
pub(crate) use files::data::offsets::Row;
pub use files::data::write::{PulledChange, PulledCount};
pub use files::data::{Entry, Frame};
pub(crate) use files::directory::{DERIVED, IDENTITY, Lock, SMALL_FILE};
pub use files::directory::{DIRECTORY, Identity, OTHER_PROGRAMS, find, is_origin, up_to_home};
pub use files::inventory::{
    DataFile, Item, LOCAL_PATTERN, Role, ignore_local_files, inventory, lined, logs, role,
    shared_files, with_missing_lines,
};
pub use files::tombstones::{ForgottenRecords, Tombstone};
pub use index::{Derived, DerivedWriter, Positions, SeenTexts, Terms};
pub use logs::{LateCalls, LogListing, LogSelection, Unsent};
pub use memctl_files::json::{compact, with_fields};
pub use project::{Here, Project, project_of_session, same_project, shown_project};
// The store redacts every JSON text that it writes or hands out, so no caller can write without it.
pub use memctl_redact::{Redacted, redact_json as redact};
pub use primary::{Fetched, Primary, PrimaryChange, PrimaryName, Reached, SharedLine, Turn};
pub use pulled::{Pulled, Puller};
pub use sessions::{ProcessedFile, ProcessedFiles, SessionLog, SessionScratch};
pub use trust::{Approvals, Basis, Note, TrustSnapshot, TrustedPart};
pub use undo_journal::{Field, Line as ChangeLine, Splice, Step};
pub use writer::Writer;
pub use writer::group_commit::{Added, GroupCommit};
pub use writer::remove::{Expired, RemovalMode};
pub use writer::repair::Repaired;
pub use writer::transfer::{RawEntry, foreign_entries, raw_field, text_field};
pub use writer::update::Reverted;
