//! Shared state of all requests, and the one place where a request opens the memory.
//!
//! Operations block: on files, a lock, or a model. They run on a limited number of separate
//! threads; a request that waits too long for one gets a retry status. A write that has started is
//! completed even if the client has disconnected.
//!
//! A request waits first for a place in its user's share of the server, and only then for a place among
//! all. So the queue of a user with hundreds of requests delays nobody else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use chrono::{DateTime, Utc};
use memctl_files::Directory;
use memctl_search::embedder::EmbedderCache;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::model::Viewer;
use crate::serve::call;
use crate::serve::token::{Caller, Verifier};
use crate::store::workspace::Workspace;
use crate::store::{AuditContext, Scoped, is_disabled};

use super::origins::Origins;
use super::problem::Problem;

/// Maximum wait of a request for a thread.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum number of concurrent write-only requests: one has the lock, the others are prepared.
const WRITERS: usize = 4;

/// Maximum number of concurrent requests that only add records. They share their writes, and each
/// takes a thread while it waits.
const ADDITIONS: usize = 64;

/// Maximum wait for the lock, shorter than the time limit of a request.
const LOCK: Duration = Duration::from_secs(10);

/// Receiver of log lines for the operator.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// Source of the current time.
pub type Clock = Box<dyn Fn() -> DateTime<Utc> + Send + Sync>;

/// Parts of a server.
pub struct Options {
    /// Workspace with the owner's access.
    pub workspace: Workspace,
    /// Verifier of tokens.
    pub verifier: Verifier,
    /// Accepted host names and origins.
    pub origins: Origins,
    /// Maximum average number of requests per second and user; 0 is no limit.
    pub rate_limit: u32,
    /// Source of the current time.
    pub clock: Clock,
    /// Log of internal errors.
    pub log: Log,
    /// Log of requests; `None` logs none.
    pub access_log: Option<Log>,
}

/// Server, shared by all requests.
pub struct Server {
    pub(super) options: Options,
    pub(super) rates: Rates,
    slots: Shares,
    /// Queue of writers: few at a time and in order, because the lock of the directory is not fair.
    turns: Semaphore,
    /// Queue of additions, which share their writes.
    additions: Shares,
}

impl Server {
    /// Creates a server that does not listen yet.
    pub fn new(mut options: Options) -> Self {
        options.workspace.providers.embedder_cache = Some(EmbedderCache::default());
        Self {
            rates: Rates::new(options.rate_limit),
            slots: Shares::new(AT_ONCE),
            turns: Semaphore::new(WRITERS),
            additions: Shares::new(ADDITIONS),
            options,
        }
    }

    pub(super) fn now(&self) -> DateTime<Utc> {
        (self.options.clock)()
    }
}

/// Request of an authenticated caller.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) server: Arc<Server>,
    pub(super) caller: Caller,
}

impl FromRequestParts<Arc<Server>> for Call {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let caller = Extension::<Caller>::from_request_parts(parts, server).await;
        let Extension(caller) = caller.map_err(|error| Problem::internal(&error))?;
        Ok(Self {
            server: Arc::clone(server),
            caller,
        })
    }
}

/// Use of the memory by work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Any,
    /// It only adds records: many at a time, because they share their writes. The writer fetches
    /// what the other copies of the memory have written.
    Adds,
    /// It only writes: few at a time, in the order of arrival.
    Writes,
    /// It concerns all data of the caller, also while the memory is disabled for them.
    OwnData,
}

impl Call {
    /// Opens the memory for one request: for its caller, purpose and time.
    fn workspace(&self, why: &str) -> Workspace {
        let workspace = &self.server.options.workspace;
        let now = self.server.now();
        let audit_context = AuditContext {
            who: self.caller.user.to_string(),
            why: why.to_owned(),
            at: now.to_rfc3339_opts(chrono::SecondsFormat::Micros, true),
            change: AuditContext::change_name(&(workspace.random)()),
        };
        let owned = &workspace.store;
        let memory = owned.directory().to_path_buf();
        let store = Scoped::new(&memory, self.caller.scope.clone())
            .seen_by(Viewer::User(self.caller.user.clone()))
            .with_lock_limit(LOCK)
            .at(now)
            .trusting(owned.approvals().clone())
            .acting(audit_context);
        Workspace {
            store: match owned.primary() {
                Some(primary) => store.backed_by(Arc::clone(primary)),
                None => store,
            },
            now,
            ..workspace.clone()
        }
    }

    /// Opens the memory after fetching the writes of its other copies. Blocks.
    pub(super) fn caught_up(&self, why: &str) -> Result<Workspace, crate::store::workspace::Error> {
        let workspace = self.workspace(why);
        workspace.store.catch_up()?;
        Ok(workspace)
    }

    /// Runs work on the memory in a thread that may block. It awaits only calls of a model.
    pub(super) async fn work<T: Send + 'static>(
        self,
        how: Use,
        why: &str,
        work: impl AsyncFnOnce(&Workspace) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let server = Arc::clone(&self.server);
        let slot = match how {
            Use::Adds => self.place(&server.additions).await?,
            _ => self.slot().await?,
        };
        let _turn = match how {
            Use::Writes | Use::OwnData => {
                let turn = tokio::time::timeout(PATIENCE, server.turns.acquire()).await;
                let turn = turn.ok().and_then(Result::ok);
                Some(turn.ok_or_else(|| Problem::busy("too many writes are waiting", 1))?)
            }
            Use::Any | Use::Adds => None,
        };
        let why = why.to_owned();
        let open = move || {
            let mut workspace = self.workspace(&why);
            if how == Use::OwnData {
                workspace.store = workspace.store.even_if_disabled();
            }
            // Another server may have enabled it again.
            if how != Use::Adds || workspace.store.must_be_enabled().is_err() {
                workspace.store.catch_up()?;
            }
            Ok(workspace)
        };
        let done = call(open, async move |workspace| {
            // The client may be gone: the slot is taken until the work is done.
            let _slot = slot;
            work(workspace).await
        });
        done.await
            .unwrap_or_else(|error| Err(Problem::internal(&error)))
    }

    /// Waits for a place to use the memory: for the user's own share, then among all.
    pub(super) async fn slot(&self) -> Result<Place, Problem> {
        self.place(&self.server.slots).await
    }

    async fn place(&self, shares: &Shares) -> Result<Place, Problem> {
        let place = shares.place(self.caller.user.as_str());
        let place = tokio::time::timeout(PATIENCE, place).await;
        let Ok(Ok(place)) = place else {
            return Err(Problem::busy("the server is overloaded", 1));
        };
        let memory = self.server.options.workspace.store.directory();
        if is_disabled(&Directory::at(memory)) {
            return Err(Problem::disabled());
        }
        Ok(place)
    }
}

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

/// Place of one request, until it is dropped: in its user's share, and among all.
pub(super) type Place = (OwnedSemaphorePermit, OwnedSemaphorePermit);

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
        Ok((of_user, of_all))
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
