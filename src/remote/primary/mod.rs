//! Primary store: memories in the database, with local files as copies.
//!
//! - `turn`: serialised writes.
//! - `join`: turns a directory into a copy.
//!
//! Callers of the store are blocking threads, and the sessions are asynchronous. A caller polls its
//! own request and parks until it can go on; one thread of the store serves the sockets of all. So a
//! callback that takes changes or events asks nothing of the store.
//!
//! Invariants: a login sees the rows of one user, and a memory is a part of these. A session is
//! used only if the database is the one that the copy was made from. A write whose answer comes too
//! late counts as failed; if it succeeded after all, the next fetch reads it.

mod join;
mod turn;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_executor::block_on;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Mutex, oneshot};

use crate::store::{self, Fetched, Primary, PrimaryChange, PrimaryName, Puller, SharedLine, Turn};

use super::address::Address;
use super::connection::Connection;
use super::error::Error;
use super::{SharedEmbedder, logs, migrate, sync};

pub use join::{JoinReport, has_memory, join};

/// Time limit for an answer of the database.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Time limit for the clock query of a read on an open session.
const CLOCK_WITHIN: Duration = Duration::from_secs(5);

/// Client of the database that is the primary store of a memory.
pub struct PgStore(Arc<Shared>);

/// State shared by the sessions of a store.
struct Shared {
    address: Address,
    name: PrimaryName,
    /// Session shared by all readers.
    reader: Mutex<Option<Arc<Connection>>>,
    /// Sessions of the last writer, reused by the next one.
    writer: Mutex<Option<turn::Sessions>>,
    /// `true` if records that have vectors were written, and not embedded since.
    has_new_texts: AtomicBool,
    handle: Handle,
    // Dropping the sender ends the runtime's thread.
    _alive: oneshot::Sender<()>,
}

impl fmt::Debug for PgStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PrimaryName { origin, shown, .. } = &self.0.name;
        write!(f, "{origin} in {shown}")
    }
}

impl PgStore {
    /// Store for memory `name` in the database at `address`. Logs in on first use.
    ///
    /// # Errors
    ///
    /// Fails if the system cannot start a thread or a runtime.
    pub fn new(address: Address, name: PrimaryName) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (alive, ended) = oneshot::channel::<()>();
        std::thread::Builder::new()
            .name("primary".to_owned())
            .spawn(move || {
                // Waits until the sender is dropped, which ends it with an error.
                drop(runtime.block_on(ended));
                runtime.shutdown_background();
            })?;
        Ok(Self(Arc::new(Shared {
            address,
            name,
            reader: Mutex::default(),
            writer: Mutex::default(),
            has_new_texts: AtomicBool::default(),
            handle,
            _alive: alive,
        })))
    }

    /// Returns `true` if a session is open.
    pub fn is_connected(&self) -> bool {
        let reader = self.0.reader.try_lock();
        reader.is_ok_and(|open| open.as_ref().is_some_and(|open| !open.client.is_closed()))
    }

    /// Embeds the texts that this process has written, until the time limit; `open` opens the embedder if there are
    /// some. Failed texts stay for the next writer, or for `memctl sync`.
    pub fn embed_written(
        &self,
        open: impl FnOnce() -> Result<Arc<SharedEmbedder>, store::Error>,
        limit: Duration,
    ) -> Result<(), store::Error> {
        let shared = &*self.0;
        if !shared.has_new_texts.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let embedder = open()?;
        let (address, origin) = (&shared.address, &shared.name.origin);
        let on = &mut |_| {};
        let filled = sync::fill_vectors(address, origin, &embedder, limit, on);
        shared.wait(filled).map(drop)
    }

    /// Runs work with the session for reads and the name of the memory, and blocks until it is done.
    fn read<T>(
        &self,
        work: impl AsyncFnOnce(&Connection, &str) -> Result<T, Error>,
    ) -> Result<T, store::Error> {
        let shared = &*self.0;
        shared.ask(ANSWER_WITHIN, async {
            let reader = shared.reader().await?;
            work(&reader, &shared.name.origin).await
        })
    }
}

/// Ends with an error if a future is not done within a time limit.
pub(super) async fn within<T>(
    limit: Duration,
    future: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let done = tokio::time::timeout(limit, future).await;
    done.unwrap_or(Err(Error::NoAnswer))
}

impl Shared {
    /// Runs a future on the calling thread, which blocks until it is done.
    fn wait<T>(&self, future: impl Future<Output = Result<T, Error>>) -> Result<T, store::Error> {
        let _runtime = self.handle.enter();
        block_on(future).map_err(Into::into)
    }

