//! The `.agentura` directory: plain JSON files that nothing is lost from.
//!
//! Synchronous, and the only module that writes files. A program holds one [`Scoped`] store; it
//! reads through that, and writes through the [`Writer`] that it hands out, which holds the lock of
//! the directory for as long as it lives. Keep it for one read-modify-write, never over a question
//! to a model.
//!
//! - `directory`: where the directory is, who it is, the lock.
//! - `json_file`, `json_write`: one seed file, read and written; O(1) append, recovery. `scan` and
//!   `json_text` find entries in it.
//! - `foreign_edit`: noticing what programs without the lock do to such a file in the middle of a write.
//! - `offsets`: the derived table that spares reading the file.
//! - `positions`, `derived`, `map`: what whoever derives something from the files needs: where
//!   entries lie, and a place for files that can be made again.
//! - `terms`: the derived table of which entries hold a term.
//! - `notes`: what is known of a session while it goes on.
//! - `execution_logs`, `session_lines`: the log of what agents did, an action a line; those that go and
//!   come back with their session.
//! - `hints`: the log of what came of hints, and the lot of the experiment.
//! - `sources`: the derived file of the session files that have been learnt from.
//! - `act`: who reads and writes, and why.
//! - `audit`: the chained log of every write, and of what was read of people.
//! - `changes`: the journal by which a change is taken back; `take_back` does it.
//! - `log`, `tombstones`: append-only lines; what was removed on purpose. `buried`: asking about that.
//! - `trust`: which records count as this user's own word; notes about that lie outside the workspace.
//! - `sight`: what a caller may see: scope, user, expiry.
//! - `scoped`, `writer`, `remove`: reading, writing and removing records, within that.
//! - `prune`: removing what has expired.
//! - `pulled`: records of other workspaces. `replica`: the name of this copy.
//! - `primary`: memories that lie in a database, with files that are a copy. `apply`: bringing a file to what
//!   is in another place.
//! - `inventory`, `carry`: what lies in the directory; taking it out and putting it back as it is.
//! - `switch`: the marker that turns a memory off.
//! - `repair`: what `doctor` finds and mends.
//!
//! Deliberately absent: any interpretation of a record beyond its id, skill, user and expiry; the clock
//! and randomness, which are arguments; and anything asynchronous.

mod act;
mod apply;
pub(crate) mod atomic;
mod audit;
mod buried;
mod carry;
mod changes;
mod derived;
mod directory;
mod error;
mod execution_logs;
mod foreign_edit;
mod hints;
mod inventory;
mod json_file;
mod json_text;
mod json_write;
mod log;
mod map;
mod notes;
mod offsets;
mod origin_directory;
mod positions;
mod primary;
mod prune;
mod pulled;
mod remove;
mod repair;
mod replica;
mod scan;
mod scoped;
mod seed_text;
mod session_lines;
mod sight;
mod sources;
mod switch;
mod take_back;
mod terms;
mod three_way;
mod tombstones;
mod trust;
mod writer;

pub use act::Act;
pub use audit::{Audited, Did, Flaw, Joined, Line as AuditLine, Touched, join as join_audit};
pub use buried::Buried;
pub use carry::{
    Carried, Frame, foreign_entries, foreign_lines, foreign_origin, laid_out, raw_field, text_field,
};
pub use changes::{Field, Line as ChangeLine, PlacedLine, Splice, Step};
pub use derived::{Derived, DerivedWriter};
pub use directory::{DIRECTORY, Identity, find};
pub use error::{Error, Problem, ProblemKind};
pub use execution_logs::{LogListing, LogSelection};
pub use inventory::{Item, PENDING, Role, inventory, lined, logs, role};
pub use json_text::{compact, with_fields};
pub use map::Map;
pub use notes::Notes;
pub use positions::Positions;
pub use primary::{Fault, Moving, Primary, PrimaryChange, PrimaryName, PrimaryRow, Reached, Turn};
pub use prune::Expired;
pub use pulled::{Pulled, PulledChange, PulledCount, Puller, is_origin};
pub use repair::{Cleaned, Repaired};
pub use scoped::{Entry, Listing, Scoped, Selection};
pub use seed_text::SeedText;
pub use sources::{Source, Sources};
pub use switch::is_disabled;
pub use take_back::{Returning, Reverted};
pub use terms::Terms;
pub use three_way::{Decided, Undecided, three_way};
pub use tombstones::Tombstone;
pub use trust::{Approvals, Basis, Note, Standing};
pub use writer::{Redacted, Redaction, Writer};
