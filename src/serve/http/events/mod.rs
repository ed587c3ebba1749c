//! Change feed of the memory, for changes by any writer: `GET /v1/events`.
//!
//! Server-sent events with the name `memory_updated`. They contain the fields of the source
//! document's trigger (`user_id`, `memory_type`, `operation`) and `kind`, `id` and `skill`. A
//! client gets only events of records that its token may see, and fetches the record itself.
//!
//! - `change_feed`: changes since the last read.
//! - `stream`: event stream of one client.
//!
//! Event ids are random: sequential numbers would reveal the amount of activity that the client may
//! not see.
//!
//! Deliberately absent: a buffer of former changes. The event `missed` tells a client that comes back
//! with `Last-Event-ID` to read the records again.

mod change_feed;
mod stream;

use std::sync::Arc;

use notify::RecommendedWatcher;
use tokio::sync::broadcast;

use crate::store::Scoped;

use super::shares::Shares;
use super::state::Log;

pub(super) use stream::events;

use change_feed::Change;

/// Maximum number of batches that wait for a client before it is dropped.
const WAITING: usize = 256;
/// Number of streams that every user may have.
const LEAST: usize = 4;

/// Change feed of a memory, and its clients.
pub(super) struct Events {
    sender: broadcast::Sender<Arc<Vec<Change>>>,
    limits: Shares,
    // Dropping it ends the watcher thread.
    _watcher: RecommendedWatcher,
}

impl Events {
    /// Follows a memory, whose directory must exist, for at most `most` clients.
    pub(super) fn follow(store: Scoped, most: usize, log: Log) -> Result<Self, notify::Error> {
        let sender = broadcast::Sender::new(WAITING);
        let publish = {
            let sender = sender.clone();
            // An error only means that no client listens.
            move |changes| drop(sender.send(Arc::new(changes)))
        };
        Ok(Self {
            _watcher: change_feed::follow(store, publish, log)?,
            sender,
            limits: Shares::new(most, LEAST),
        })
    }
}
