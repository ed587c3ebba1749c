//! Memories that lie in the database: the store behind the files of every copy.
//!
//! - `turn`: writing, one program at a time. `fetch`: what others have written.
//! - `join`: making a directory a copy. `listen`: being told when there is something to fetch.
//!
//! The store is called by threads that wait, where all of this is asynchronous: it has a runtime of its own,
//! on one thread, on which its sessions live.
//!
//! Invariants: whoever logs in sees the rows of one user, and a memory is a part of these. A session is only
//! used where the database is the one that the copy was made of. What an answer came too late for counts as
//! failed, and is fetched if it was done all the same.

mod fetch;
mod join;
mod listen;
mod turn;

use std::fmt;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::{Mutex, oneshot};

use crate::store::{self, Fault, Primary, PrimaryChange, PrimaryName, Turn};

use super::address::Address;
use super::connection::Connection;
use super::error::Error;
use super::limits;
use super::migrate;

pub use join::{JoinReport, join};

/// How long the database may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// How long a session that was open may take to answer the question of every read.
const CLOCK_WITHIN: Duration = Duration::from_secs(5);

/// The database that a memory lies in.
pub struct PgStore {
    shared: Arc<Shared>,
    handle: Handle,
    // Dropping it ends the thread of the runtime.
    _alive: oneshot::Sender<()>,
}

/// What the sessions of a store have in common.
struct Shared {
    address: Address,
    name: PrimaryName,
    /// Many ask through this one at once.
    reader: Mutex<Option<Arc<Connection>>>,
    /// Those of the last writer, for the next one.
    writer: Mutex<Option<turn::Sessions>>,
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
    /// The memory of this name in the database at this address. Nobody logs in before something is asked.
    ///
    /// # Errors
    ///
    /// That the system has no thread for it.
    pub fn new(address: Address, name: PrimaryName) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (alive, ended) = oneshot::channel::<()>();
        std::thread::Builder::new()
            .name("primary".to_owned())
            .spawn(move || {
                // An error is what it waits for: that there is no sender any more.
                drop(runtime.block_on(ended));
                runtime.shutdown_background();
            })?;
        Ok(Self {
            shared: Arc::new(Shared {
                address,
                name,
                reader: Mutex::default(),
                writer: Mutex::default(),
            }),
            handle,
            _alive: alive,
        })
    }

    /// Waits for something that is done on the runtime of the store.
    fn ask<T, F>(&self, future: F) -> Result<T, Fault>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let address = self.shared.address.clone();
        ask(&self.handle, ANSWER_WITHIN, async move {
            limits::named(&address, future).await
        })
    }
}

/// Waits, on a thread that may, for something that is done on a runtime.
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
    /// A new session, with the database that this memory lies in and no other.
    async fn open(&self) -> Result<Connection, Error> {
        let connection = Connection::open(&self.address).await?;
        migrate::demand(&connection).await?;
        if connection.name().await? != self.name.database {
            return Err(Error::OtherDatabase {
                shown: self.address.shown(),
                origin: self.name.origin.clone(),
            });
        }
        Ok(connection)
    }

    /// The session that is read through.
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
        let first = tokio::time::timeout(CLOCK_WITHIN, fetch::clock(&reader)).await;
        if let Ok(Ok(clock)) = first {
            return Ok(clock);
        }
        // The server may have been started anew since, or be out of reach without a word: asking twice
        // changes nothing.
        self.reader.lock().await.take();
        fetch::clock(&*self.reader().await?).await
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
    ) -> Result<i64, store::Error> {
        let failed = store::Error::Primary;
        let handle = &self.handle;
        let (send, mut receive) = tokio::sync::mpsc::channel::<Vec<PrimaryChange>>(2);
        let shared = Arc::clone(&self.shared);
        let fetching = handle.spawn(async move {
            let reader = shared.reader().await?;
            fetch::changes(&reader, &shared.name.origin, after, &send).await
        });
        loop {
            let (batch, back) = ask(handle, ANSWER_WITHIN, async move {
                Ok((receive.recv().await, receive))
            })
            .map_err(failed)?;
            receive = back;
            match batch {
                Some(batch) => take(batch)?,
                None => break,
            }
        }
        ask(handle, ANSWER_WITHIN, async move {
            fetching.await.unwrap_or(Err(Error::NoAnswer))
        })
        .map_err(failed)
    }

    fn prepare(&self) -> Result<(), Fault> {
        let shared = Arc::clone(&self.shared);
        self.ask(async move { turn::Sessions::prepare(&shared).await })
    }

    fn turn(&self, limit: Duration) -> Result<Box<dyn Turn>, Fault> {
        let handle = self.handle.clone();
        let shared = Arc::clone(&self.shared);
        let sessions = ask(&handle, limit + ANSWER_WITHIN, async move {
            limits::named(&shared.address, turn::Sessions::take(&shared, limit)).await
        })?;
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(turn::PgTurn::new(handle, shared, sessions)))
    }
}
