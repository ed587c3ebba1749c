//! Change feed of the memory, for changes by any writer: `GET /v1/events`.
//!
//! Server-sent events with the name `memory_updated`. They contain the fields of the source
//! document's trigger (`user_id`, `memory_type`, `operation`) and `kind`, `id` and `skill`. A
//! client gets only events of records that its token may see, and fetches the record itself.
//!
//! - `follow`: watcher of the files.
//! - `change_feed`: changes since the last read.
//! - `limits`: number of streams, and the limit per user.
//! - `stream`: event stream of one client.
//!
//! Event ids are random: sequential numbers would reveal the amount of activity that the client may
//! not see.
//!
//! A client that reconnects with `Last-Event-ID` gets the changes that it missed, if they are still
//! buffered. If not, the event `missed` tells it to read the records again.
//!
//! A slow client is dropped: its connection when it reads nothing for too long, and the client when
//! it is too far behind. The buffer is shared by all clients: an event is serialized when the socket
//! accepts it.

mod change_feed;
mod follow;
mod limits;
mod stream;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use notify::RecommendedWatcher;
use tokio::sync::broadcast;

use crate::store::Scoped;

use super::log::Log;

pub(super) use stream::events;

use change_feed::Change;
use limits::StreamLimits;

/// Maximum number of batches that wait for a client before it is dropped.
const WAITING: usize = 256;
/// Number of changes buffered for clients that reconnect.
const KEPT: usize = 1_000;

/// Change feed of a memory, and its clients.
pub(super) struct Events {
    hub: Arc<Hub>,
    limits: StreamLimits,
    // Dropping it ends the watcher thread.
    _watcher: RecommendedWatcher,
}

/// Distributor of changes to clients.
struct Hub {
    sender: broadcast::Sender<Arc<Batch>>,
    recent: Mutex<Recent>,
}

#[derive(Default)]
struct Recent {
    batches: VecDeque<Arc<Batch>>,
    kept: usize,
    /// Number of the next change, from 1.
    next: u64,
}

/// Changes found by one read.
struct Batch {
    /// Number of the first change; the others follow.
    first: u64,
    /// Changes with their event ids.
    changes: Vec<(String, Change)>,
}

impl Hub {
    fn publish(&self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let first = recent.next;
        let changes: Vec<_> = changes.into_iter().map(|change| (name(), change)).collect();
        recent.next += changes.len() as u64;
        // Of a very large batch, only the last changes are buffered.
        let mut head = changes;
        let tail = head.split_off(head.len().saturating_sub(KEPT));
        let middle = first + head.len() as u64;
        // An error only means that no client listens. Sending under the lock delivers every change
        // exactly once to a new client.
        if !head.is_empty() {
            drop(self.sender.send(Arc::new(Batch {
                first,
                changes: head,
            })));
        }
        recent.kept += tail.len();
        let batch = Arc::new(Batch {
            first: middle,
            changes: tail,
        });
        recent.batches.push_back(Arc::clone(&batch));
        while recent.kept > KEPT && recent.batches.len() > 1 {
            let gone = recent.batches.pop_front();
            recent.kept -= gone.map_or(0, |gone| gone.changes.len());
        }
        drop(self.sender.send(batch));
    }

    /// Subscribes from now on, and replays the changes after the event with this id.
    fn subscribe(&self, last: Option<&str>) -> Listening {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = self.sender.subscribe();
        let mut listening = Listening {
            receiver,
            replay: VecDeque::new(),
            has_missed: false,
            after: recent.next.saturating_sub(1),
        };
        let Some(last) = last else {
            return listening;
        };
        let numbered = |batch: &Arc<Batch>| {
            let mut numbers = (batch.first..).zip(&batch.changes);
            numbers.find_map(|(number, (name, _))| (name == last).then_some(number))
        };
        match recent.batches.iter().find_map(numbered) {
            Some(number) => {
                listening.after = number;
                let newer = recent.batches.iter();
                let newer =
                    newer.filter(|batch| batch.first + batch.changes.len() as u64 > number + 1);
                listening.replay = newer.cloned().collect();
            }
            None => listening.has_missed = true,
        }
        listening
    }
}

struct Listening {
    receiver: broadcast::Receiver<Arc<Batch>>,
    replay: VecDeque<Arc<Batch>>,
    has_missed: bool,
    /// Number of the last change that the client knows.
    after: u64,
}

impl Events {
    /// Follows a memory, whose directory must exist, for at most `most` clients.
    pub(super) fn follow(store: Scoped, most: usize, log: Log) -> Result<Self, notify::Error> {
        let hub = Arc::new(Hub {
            sender: broadcast::Sender::new(WAITING),
            recent: Mutex::new(Recent {
                next: 1,
                ..Recent::default()
            }),
        });
        let publish = {
            let hub = Arc::clone(&hub);
            move |changes| hub.publish(changes)
        };
        Ok(Self {
            _watcher: follow::follow(store, publish, log)?,
            hub,
            limits: StreamLimits::new(most),
        })
    }
}

fn name() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}
