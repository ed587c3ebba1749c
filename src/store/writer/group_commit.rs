//! Group commit: requests of one process that add records share a write.
//!
//! A request that finds no leader becomes the leader. It opens the writer, adds all that waits, and
//! answers. Requests that arrive meanwhile form the next group, so a group is as large as the disk
//! or the database is slow, and a lone request never waits.
//!
//! Invariant: an answer is given after the write, as for a writer of one's own. If a write fails,
//! its whole group fails.
//!
//! Deliberately absent: edits and removals. They depend on what they read, and take the lock alone.

use std::sync::mpsc::{self, SyncSender, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};

use crate::model::{Kind, Record};
use crate::store::index::SkipCondition;
use crate::store::writer::append::Addition;
use crate::store::{Error, Problem, Scoped};

/// Maximum number of additions in one write.
const LARGEST: usize = 256;

/// Requests of one process for the same memory.
#[derive(Default)]
pub struct GroupCommit {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    is_led: bool,
    /// Number of groups.
    #[cfg(test)]
    commits: u32,
}

impl std::fmt::Debug for GroupCommit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupCommit").finish_non_exhaustive()
    }
}

/// Record that was added.
#[derive(Debug)]
pub struct Added<R> {
    /// The record as stored; `None` if an entry said the same already.
    pub record: Option<R>,
    /// Kinds of secrets redacted from it.
    pub left_out: Vec<&'static str>,
    /// Crash damage that its writer has repaired.
    pub repairs: Vec<Problem>,
}

/// Addition that waits for its write, and then for its caller.
struct Waiting {
    addition: Addition,
    reply: SyncSender<Result<(Addition, Vec<Problem>), Error>>,
}

impl GroupCommit {
    /// Adds a record for the caller of `store`, in one write with the records of other requests.
    #[expect(clippy::needless_pass_by_value, reason = "the record comes back as it is stored")]
    pub fn add<R: Record + Send + 'static>(
        &self,
        store: &Scoped,
        record: R,
        unless: Option<SkipCondition>,
        now: DateTime<Utc>,
        random: fn() -> String,
    ) -> Result<Added<R>, Error> {
        // Checked first, so that a refusal waits for nobody.
        let addition = Addition::of(store.held(), &record, now, unless)?;
        let (reply, answer) = mpsc::sync_channel(1);
        let mut queue = self.queue();
        queue.waiting.push(Waiting { addition, reply });
        loop {
            match answer.try_recv() {
                Ok(answer) => {
                    let (mut addition, repairs) = answer?;
                    return Ok(Added {
                        left_out: std::mem::take(&mut addition.left_out),
                        record: addition.stored()?,
                        repairs,
                    });
                }
                Err(TryRecvError::Disconnected) => return Err(Error::Abandoned),
                Err(TryRecvError::Empty) => {}
            }
            if queue.is_led {
                let waited = self.changed.wait(queue);
                queue = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            queue.is_led = true;
            #[cfg(test)]
            count_commit(&mut queue);
            let length = queue.waiting.len().min(LARGEST);
            let requests: Vec<_> = queue.waiting.drain(..length).collect();
            drop(queue);
            let leader = Leader(self);
            commit(store, requests, random);
            drop(leader);
            queue = self.queue();
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
fn count_commit(queue: &mut Queue) {
    queue.commits += 1;
}

/// Lets the next request lead, even after a panic.
struct Leader<'a>(&'a GroupCommit);

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        self.0.queue().is_led = false;
        self.0.changed.notify_all();
    }
}

/// Writes the requests of each kind in one write, and answers them.
fn commit(store: &Scoped, mut requests: Vec<Waiting>, random: fn() -> String) {
    let mut writer = store.write(&mut || random()).map_err(Arc::new);
    for kind in Kind::ALL {
        let is_of_kind = |request: &Waiting| request.addition.kind == kind;
        let (mut now, later): (Vec<_>, Vec<_>) = requests.into_iter().partition(is_of_kind);
        requests = later;
        if now.is_empty() {
            continue;
        }
        let done = match &mut writer {
            Ok(writer) => {
                let additions = now.iter_mut().map(|request| &mut request.addition);
                let done = writer.append_each(kind, &mut additions.collect::<Vec<_>>());
                done.map(|()| writer.take_repairs()).map_err(Arc::new)
            }
            Err(error) => Err(Arc::clone(error)),
        };
        let (mut repairs, error) = match done {
            Ok(repairs) => (repairs, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        for Waiting { addition, reply } in now {
            let answer = match &error {
                // One of them reports what was repaired.
                None => Ok((addition, std::mem::take(&mut repairs))),
                Some(error) => Err(Error::Group(Arc::clone(error))),
            };
            // A caller that is gone needs no answer.
            drop(reply.send(answer));
        }
    }
}

#[cfg(test)]
mod tests;
