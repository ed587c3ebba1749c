//! Primary store: memories in the database, with local files as copies.
//!
//! - `turn`: serialised writes.
//! - `join`: turns a directory into a copy. `logs`: log of agents.
//!
//! Callers of the store are blocking threads, and the sessions are asynchronous. So the store owns
//! a runtime with one thread, on which its sessions run.
//!
//! Invariants: a login sees the rows of one user, and a memory is a part of these. A session is
//! used only if the database is the one that the copy was made from. A write whose answer comes too
//! late counts as failed; if it succeeded after all, the next fetch reads it.

mod join;
mod logs;
mod turn;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::{Mutex, oneshot};

use crate::model::Kind;
use crate::store::{self, Fault, Fetched, Primary, PrimaryChange, PrimaryName, SharedLine, Turn};

use super::address::Address;
use super::connection::Connection;
use super::error::Error;
use super::sync::OnSync;
use super::{SharedEmbedder, audit, migrate, sync};

pub use join::{JoinReport, has_memory, join};
pub(super) use logs::send_missing;

/// Time limit for an answer of the database.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Time limit for the clock query of a read on an open session.
const CLOCK_WITHIN: Duration = Duration::from_secs(5);

/// Client of the database that is the primary store of a memory.
pub struct PgStore {
    shared: Arc<Shared>,
    handle: Handle,
    // Dropping the sender ends the runtime's thread.
    _alive: oneshot::Sender<()>,
}

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
}

impl fmt::Debug for PgStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} in {}",
            self.shared.name.origin, self.shared.name.shown
        )
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
        Ok(Self {
            shared: Arc::new(Shared {
                address,
                name,
                reader: Mutex::default(),
                writer: Mutex::default(),
                has_new_texts: AtomicBool::default(),
            }),
            handle,
            _alive: alive,
        })
    }

    /// Runs a future that sends batches, and passes each to `take`. The limit holds for each batch.
    fn stream<B, T, E>(
        &self,
        sending: impl Future<Output = Result<T, Error>> + Send + 'static,
        mut batches: tokio::sync::mpsc::Receiver<B>,
        take: &mut dyn FnMut(B) -> Result<(), E>,
        failed: impl Fn(Fault) -> E,
    ) -> Result<T, E>
    where
        B: Send + 'static,
        T: Send + 'static,
    {
        let handle = &self.handle;
        let sending = handle.spawn(sending);
        loop {
            let (batch, back) = ask(handle, ANSWER_WITHIN, async move {
                Ok((batches.recv().await, batches))
            })
            .map_err(&failed)?;
            batches = back;
            match batch {
                Some(batch) => take(batch)?,
                None => break,
            }
        }
        ask(handle, ANSWER_WITHIN, async move {
            sending.await.unwrap_or(Err(Error::NoAnswer))
        })
        .map_err(failed)
    }

    /// Returns `true` if a session is open.
    pub fn is_connected(&self) -> bool {
        let reader = self.shared.reader.try_lock();
        reader.is_ok_and(|open| open.as_ref().is_some_and(|open| !open.client.is_closed()))
    }

    /// Embeds the texts that this process has written, until the time limit; `open` opens the embedder if there are
    /// some. What fails stays for the next writer, or for `memctl sync`.
    pub fn embed_written(
        &self,
        open: impl FnOnce() -> Result<Arc<SharedEmbedder>, Fault>,
        limit: Duration,
    ) -> Result<(), Fault> {
        if !self.shared.has_new_texts.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let embedder = open()?;
        let Shared { address, name, .. } = &*self.shared;
        let vectorise = &mut |texts: &[String]| embedder.vectors(texts);
        let (origin, model) = (&name.origin, embedder.name());
        let on: OnSync<'_> = &mut |_| {};
        let filled = sync::fill_vectors(address, origin, model, limit, vectorise, on);
        // On this thread: the embedder blocks, which must not hold up the sessions.
        self.handle.block_on(filled)?;
        Ok(())
    }

    /// Runs work with the session for reads and the name of the memory, and blocks until it is done.
    fn with_reader<T, F>(
        &self,
        work: impl FnOnce(Arc<Connection>, String) -> F + Send + 'static,
    ) -> Result<T, Fault>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send,
    {
        let shared = Arc::clone(&self.shared);
        self.ask(async move {
            let reader = shared.reader().await?;
            work(reader, shared.name.origin.clone()).await
        })
    }

    /// Runs a future on the store's runtime and blocks until it is done.
    fn ask<T, F>(&self, future: F) -> Result<T, Fault>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        ask(&self.handle, ANSWER_WITHIN, future)
    }
}

