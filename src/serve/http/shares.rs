//! Shares of users in what the server can do at once.
//!
//! A user waits for their own share first, and only then for a place among all. So the queue of one user
//! holds up nobody else: a user with hundreds of requests waits for their own.
//!
//! Deliberately absent: time. The caller limits the wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Number of users with a share before those of quiet users are dropped.
const COUNTED: usize = 1_000;

/// Places for requests, with a share for each user.
pub(super) struct Shares {
    places: Arc<Semaphore>,
    share: usize,
    users: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// Place of one request, until it is dropped.
pub(super) struct Place {
    _of_user: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Shares {
    /// Creates places, of which one user has at most a quarter, and at least one.
    pub(super) fn new(places: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(places)),
            share: (places / 4).max(1),
            users: Mutex::default(),
        }
    }

    /// Waits for a place of a user.
    ///
    /// # Errors
    ///
    /// Fails if the server is gone.
    pub(super) async fn place(&self, user: &str) -> Result<Place, AcquireError> {
        let of_user = self.of(user).acquire_owned().await?;
        let of_all = Arc::clone(&self.places).acquire_owned().await?;
        Ok(Place {
            _of_user: of_user,
            _of_all: of_all,
        })
    }

    fn of(&self, user: &str) -> Arc<Semaphore> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if users.len() >= COUNTED && !users.contains_key(user) {
            // Somebody who waits or works holds it too.
            users.retain(|_, share| Arc::strong_count(share) > 1);
        }
        let share = users
            .entry(user.to_owned())
            .or_insert_with(|| Arc::new(Semaphore::new(self.share)));
        Arc::clone(share)
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn who_waits_for_their_own_share_holds_up_nobody() {
        let shares = Shares::new(8);
        let mut context = Context::from_waker(Waker::noop());
        let mut poll = |user: &'static str| {
            let mut place = Box::pin(shares.place(user));
            match place.as_mut().poll(&mut context) {
                Poll::Ready(place) => Ok(place.unwrap()),
                Poll::Pending => Err(place),
            }
        };
        let mut held = vec![
            poll("hog").unwrap_or_else(|_| panic!()),
            poll("hog").unwrap_or_else(|_| panic!()),
        ];
        let waiting: Vec<_> = (0..100).filter_map(|_| poll("hog").err()).collect();
        assert_eq!(waiting.len(), 100);
        for guest in ["ann", "bob", "cleo"] {
            held.push(poll(guest).unwrap_or_else(|_| panic!()));
            held.push(poll(guest).unwrap_or_else(|_| panic!()));
        }
        // All places are taken.
        assert!(poll("dan").is_err());
        held.pop();
        assert!(poll("dan").is_ok());
        drop(waiting);
        drop(held);
        for n in 0..COUNTED * 2 {
            drop(shares.of(&n.to_string()));
        }
        assert!(shares.users.lock().unwrap().len() <= COUNTED);
    }
}
