//! Sessions of a memory in the database: one for all readers, and two for a writer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_executor::block_on;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Mutex, oneshot};
use tokio_postgres::Statement;
use tokio_postgres::error::SqlState;

use crate::remote::address::Address;
use crate::remote::connection::{Connection, typed, within};
use crate::remote::error::Error;
use crate::remote::migrate;
use crate::store::{self, PrimaryName};

use super::join;

/// Time limit for the clock query of a read on an open session.
const CLOCK_WITHIN: Duration = Duration::from_secs(5);

/// Maximum duration of a turn without a statement on the locking session. The other session writes
/// and detects a lost turn.
const LONGEST_TURN: Duration = Duration::from_mins(10);

/// State shared by the sessions of a store.
pub(super) struct Shared {
    pub(super) address: Address,
    pub(super) name: PrimaryName,
    /// Session shared by all readers.
    pub(super) reader: Mutex<Option<Arc<Connection>>>,
    /// Sessions of the last writer, reused by the next one.
    pub(super) writer: Mutex<Option<Sessions>>,
    /// `true` if records that have vectors were written, and not embedded since.
    pub(super) has_new_texts: AtomicBool,
    handle: Handle,
    // Dropping the sender ends the runtime's thread.
    _alive: oneshot::Sender<()>,
}

impl Shared {
    /// State without a session. Starts the thread that serves the sockets.
    pub(super) fn start(address: Address, name: PrimaryName) -> std::io::Result<Self> {
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
            address,
            name,
            reader: Mutex::default(),
            writer: Mutex::default(),
            has_new_texts: AtomicBool::default(),
            handle,
            _alive: alive,
        })
    }

    /// Runs a future on the calling thread, which blocks until it is done.
    pub(super) fn wait<T>(
        &self,
        future: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, store::Error> {
        let _runtime = self.handle.enter();
        block_on(future).map_err(Into::into)
    }

    /// As [`Self::wait`], with a time limit.
    pub(super) fn ask<T>(
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
    pub(super) async fn reader(&self) -> Result<Arc<Connection>, Error> {
        let mut reader = self.reader.lock().await;
        if let Some(open) = reader.as_ref().filter(|open| !open.client.is_closed()) {
            return Ok(Arc::clone(open));
        }
        let opened = Arc::new(self.open().await?);
        *reader = Some(Arc::clone(&opened));
        Ok(opened)
    }

    pub(super) async fn clock(&self) -> Result<i64, Error> {
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

/// Sessions of a writer.
pub(super) struct Sessions {
    pub(super) lock: Connection,
    pub(super) data: Connection,
    /// Prepared statements of the second session, by their SQL.
    pub(super) statements: HashMap<String, Statement>,
}

impl Sessions {
    /// Logs in ahead of the next writer, unless open sessions exist.
    pub(super) async fn prepare(shared: &Shared) -> Result<(), Error> {
        let mut open = shared.writer.lock().await;
        if !open.as_ref().is_some_and(Self::is_open) {
            *open = Some(Self::open(shared).await?);
        }
        Ok(())
    }

    async fn open(shared: &Shared) -> Result<Self, Error> {
        let (lock, data) = tokio::try_join!(shared.open(), shared.open())?;
        Ok(Self {
            lock,
            data,
            statements: HashMap::new(),
        })
    }

    fn is_open(&self) -> bool {
        !self.lock.client.is_closed() && !self.data.client.is_closed()
    }

    /// Waits for the write lock, at most `limit`.
    pub(super) async fn take(shared: &Shared, limit: Duration) -> Result<Self, Error> {
        let open = shared.writer.lock().await.take();
        if let Some(sessions) = open.filter(Self::is_open) {
            match sessions.begin(shared, limit).await {
                // The sessions were dead, for example after a restart of the server.
                Err(Error::Statement { .. }) => {}
                begun => return begun.map(|()| sessions),
            }
        }
        let sessions = Self::open(shared).await?;
        sessions.begin(shared, limit).await?;
        Ok(sessions)
    }

    async fn begin(&self, shared: &Shared, limit: Duration) -> Result<(), Error> {
        let failed = self.lock.failed("the turn to write cannot be had");
        let client = &self.lock.client;
        // A finished turn has ended its transaction; an interrupted one may not have.
        let begin = format!(
            "rollback; begin; set local lock_timeout = {}; set local idle_in_transaction_session_timeout = {}",
            limit.as_millis().max(1),
            LONGEST_TURN.as_millis()
        );
        let origin = &shared.name.origin;
        let parameters = typed(&[origin]);
        let turn = client.query_typed(
            "select tombstone_key is not null from memctl.origins
             where user_id = (select memctl.current_user_id()) and origin = $1 for update",
            &parameters,
        );
        let (is_open, row) = tokio::join!(client.batch_execute(&begin), turn);
        is_open.map_err(&failed)?;
        match row {
            Ok(rows) if rows.first().is_some_and(|row| row.get(0)) => Ok(()),
            Ok(_) => Err(Error::stopped(
                format!("memory `{origin}` not found in the database"),
                format!("memctl remote leave, then memctl remote join {origin}"),
            )),
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                let waited = limit.as_millis();
                Err(Error::stopped(
                    format!("another program has been writing to `{origin}` for {waited} ms"),
                    "wait for the other program, or end it",
                ))
            }
            Err(error) => Err(failed(error)),
        }
    }
}
