//! The audit log, `audit.jsonl`: reads and writes by caller, time and reason. Append-only and
//! chained.
//!
//! Every line ends with a keyed hash of itself and of the previous hash. A changed, removed or
//! inserted line breaks the chain at that point. A truncated chain is still valid, so a small file
//! next to it, the anchor, stores the number of lines and the last hash under a hash of its own.
//!
//! Invariants:
//! - A line is written before the write that it describes, and before an answer with the data read.
//! - A new line never hides damage: if the log does not continue from the anchor, the next line
//!   records it, and every later verification reports it.
//! - The log has a lock of its own, held for microseconds: a reader does not wait for a long write.
//!   Waiting for the lock has a time limit.
//!
//! The user's state directory (`trust`) also records that a log exists. Removing all files of a log
//! therefore does not make it look new.
//!
//! The key is in `workspace.json`; a process that can read it can forge the whole chain. Only a
//! hash noted elsewhere detects that, and verification accepts one.
//!
//! Deliberately absent: syncing to disk (a power failure may cost the newest lines, which
//! verification then reports), the texts that were read or written, and a merge of two logs: git
//! ignores the log, which is of one machine.
//!
//! - `audit_log`: appending of events. `verify`: verification.

pub(crate) mod audit_log;
pub(crate) mod chain;
