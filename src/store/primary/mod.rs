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

pub(crate) mod at_primary;
pub(crate) mod follow;
