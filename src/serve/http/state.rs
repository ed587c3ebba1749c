//! Shared state of all requests, and the one place where a request opens the memory.
//!
//! Calls of verbs block: on files, a lock, or a model. They run on a limited number of separate
//! threads; a request that waits too long for one gets a retry status. A write that has started is
//! completed even if the client is gone.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::model::Viewer;
use crate::model::error::Kind;
use crate::remote;
use crate::serve::blocking;
use crate::serve::token::{Caller, Verifier};
use crate::store::workspace::{Providers, Settings, Workspace};
use crate::store::{
    Approvals, AuditContext, GroupCommit, Primary, Scoped, SeenEntries, is_disabled,
};
use memctl_files::Directory;
use memctl_search::embedder::EmbedderCache;

use super::limits::{Limits, Rates};
use super::origin::Origins;
use super::problem::Problem;
use super::shares::{Place, Shares};

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
    /// Limits on size, rate, concurrency and time.
    pub limits: Limits,
    /// Source of the current time.
    pub clock: Clock,
    /// Log of internal errors.
    pub log: Log,
    /// Log of requests; `None` logs none.
    pub access_log: Option<Log>,
}

/// Server. Cloned for every request.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    memory: PathBuf,
    /// Trust decisions of the user who runs the server.
    approvals: Approvals,
    /// Primary of the memory; `None` if it is in its files.
    primary: Option<Arc<dyn Primary>>,
    skills_dir: PathBuf,
    settings: Settings,
    providers: Providers,
    spare_dir: PathBuf,
    random: fn() -> String,
    group_commit: Arc<GroupCommit>,
    seen_memories: Arc<SeenEntries>,
    clock: Clock,
    verifier: Verifier,
    origins: Origins,
    limits: Limits,
    rates: Rates,
    slots: Shares,
    /// Queue of writers: few at a time and in order, because the lock of the directory is not fair.
    turns: Semaphore,
    /// Queue of additions, which share their writes.
    additions: Shares,
    log: Log,
    access_log: Option<Log>,
}

impl Server {
    /// Creates a server that does not listen yet.
    pub fn new(options: Options) -> Self {
        let Options { workspace, .. } = options;
        Self(Arc::new(Inner {
            memory: workspace.store.directory().to_path_buf(),
            approvals: workspace.store.approvals().clone(),
            primary: workspace.store.primary().cloned(),
            skills_dir: workspace.skills_dir,
            settings: workspace.settings,
            providers: Providers {
                kept: Some(EmbedderCache::default()),
                ..workspace.providers
            },
            spare_dir: workspace.spare_dir,
            random: workspace.random,
            group_commit: workspace.group_commit,
            seen_memories: workspace.seen_memories,
            clock: options.clock,
            verifier: options.verifier,
            origins: options.origins,
            rates: Rates::new(options.limits.rate),
            slots: Shares::new(options.limits.at_once),
            turns: Semaphore::new(WRITERS),
            additions: Shares::new(ADDITIONS),
            limits: options.limits,
            log: options.log,
            access_log: options.access_log,
        }))
    }

    /// Opens the memory for one request: for this caller, purpose and time.
    fn workspace(&self, caller: &Caller, why: &str) -> Workspace {
        let now = self.now();
        let audit_context = AuditContext {
            who: caller.user.to_string(),
            why: why.to_owned(),
            at: now.to_rfc3339_opts(chrono::SecondsFormat::Micros, true),
            change: AuditContext::change_name(&(self.0.random)()),
        };
        Workspace {
            store: self.store(caller).at(now).acting(audit_context),
            skills_dir: self.0.skills_dir.clone(),
            settings: self.0.settings.clone(),
            providers: self.0.providers.clone(),
            spare_dir: self.0.spare_dir.clone(),
            now,
            random: self.0.random,
            group_commit: Arc::clone(&self.0.group_commit),
            seen_memories: Arc::clone(&self.0.seen_memories),
        }
    }

    /// Opens the memory after fetching the writes of its other copies. Blocks.
    pub(super) fn caught_up(
        &self,
        caller: &Caller,
        why: &str,
    ) -> Result<Workspace, crate::store::workspace::Error> {
        let workspace = self.workspace(caller, why);
        remote::catch_up(&workspace.store)?;
        Ok(workspace)
    }

    /// Opens the store with the caller's scope and user.
    pub(super) fn store(&self, caller: &Caller) -> Scoped {
        let store = Scoped::new(&self.0.memory, caller.scope.clone())
            .seen_by(Viewer::User(caller.user.clone()))
            .with_lock_limit(LOCK)
            .at(self.now())
            .trusting(self.0.approvals.clone());
        match &self.0.primary {
            Some(primary) => store.backed_by(Arc::clone(primary)),
            None => store,
        }
    }

