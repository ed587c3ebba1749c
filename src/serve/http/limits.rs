//! How much is taken of whom, and how long anything may take.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::problem::Problem;
use super::state::Server;

/// So many users are counted at once before those are dropped who have been quiet.
const COUNTED: usize = 10_000;

/// The limits of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// The longest body, in bytes; 1 MiB by default.
    pub body: usize,
    /// How long a request may take until its answer begins; 30 s by default.
    pub time: Duration,
    /// How many requests a second a user may send on average; 0 is no limit. Twice as many may come at
    /// once.
    pub rate: u32,
    /// How many requests work with the memory at once; others wait.
    pub at_once: usize,
    /// How many connections are open at once; for one more the longest idle one ends.
    pub connections: usize,
    /// How many clients listen to events at once; one user may have a quarter of that, and at least 4.
    pub listeners: usize,
    /// How long a client may take nothing of what is sent to it, events included.
    pub stall: Duration,
    /// How long requests in flight may take to end when the server stops.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 1 << 20,
            time: Duration::from_secs(30),
            rate: 100,
            at_once: 16,
            connections: 512,
            listeners: 128,
            stall: Duration::from_secs(10),
            grace: Duration::from_secs(10),
        }
    }
}

/// How often each user has asked: a bucket that a token falls into at regular times.
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

    /// Takes one token of a user.
    ///
    /// # Errors
    ///
    /// How long to wait for the next one.
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
    /// Somebody asks more often than he may.
    pub(super) fn too_often(wait: Duration) -> Self {
        Self {
            retry_after: Some(wait.as_secs() + 1),
            ..Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "rate",
                "too many requests with tokens of this user",
                "wait for the time in `retry-after`",
            )
        }
    }
}

impl Problem {
    /// Somebody listens to as many streams as one user may.
    pub(super) fn too_many_streams(share: usize) -> Self {
        Self {
            retry_after: Some(10),
            ..Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "listeners",
                format!(
                    "{share} streams are open with tokens of this user, and no user may have more"
                ),
                "close one, or wait for the time in `retry-after`",
            )
        }
    }
}

/// Gives an answer in time, be it that there is none.
pub(super) async fn in_time(
    State(server): State<Server>,
    request: Request,
    next: Next,
) -> Response {
    let limit = server.limits().time;
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::new(
            StatusCode::GATEWAY_TIMEOUT,
            "time",
            format!("there was no answer within {} s", limit.as_secs_f64()),
            "what was to be written may have been written; look before it is sent again",
        )
        .into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