    /// As [`Self::wait`], with a time limit.
    fn ask<T>(
        &self,
        limit: Duration,
        future: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, store::Error> {
        self.wait(within(limit, future))
    }

    /// Opens a session. Fails unless the database is the one that holds this memory.
    async fn open(&self) -> Result<Connection, Error> {
        let connection = Connection::open(&self.address).await?;
        migrate::demand(&connection).await?;
        if connection.name().await? != self.name.database {
            let (shown, origin) = (self.address.shown(), &self.name.origin);
            return Err(Error::stopped(
                format!("`{shown}` is not the database of the memory `{origin}`"),
                "set MEMCTL_DATABASE_URL to the URL used for `remote join`, or: memctl remote leave",
            ));
        }
        Ok(connection)
    }

    /// Open session for reads.
    async fn reader(&self) -> Result<Arc<Connection>, Error> {
        let mut reader = self.reader.lock().await;
        if let Some(open) = reader.as_ref().filter(|open| !open.client.is_closed()) {
            return Ok(Arc::clone(open));
        }
        let opened = Arc::new(self.open().await?);
        *reader = Some(Arc::clone(&opened));
        Ok(opened)
    }

    async fn clock(&self) -> Result<i64, Error> {
        let reader = self.reader().await?;
        let first = tokio::time::timeout(CLOCK_WITHIN, join::clock(&reader)).await;
        if let Ok(Ok(clock)) = first {
            return Ok(clock);
        }
        // The server may have restarted, or the connection may be dead. The query is safe to
        // repeat.
        self.reader.lock().await.take();
        join::clock(&*self.reader().await?).await
    }
}

impl Primary for PgStore {
    fn clock(&self) -> Result<i64, store::Error> {
        self.0.ask(ANSWER_WITHIN, self.0.clock())
    }

    fn changes(
        &self,
        after: i64,
        take: &mut dyn FnMut(Vec<PrimaryChange>) -> Result<(), store::Error>,
    ) -> Result<Fetched, store::Error> {
        let shared = &*self.0;
        shared.wait(async {
            let reader = within(ANSWER_WITHIN, shared.reader()).await?;
            let take = &mut |batch| Ok(take(batch)?);
            join::changes(&reader, &shared.name.origin, after, take).await
        })
    }

    fn take_in_others(&self, puller: &Puller) -> Result<(), store::Error> {
        let shared = &*self.0;
        shared.wait(async {
            let reader = within(ANSWER_WITHIN, shared.reader()).await?;
            if sync::take_in_others(&reader, puller).await? {
                shared.has_new_texts.store(true, Ordering::Relaxed);
            }
            Ok(())
        })
    }

    fn switch_user(&self, user: &str, is_disabled: bool) -> Result<(), store::Error> {
        self.read(async |reader, origin| join::put(reader, origin, user, is_disabled).await)
    }

    fn put_logs(&self, lines: &[String]) -> Result<(), store::Error> {
        self.read(async |reader, origin| logs::put_actions(reader, origin, lines).await)
    }

    fn newest_logs(
        &self,
        sessions: Option<&[String]>,
        user: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, store::Error> {
        let sessions = sessions.unwrap_or_default();
        self.read(async |reader, origin| {
            logs::newest_actions(reader, origin, sessions, user, limit).await
        })
    }

    fn delete_logs(&self, user: Option<&str>) -> Result<(), store::Error> {
        self.read(async |reader, origin| logs::delete_actions(reader, origin, user).await)
    }

    fn put_audit(&self, lines: &[SharedLine]) -> Result<(), store::Error> {
        self.read(async |reader, origin| logs::put_events(reader, origin, lines).await)
    }

    fn audit(&self, take: &mut dyn FnMut(SharedLine)) -> Result<(), store::Error> {
        let shared = &*self.0;
        shared.wait(async {
            let reader = within(ANSWER_WITHIN, shared.reader()).await?;
            logs::events(&reader, &shared.name.origin, take).await
        })
    }

    fn prepare(&self) -> Result<(), store::Error> {
        self.0.ask(ANSWER_WITHIN, turn::Sessions::prepare(&self.0))
    }

    fn turn(&self, limit: Duration) -> Result<Box<dyn Turn>, store::Error> {
        let taking = turn::Sessions::take(&self.0, limit);
        let sessions = self.0.ask(limit + ANSWER_WITHIN, taking)?;
        Ok(Box::new(turn::PgTurn {
            shared: Arc::clone(&self.0),
            sessions: Some(sessions),
            began_after: None,
        }))
    }
}
