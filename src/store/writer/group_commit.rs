//! Group commit: requests of one process that add records share a write.
//!
//! A request that finds no leader becomes the leader. It opens the writer, adds all that waits, and
//! answers. Requests that arrive meanwhile form the next group, so a group is as large as the disk
//! or the database is slow, and a lone request never waits.
//!
//! Invariant: an answer is given after the write, as for a [`Writer`] of one's own. If a write fails,
//! its whole group fails.
//!
//! Deliberately absent: edits and removals. They depend on what they read, and take the lock alone.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};

use crate::model::{Kind, Record};
use crate::store::access::scoped::Scoped;
use crate::store::error::{Error, Problem};

use super::Writer;
use super::addition::{Addition, New, SkipCondition, State};

/// Maximum number of additions in one write.
const LARGEST: usize = 256;

/// Requests of one process for the same memory.
#[derive(Default)]
pub struct GroupCommit {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Number of groups.
    commits: AtomicU64,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Box<dyn Request>>,
    is_led: bool,
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

/// Addition that waits, and its caller.
trait Request: Send {
    fn addition(&mut self) -> &mut dyn Addition;
    fn answer(self: Box<Self>, done: Result<Vec<Problem>, &Arc<Error>>);
}

struct Waiting<R> {
    new: New<R>,
    reply: SyncSender<Result<Added<R>, Error>>,
}

impl<R: Record + Send> Request for Waiting<R> {
    fn addition(&mut self) -> &mut dyn Addition {
        &mut self.new
    }

    fn answer(self: Box<Self>, done: Result<Vec<Problem>, &Arc<Error>>) {
        let added = match (done, self.new.state) {
            (Err(error), _) => Err(Error::Group(Arc::clone(error))),
            (Ok(_), State::Refused(error)) => Err(error),
            (Ok(repairs), state) => Ok(Added {
                record: (!matches!(state, State::Repeated)).then_some(self.new.record),
                left_out: self.new.left_out,
                repairs,
            }),
        };
        // A caller that is gone needs no answer.
        drop(self.reply.send(added));
    }
}

impl GroupCommit {
    /// Adds a record for the caller of `store`, in one write with the records of other requests.
    pub fn add<R: Record + Send + 'static>(
        &self,
        store: &Scoped,
        record: R,
        unless: Option<SkipCondition>,
        now: DateTime<Utc>,
        random: fn() -> String,
    ) -> Result<Added<R>, Error> {
        // Checked first, so that a refusal waits for nobody.
        let new = New::of(store.held(), record, now, unless)?;
        let (reply, answer) = mpsc::sync_channel(1);
        let mut queue = self.queue();
        queue.waiting.push(Box::new(Waiting { new, reply }));
        loop {
            match answer.try_recv() {
                Ok(added) => return added,
                Err(TryRecvError::Disconnected) => return Err(Error::Abandoned),
                Err(TryRecvError::Empty) => {}
            }
            if queue.is_led {
                let waited = self.changed.wait(queue);
                queue = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            queue.is_led = true;
            let length = queue.waiting.len().min(LARGEST);
            let requests: Vec<_> = queue.waiting.drain(..length).collect();
            drop(queue);
            let leader = Leader(self);
            self.commits.fetch_add(1, Ordering::Relaxed);
            commit(store, requests, random);
            drop(leader);
            queue = self.queue();
        }
    }

    /// Returns the number of groups that were written, or failed.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
fn commit(store: &Scoped, requests: Vec<Box<dyn Request>>, random: fn() -> String) {
    let mut by_kind: Vec<(Kind, Vec<Box<dyn Request>>)> = Vec::new();
    for mut request in requests {
        let kind = request.addition().kind();
        match by_kind.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, same)) => same.push(request),
            None => by_kind.push((kind, vec![request])),
        }
    }
    match store.write(&mut || random()) {
        Ok(mut writer) => {
            for (kind, mut requests) in by_kind {
                let done = add(&mut writer, kind, &mut requests);
                answer(requests, done.map(|()| writer.take_repairs()));
            }
        }
        Err(error) => {
            let requests = by_kind.into_iter().flat_map(|(_, requests)| requests);
            answer(requests.collect(), Err(error));
        }
    }
}

fn add(writer: &mut Writer, kind: Kind, requests: &mut [Box<dyn Request>]) -> Result<(), Error> {
    let additions = requests.iter_mut().map(|request| request.addition());
    writer.append_each(kind, &mut additions.collect::<Vec<_>>())
}

fn answer(requests: Vec<Box<dyn Request>>, done: Result<Vec<Problem>, Error>) {
    match done {
        Ok(mut repairs) => {
            // One of them reports what was repaired.
            for request in requests {
                request.answer(Ok(std::mem::take(&mut repairs)));
            }
        }
        Err(error) => {
            let error = Arc::new(error);
            for request in requests {
                request.answer(Err(&error));
            }
        }
    }
}

#[cfg(test)]
mod tests;
