//! Shared state of all requests, and the one place where a request opens the memory.
//!
//! Operations block: on files, a lock, or a model. They run on a limited number of separate
//! threads; a request that waits too long for one gets a retry status. A write that has started is
//! completed even if the client has disconnected.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use chrono::{DateTime, Utc};
use tokio::sync::Semaphore;

use crate::model::Viewer;
use crate::serve::call;
use crate::serve::token::{Caller, Verifier};
use crate::store::workspace::{Providers, Workspace};
use crate::store::{AuditContext, Scoped, is_disabled};
use memctl_files::Directory;
use memctl_search::embedder::EmbedderCache;

use super::limits::{AT_ONCE, Place, Rates, Shares};
use super::middleware::Origins;
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

/// Server. Cloned for every request.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

/// State shared by all requests.
pub struct Shared {
    pub(super) options: Options,
    pub(super) rates: Rates,
    slots: Shares,
    /// Queue of writers: few at a time and in order, because the lock of the directory is not fair.
    turns: Semaphore,
    /// Queue of additions, which share their writes.
    additions: Shares,
}

impl Deref for Server {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Server {
    /// Creates a server that does not listen yet.
    pub fn new(mut options: Options) -> Self {
        options.workspace.providers = Providers {
            embedder_cache: Some(EmbedderCache::default()),
            ..options.workspace.providers
        };
        Self(Arc::new(Shared {
            rates: Rates::new(options.rate_limit),
            slots: Shares::new(AT_ONCE),
            turns: Semaphore::new(WRITERS),
            additions: Shares::new(ADDITIONS),
            options,
        }))
    }

    pub(super) fn now(&self) -> DateTime<Utc> {
        (self.options.clock)()
    }
}

/// Request of an authenticated caller.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) server: Server,
    pub(super) caller: Caller,
}

impl FromRequestParts<Server> for Call {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Problem> {
        let caller = Extension::<Caller>::from_request_parts(parts, server).await;
        let Extension(caller) = caller.map_err(|error| Problem::internal(&error))?;
        Ok(Self {
            server: server.clone(),
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
        why: &'static str,
        work: impl AsyncFnOnce(&Workspace) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let server = self.server.clone();
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
        let open = move || {
            let mut workspace = self.workspace(why);
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
