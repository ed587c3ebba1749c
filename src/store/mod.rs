//! The `.agentura` directory: durable storage in plain JSON files.
//!
//! Synchronous, and the only module that writes data files. A program holds one [`Scoped`] store
//! and reads through it. It writes through a [`Writer`], which holds the lock of the directory for
//! its lifetime. Keep a writer for one read-modify-write, never during a request to a model.
//!
//! # Rooms, from low to high
//!
//! A room imports only from rooms above it in this list. Files form no circle.
//!
//! 1. `error`, `redaction`, `entry`, `database`, `atomic`: errors, redactor, text of an entry,
//!    interface of a primary database, atomic writes.
//! 2. `files`: files as bytes: location, identity and lock of the directory, data files with crash
//!    recovery, logs, tombstones.
//! 3. `trust`: records that count as this user's own word; its notes are outside the workspace.
//! 4. `audit`: chained log of all writes, and of reads of users' records.
//! 5. `access`: reading through the access filter: scope, user, expiry.
//! 6. `undo_journal`: the replaced values of every write.
//! 7. `index`: derived data: positions, terms, storage for indexes, notes of sessions.
//! 8. `primary`: memories with a database as the primary store, and files as a copy.
//! 9. `writer`: writing under the lock, and all that extends it: removal, undo, transfer, repair,
//!    remote records.
//! 10. `logs`: execution log and hint log.
//!
//! Deliberately absent: interpretation of records beyond id, skill, user and expiry; the clock and
//! randomness, which are arguments; and asynchronous code.

pub(crate) mod access;
pub(crate) mod atomic;
pub(crate) mod audit;
pub(crate) mod database;
pub(crate) mod entry;
pub(crate) mod error;
pub(crate) mod explain;
pub(crate) mod files;
pub(crate) mod here;
pub(crate) mod index;
pub(crate) mod logs;
pub(crate) mod primary;
pub(crate) mod project;
mod redaction;
pub mod skill;
pub(crate) mod trust;
pub(crate) mod undo_journal;
pub mod workspace;
pub(crate) mod writer;

pub use access::disabled_users::disabled_users;
pub use access::disabled_users::is_disabled;
pub use access::pulled::Pulled;
pub use access::query::{Listing, Selection};
pub use access::scoped::Scoped;
pub use audit::audit_log::AuditContext;
pub use audit::audit_log::{AuditAction, Line as AuditLine, Touched};
pub use audit::verify::{Audited, ChainError};
pub use database::{
    Fetched, Primary, PrimaryChange, PrimaryRow, Reached, SharedLine, SharedLog, Turn,
};
pub use entry::Entry;
pub use error::{Error, Fault, Problem, ProblemKind};
pub use explain::advice;
pub use files::counters::fields as counter_fields;
pub use files::data::apply::{PulledChange, PulledCount};
pub use files::data::data_file::DataFileText;
pub use files::data::data_file::Frame;
pub use files::data::json_file::{FORMAT, FORMATS};
pub use files::data::three_way::{Decided, Undecided, three_way};
pub use files::data_files::{DataFile, LOCAL_PATTERN};
pub use files::directory::{DIRECTORY, Identity, find};
pub use files::directory::{OTHER_PROGRAMS, is_origin};
pub use files::directory::{ignore_local_files, shared_files};
pub use files::inventory::{Item, Role, inventory, lined, logs, role};
pub use files::tombstones::{ForgottenRecords, Tombstone};
pub use here::Here;
pub use index::derived::{Derived, DerivedWriter};
pub use index::mmap::Map;
pub use index::positions::Positions;
pub use index::processed_files::{Source, Sources};
pub use index::session_log::SessionLog;
pub use index::session_scratch::Notes;
pub use index::terms::Terms;
pub use logs::execution_logs::{LogListing, LogSelection};
pub use logs::late_calls::LateCalls;
pub use logs::retrievals::Retrieved;
pub use logs::shared_lines::Unsent;
pub use memctl_files::json::{compact, with_fields};
pub use primary::at_primary::PrimaryName;
pub use project::{Project, project_of_session, same_project, shown_project};
pub use redaction::{Redacted, redact};
pub use trust::{Approvals, Basis, Note, TrustSnapshot, Vouched};
pub use undo_journal::step::{Field, Line as ChangeLine, PlacedLine, Splice, Step};
pub use writer::Writer;
pub use writer::addition::SeenEntries;
pub use writer::addition::{Compared, Repeats, SkipCondition};
pub use writer::group_commit::{Added, GroupCommit};
pub use writer::puller::Puller;
pub use writer::raw_transfer::{
    RawEntry, foreign_entries, foreign_lines, foreign_origin, laid_out, raw_field, text_field,
};
pub use writer::remove::Expired;
pub use writer::repair::{Cleaned, Repaired};
pub use writer::replica::Moving;
pub use writer::revert::{Returning, Reverted};
