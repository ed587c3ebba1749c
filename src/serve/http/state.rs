//! What every request works with, and the one place where a request opens the memory.
//!
//! The verbs of the engine wait: for files, for a lock, for a model. They run on threads of their own,
//! so many at once and no more; whoever finds all of them busy for too long is told to come again. A
//! write that has begun is finished, whether or not somebody still waits for its answer.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::engine::{self, Engine, Kept, Providers, Settings};
use crate::model::Viewer;
use crate::platform::Directory;
use crate::serve::token::{Caller, Verifier};
use crate::store::{Act, Approvals, Primary, Scoped, is_disabled};

use super::events::Events;
use super::limits::{Limits, Rates};
use super::metrics::Metrics;
use super::origin::Origins;
use super::problem::Problem;

/// How long a request waits for a thread.
const PATIENCE: Duration = Duration::from_secs(10);

/// So many requests that only write are at it at once: one has the lock, the others come prepared.
const WRITERS: usize = 4;

/// How a writer among many waits for the lock: shorter than anybody waits for an answer.
const LOCK: Duration = Duration::from_secs(10);

/// What time it is.
pub type Clock = Box<dyn Fn() -> DateTime<Utc> + Send + Sync>;

/// Where lines for the person who runs the server go.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// What a server is made of.
pub struct Options {
    /// The memory, as its owner opens it.
    pub engine: Engine,
    /// By what tokens are verified.
    pub verifier: Verifier,
    /// Which names and pages it answers to.
    pub origins: Origins,
    /// How much is taken.
    pub limits: Limits,
    /// What time it is.
    pub clock: Clock,
    /// What went wrong here.
    pub log: Log,
    /// A line for every request.
    pub access_log: Option<Log>,
}

/// A server. Cloned for every request.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    memory: PathBuf,
    /// The notes about trust of the user who serves.
    approvals: Approvals,
    /// The database that the memory lies in, if it does.
    primary: Option<Arc<dyn Primary>>,
    skills_dir: PathBuf,
    settings: Settings,
    providers: Providers,
    spare_dir: PathBuf,
    random: fn() -> String,
    clock: Clock,
    verifier: Verifier,
    origins: Origins,
    limits: Limits,
    rates: Rates,
    slots: Arc<Semaphore>,
    /// Who writes next: few at a time and in order, where the lock of the directory would be a scramble
    /// of all.
    turns: Semaphore,
    metrics: Metrics,
    events: Events,
    log: Log,
    access_log: Option<Log>,
    stopping: watch::Sender<bool>,
}

impl Server {
    /// A server that has not begun yet.
    ///
    /// # Errors
    ///
    /// That the file system cannot say when something changes.
    pub fn new(options: Options) -> Result<Self, notify::Error> {
        let Options { engine, .. } = options;
        let events = Events::follow(
            engine.store.clone(),
            options.limits.listeners,
            Arc::clone(&options.log),
        )?;
        Ok(Self(Arc::new(Inner {
            memory: engine.store.directory().to_path_buf(),
            approvals: engine.store.approvals().clone(),
            primary: engine.store.primary().cloned(),
            skills_dir: engine.skills_dir,
            settings: engine.settings,
            providers: Providers {
                kept: Some(Kept::default()),
                ..engine.providers
            },
            spare_dir: engine.spare_dir,
            random: engine.random,
            clock: options.clock,
            verifier: options.verifier,
            origins: options.origins,
            rates: Rates::new(options.limits.rate),
            slots: Arc::new(Semaphore::new(options.limits.at_once)),
            turns: Semaphore::new(WRITERS),
            limits: options.limits,
            metrics: Metrics::default(),
            events,
            log: options.log,
            access_log: options.access_log,
            stopping: watch::Sender::new(false),
        })))
    }

    /// The memory, for this caller and this purpose, now: every request opens it here.
    fn engine(&self, caller: &Caller, why: &str) -> Engine {
        let now = self.now();
        let act = Act {
            who: caller.user.to_string(),
            why: why.to_owned(),
            at: now.to_rfc3339_opts(chrono::SecondsFormat::Micros, true),
            change: Act::change_name(&(self.0.random)()),
        };
        Engine {
            store: self.store(caller).at(now).acting(act),
            skills_dir: self.0.skills_dir.clone(),
            settings: self.0.settings.clone(),
            providers: self.0.providers.clone(),
            spare_dir: self.0.spare_dir.clone(),
            now,
            random: self.0.random,
        }
    }

    /// The same with what other copies of the memory have written until now. Waits.
    pub(super) fn caught_up(&self, caller: &Caller, why: &str) -> Result<Engine, engine::Error> {
        let engine = self.engine(caller, why);
        engine.catch_up()?;
        Ok(engine)
    }

    /// What a caller may see.
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

    /// Does something with the memory, on a thread that may wait.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        caller: &Caller,
        why: &'static str,
        work: impl FnOnce(&Engine) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let slot = self.slot().await?;
        let (server, caller) = (self.clone(), caller.clone());
        let done = tokio::task::spawn_blocking(move || {
            // Whoever asked may be gone: the thread is taken until the work is done.
            let _slot = slot;
            work(&server.caught_up(&caller, why)?)
        });
        done.await.unwrap_or_else(|error| {
            let message = "something went wrong";
            Err(Problem::fault("fault", message, error.to_string()))
        })
    }

    /// The same for what does nothing but write: few at a time, in the order in which they came.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        caller: &Caller,
        why: &'static str,
        work: impl FnOnce(&Engine) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = tokio::time::timeout(PATIENCE, self.0.turns.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            return Err(Problem::busy("too much is written", 1));
        };
        self.work(caller, why, work).await
    }

    /// The right to work with the memory, for as long as it is kept.
    pub(super) async fn slot(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let slots = Arc::clone(&self.0.slots);
        let slot = tokio::time::timeout(PATIENCE, slots.acquire_owned()).await;
        let Ok(Ok(slot)) = slot else {
            return Err(Problem::busy("too much is going on", 1));
        };
        if is_disabled(&Directory::at(&self.0.memory)) {
            return Err(Problem::disabled());
        }
        Ok(slot)
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

    pub(super) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(super) fn events(&self) -> &Events {
        &self.0.events
    }

    pub(super) fn log(&self, line: &str) {
        (self.0.log)(line);
    }

    pub(super) fn log_access(&self, line: impl FnOnce() -> String) {
        if let Some(log) = &self.0.access_log {
            log(&line());
        }
    }

    /// Tells whoever listens for long that the server stops.
    pub(super) fn stop(&self) {
        self.0.stopping.send_replace(true);
    }

    /// Becomes true when the server stops.
    pub(super) fn stopping(&self) -> watch::Receiver<bool> {
        self.0.stopping.subscribe()
    }
}
