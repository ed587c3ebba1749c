//! Limits on size, rate, concurrency and time.
//!
//! A request waits first for a place in its user's share of the server, and only then for a place among
//! all. So the queue of a user with hundreds of requests delays nobody else. The caller limits the wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::problem::Problem;

/// Number of users with a bucket before buckets of quiet users are dropped.
const COUNTED: usize = 10_000;

/// Maximum size of a body in bytes: 1 MiB.
pub(super) const LONGEST_BODY: usize = 1 << 20;
/// Maximum time until an answer begins.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Default of the average number of requests per second and user; 0 is no limit. A burst may have
/// twice as many.
pub const RATE: u32 = 100;
/// Maximum number of concurrent requests on the memory, of which one user may have a quarter.
/// Others wait.
pub(super) const AT_ONCE: usize = 16;
/// Maximum number of open connections. A further one waits for an idle one to end.
pub(super) const CONNECTIONS: usize = 512;
/// Maximum time in which a client reads nothing. Linux ends such a connection.
pub(super) const STALL: Duration = Duration::from_secs(10);
/// Time for requests in flight to end when the server stops.
pub(super) const GRACE: Duration = Duration::from_secs(10);

/// Token buckets that limit the request rate of each user.
pub(super) struct Rates {
    rate: f64,
    users: Mutex<HashMap<String, Bucket>>,
}

struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Rates {
    pub(super) fn new(rate: u32) -> Self {
        Self {
            rate: f64::from(rate),
            users: Mutex::default(),
        }
    }

    /// Takes one token from a user's bucket.
    ///
    /// # Errors
    ///
    /// Returns the time until the next token.
    pub(super) fn take(&self, user: &str) -> Result<(), Duration> {
        self.take_at(user, Instant::now())
    }

    fn take_at(&self, user: &str, now: Instant) -> Result<(), Duration> {
        if self.rate <= 0.0 {
            return Ok(());
        }
        let most = self.rate * 2.0;
        let filled = |bucket: &Bucket| {
            let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
            (bucket.tokens + passed * self.rate).min(most)
        };
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if users.len() >= COUNTED && !users.contains_key(user) {
            users.retain(|_, bucket| filled(bucket) < most);
        }
        let bucket = users.entry(user.to_owned()).or_insert(Bucket {
            tokens: most,
            at: now,
        });
        bucket.tokens = filled(bucket);
        bucket.at = now;
        if bucket.tokens < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - bucket.tokens) / self.rate));
        }
        bucket.tokens -= 1.0;
        Ok(())
    }
}

impl Problem {
    /// Returns the error for a user above the request rate.
    pub(super) fn too_often(wait: Duration) -> Self {
        let message = "too many requests with tokens of this user";
        let problem = Self::new(429, "rate", message, "wait for the time in `retry-after`");
        problem.after(wait.as_secs() + 1)
    }
}

/// Number of users with a share before those of quiet users are dropped.
const SHARING: usize = 1_000;

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
        if users.len() >= SHARING && !users.contains_key(user) {
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
    fn request_that_waits_for_its_users_share_delays_nobody() {
        let shares = Shares::new(8);
        let mut context = Context::from_waker(Waker::noop());
        let mut poll = |user: &'static str| {
            let mut place = Box::pin(shares.place(user));
            match place.as_mut().poll(&mut context) {
                Poll::Ready(place) => Ok(place.unwrap()),
                Poll::Pending => Err(place),
            }
        };
        let mut admitted = vec![
            poll("hog").unwrap_or_else(|_| panic!()),
            poll("hog").unwrap_or_else(|_| panic!()),
        ];
        let waiting: Vec<_> = (0..100).filter_map(|_| poll("hog").err()).collect();
        assert_eq!(waiting.len(), 100);
        for guest in ["ann", "bob", "cleo"] {
            admitted.push(poll(guest).unwrap_or_else(|_| panic!()));
            admitted.push(poll(guest).unwrap_or_else(|_| panic!()));
        }
        // All places are taken.
        assert!(poll("dan").is_err());
        admitted.pop();
        assert!(poll("dan").is_ok());
        drop(waiting);
        drop(admitted);
        for n in 0..SHARING * 2 {
            drop(shares.of(&n.to_string()));
        }
        assert!(shares.users.lock().unwrap().len() <= SHARING);
    }

    #[test]
    fn a_user_gets_so_many_a_second_and_no_other_user_pays_for_it() {
        let rates = Rates::new(10);
        let start = Instant::now();
        let at = |user: &str, ms: u64| rates.take_at(user, start + Duration::from_millis(ms));
        for _ in 0..20 {
            at("ann", 0).unwrap();
        }
        let wait = at("ann", 0).unwrap_err();
        assert!(
            wait <= Duration::from_millis(100) && wait > Duration::ZERO,
            "{wait:?}"
        );
        at("bob", 0).unwrap();
        at("ann", 100).unwrap();
        assert!(at("ann", 100).is_err());
        for _ in 0..10 {
            at("ann", 1_100).unwrap();
        }
        assert!(at("ann", 1_100).is_err());
        let none = Rates::new(0);
        assert!((0..1_000).all(|_| none.take("ann").is_ok()));
    }
}
