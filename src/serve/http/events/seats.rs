//! Limits on event streams, in total and per user.
//!
//! The limit per user is independent of the number of tokens, so that one user cannot block the
//! others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Divisor of the total for the limit per user, which is at least [`LEAST`].
const PART: usize = 4;
const LEAST: usize = 4;

/// Seats of a server.
#[derive(Clone)]
pub(super) struct Seats {
    most: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    by_user: HashMap<String, usize>,
}

/// Seat, released on drop.
pub(super) struct Seat {
    user: String,
    taken: Arc<Mutex<Taken>>,
}

/// Reason why there is no seat.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoSeat {
    /// All seats are taken.
    Full,
    /// The user has reached the limit of seats per user.
    Share(usize),
}

impl Seats {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            taken: Arc::default(),
        }
    }

    /// Takes a seat for a user.
    pub(super) fn take(&self, user: &str) -> Result<Seat, NoSeat> {
        let share = (self.most / PART).max(LEAST);
        let mut taken = lock(&self.taken);
        let own = taken.by_user.get(user).copied().unwrap_or_default();
        if own >= share {
            return Err(NoSeat::Share(share));
        }
        if taken.all >= self.most {
            return Err(NoSeat::Full);
        }
        taken.all += 1;
        taken.by_user.insert(user.to_owned(), own + 1);
        Ok(Seat {
            user: user.to_owned(),
            taken: Arc::clone(&self.taken),
        })
    }

    /// Returns the number of taken seats.
    pub(super) fn taken(&self) -> usize {
        lock(&self.taken).all
    }
}

impl Drop for Seat {
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
        let seats = Seats::new(20);
        let mut ann: Vec<Seat> = (0..5).map(|_| seats.take("ann").unwrap()).collect();
        assert_eq!(seats.take("ann").err(), Some(NoSeat::Share(5)));
        let others: Vec<Seat> = ["bob", "cid", "dan"]
            .into_iter()
            .flat_map(|user| (0..5).map(move |_| user))
            .map(|user| seats.take(user).unwrap())
            .collect();
        assert_eq!(seats.take("eve").err(), Some(NoSeat::Full));
        assert_eq!(seats.taken(), 20);
        ann.pop();
        drop(seats.take("eve").unwrap());
        ann.push(seats.take("ann").unwrap());
        drop((ann, others));
        assert_eq!((seats.taken(), lock(&seats.taken).by_user.len()), (0, 0));
        let few = Seats::new(6);
        let _four: Vec<Seat> = (0..4).map(|_| few.take("ann").unwrap()).collect();
        assert_eq!(few.take("ann").err(), Some(NoSeat::Share(4)));
    }
}
