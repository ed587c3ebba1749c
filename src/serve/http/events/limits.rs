//! Limits on event streams, in total and per user.
//!
//! The limit per user is independent of the number of tokens, so that one user cannot block the
//! others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Divisor of the total for the limit per user, which is at least [`LEAST`].
const PART: usize = 4;
const LEAST: usize = 4;

/// Streams of a server.
#[derive(Clone)]
pub(super) struct StreamLimits {
    most: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    by_user: HashMap<String, usize>,
}

/// Permit for one stream, until it is dropped.
pub(super) struct StreamPermit {
    user: String,
    taken: Arc<Mutex<Taken>>,
}

/// Reason why no stream is opened.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamRefusal {
    /// The server has as many streams as it may have.
    Full,
    /// The user has reached the limit per user, which is this.
    Share(usize),
}

impl StreamLimits {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            taken: Arc::default(),
        }
    }

    /// Returns a permit for a stream of a user.
    pub(super) fn take(&self, user: &str) -> Result<StreamPermit, StreamRefusal> {
        let share = (self.most / PART).max(LEAST);
        let mut taken = lock(&self.taken);
        let own = taken.by_user.get(user).copied().unwrap_or_default();
        if own >= share {
            return Err(StreamRefusal::Share(share));
        }
        if taken.all >= self.most {
            return Err(StreamRefusal::Full);
        }
        taken.all += 1;
        taken.by_user.insert(user.to_owned(), own + 1);
        Ok(StreamPermit {
            user: user.to_owned(),
            taken: Arc::clone(&self.taken),
        })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.all = taken.all.saturating_sub(1);
        let left = taken.by_user.get_mut(&self.user).map(|own| {
            *own = own.saturating_sub(1);
            *own
        });
        if left == Some(0) {
            taken.by_user.remove(&self.user);
        }
    }
}

fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_share_and_gets_it_back() {
        let limits = StreamLimits::new(20);
        let mut ann: Vec<StreamPermit> = (0..5).map(|_| limits.take("ann").unwrap()).collect();
        assert_eq!(limits.take("ann").err(), Some(StreamRefusal::Share(5)));
        let others: Vec<StreamPermit> = ["bob", "cid", "dan"]
            .into_iter()
            .flat_map(|user| (0..5).map(move |_| user))
            .map(|user| limits.take(user).unwrap())
            .collect();
        assert_eq!(limits.take("eve").err(), Some(StreamRefusal::Full));
        assert_eq!(lock(&limits.taken).all, 20);
        ann.pop();
        drop(limits.take("eve").unwrap());
        ann.push(limits.take("ann").unwrap());
        drop((ann, others));
        let taken = lock(&limits.taken);
        assert_eq!((taken.all, taken.by_user.len()), (0, 0));
        let few = StreamLimits::new(6);
        let _four: Vec<StreamPermit> = (0..4).map(|_| few.take("ann").unwrap()).collect();
        assert_eq!(few.take("ann").err(), Some(StreamRefusal::Share(4)));
    }
}