    /// Runs work on the memory in a thread that may block.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        caller: &Caller,
        why: &'static str,
        work: impl FnOnce(&Workspace) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        self.work_with_model(caller, why, async move |workspace| work(workspace))
            .await
    }

    /// Runs work on the memory that awaits calls of a model.
    pub(super) async fn work_with_model<T: Send + 'static>(
        &self,
        caller: &Caller,
        why: &'static str,
        work: impl AsyncFnOnce(&Workspace) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let slot = self.slot(caller).await?;
        let (server, caller) = (self.clone(), caller.clone());
        let open = move || Ok(server.caught_up(&caller, why)?);
        Self::call(slot, open, work).await
    }

    /// Runs work that only adds records: many at a time, because they share their writes. The writer
    /// fetches what the other copies of the memory have written.
    pub(super) async fn add<T: Send + 'static>(
        &self,
        caller: &Caller,
        why: &'static str,
        work: impl FnOnce(&Workspace) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let slot = self.permit(&self.0.additions, caller).await?;
        let (server, caller) = (self.clone(), caller.clone());
        let open = move || {
            let workspace = server.workspace(&caller, why);
            if workspace.store.must_be_enabled().is_err() {
                // Another server may have enabled it again.
                remote::catch_up(&workspace.store)?;
            }
            Ok(workspace)
        };
        Self::call(slot, open, async move |workspace| work(workspace)).await
    }

    /// Runs work on all data of the caller, also while the memory is disabled for them.
    pub(super) async fn own_data<T: Send + 'static>(
        &self,
        caller: &Caller,
        why: &'static str,
        work: impl FnOnce(&Workspace) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let slot = self.slot(caller).await?;
        let _turn = self.turn().await?;
        let (server, caller) = (self.clone(), caller.clone());
        let open = move || {
            let mut workspace = server.workspace(&caller, why);
            workspace.store = workspace.store.even_if_disabled();
            remote::catch_up(&workspace.store)?;
            Ok(workspace)
        };
        Self::call(slot, open, async move |workspace| work(workspace)).await
    }

    async fn call<T: Send + 'static>(
        slot: Place,
        open: impl FnOnce() -> Result<Workspace, Problem> + Send + 'static,
        work: impl AsyncFnOnce(&Workspace) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let done = blocking::call(open, async move |workspace| {
            // The client may be gone: the slot is taken until the work is done.
            let _slot = slot;
            work(workspace).await
        });
        done.await.unwrap_or_else(|error| {
            let message = "the server failed to answer";
            let kind = Kind::Internal.name();
            Err(Problem::fault(kind, message, error.to_string()))
        })
    }

    /// Runs work that only writes: few at a time, in the order of arrival.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        caller: &Caller,
        why: &'static str,
        work: impl FnOnce(&Workspace) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let slot = self.slot(caller).await?;
        let _turn = self.turn().await?;
        let (server, caller) = (self.clone(), caller.clone());
        let open = move || Ok(server.caught_up(&caller, why)?);
        Self::call(slot, open, async move |workspace| work(workspace)).await
    }

    /// Waits for the turn to write.
    async fn turn(&self) -> Result<SemaphorePermit<'_>, Problem> {
        let turn = tokio::time::timeout(PATIENCE, self.0.turns.acquire()).await;
        turn.ok()
            .and_then(Result::ok)
            .ok_or_else(|| Problem::busy("too many writes are waiting", 1))
    }

    /// Waits for a place to use the memory: for the user's own share, then among all.
    pub(super) async fn slot(&self, caller: &Caller) -> Result<Place, Problem> {
        self.permit(&self.0.slots, caller).await
    }

    async fn permit(&self, shares: &Shares, caller: &Caller) -> Result<Place, Problem> {
        let place = tokio::time::timeout(PATIENCE, shares.place(caller.user.as_str())).await;
        let Ok(Ok(place)) = place else {
            return Err(Problem::busy("the server is overloaded", 1));
        };
        if is_disabled(&Directory::at(&self.0.memory)) {
            return Err(Problem::disabled());
        }
        Ok(place)
    }

    pub(super) fn now(&self) -> DateTime<Utc> {
        (self.0.clock)()
    }

    pub(super) fn random(&self) -> String {
        (self.0.random)()
    }

    pub(super) fn verifier(&self) -> &Verifier {
        &self.0.verifier
    }

    pub(super) fn origins(&self) -> &Origins {
        &self.0.origins
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(super) fn rates(&self) -> &Rates {
        &self.0.rates
    }

    pub(super) fn log(&self, line: &str) {
        (self.0.log)(line);
    }

    pub(super) fn log_access(&self, line: impl FnOnce() -> String) {
        if let Some(log) = &self.0.access_log {
            log(&line());
        }
    }
}