/// Runs a future on a runtime and blocks the calling thread until it is done or the limit is over.
fn ask<T, F>(handle: &Handle, limit: Duration, future: F) -> Result<T, Fault>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    let (send, receive) = mpsc::sync_channel(1);
    handle.spawn(async move {
        let done = tokio::time::timeout(limit, future).await;
        drop(send.send(done.unwrap_or(Err(Error::NoAnswer))));
    });
    let answer = receive.recv().unwrap_or(Err(Error::NoAnswer));
    answer.map_err(Into::into)
}

impl Shared {
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
    fn clock(&self) -> Result<i64, Fault> {
        let shared = Arc::clone(&self.shared);
        self.ask(async move { shared.clock().await })
    }

    fn changes(
        &self,
        after: i64,
        take: &mut dyn FnMut(Vec<PrimaryChange>) -> Result<(), store::Error>,
    ) -> Result<Fetched, store::Error> {
        let (send, receive) = tokio::sync::mpsc::channel::<Vec<PrimaryChange>>(2);
        let shared = Arc::clone(&self.shared);
        let fetching = async move {
            let reader = shared.reader().await?;
            join::changes(&reader, &shared.name.origin, after, &send).await
        };
        self.stream(fetching, receive, take, store::Error::Primary)
    }

    fn switch_user(&self, user: &str, is_disabled: bool) -> Result<(), Fault> {
        let user = user.to_owned();
        self.with_reader(move |reader, origin| async move {
            join::put(&reader, &origin, &user, is_disabled).await
        })
    }

    fn put_vector(
        &self,
        kind: Kind,
        id: &str,
        embedder: &str,
        vector: &[f32],
    ) -> Result<(), Fault> {
        let (id, embedder, vector) = (id.to_owned(), embedder.to_owned(), vector.to_vec());
        self.with_reader(move |reader, origin| async move {
            sync::put_vector(&reader, (&origin, kind, &id), &embedder, &vector).await
        })
    }

    fn put_logs(&self, lines: &[String]) -> Result<(), Fault> {
        let lines = lines.to_vec();
        self.with_reader(|reader, origin| async move { logs::put(&reader, &origin, &lines).await })
    }

    fn newest_logs(
        &self,
        sessions: Option<&[String]>,
        user: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, Fault> {
        let sessions = sessions.unwrap_or_default().to_vec();
        let user = user.map(str::to_owned);
        self.with_reader(move |reader, origin| async move {
            logs::newest(&reader, &origin, &sessions, user.as_deref(), limit).await
        })
    }

    fn delete_logs(&self, user: Option<&str>) -> Result<(), Fault> {
        let user = user.map(str::to_owned);
        self.with_reader(|reader, origin| async move {
            logs::delete(&reader, &origin, user.as_deref()).await
        })
    }

    fn put_audit(&self, lines: &[SharedLine]) -> Result<(), Fault> {
        let lines = lines.to_vec();
        self.with_reader(|reader, origin| async move { audit::put(&reader, &origin, &lines).await })
    }

    fn audit(&self, take: &mut dyn FnMut(SharedLine)) -> Result<(), Fault> {
        let (send, receive) = tokio::sync::mpsc::channel::<Vec<SharedLine>>(2);
        let shared = Arc::clone(&self.shared);
        let fetching = async move {
            let reader = shared.reader().await?;
            audit::all(&reader, &shared.name.origin, &send).await
        };
        let mut take = |batch: Vec<SharedLine>| {
            batch.into_iter().for_each(&mut *take);
            Ok(())
        };
        self.stream(fetching, receive, &mut take, |fault| fault)
    }

    fn prepare(&self) -> Result<(), Fault> {
        let shared = Arc::clone(&self.shared);
        self.ask(async move { turn::Sessions::prepare(&shared).await })
    }

    fn turn(&self, limit: Duration) -> Result<Box<dyn Turn>, Fault> {
        let shared = Arc::clone(&self.shared);
        let sessions = ask(&self.handle, limit + ANSWER_WITHIN, async move {
            turn::Sessions::take(&shared, limit).await
        })?;
        Ok(Box::new(turn::PgTurn {
            handle: self.handle.clone(),
            shared: Arc::clone(&self.shared),
            sessions: Some(sessions),
        }))
    }
}
