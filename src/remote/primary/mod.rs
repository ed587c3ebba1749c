//! Primary store: memories in the database, with local files as copies.
//!
//! - `sessions`: open sessions, and the state that they share. `turn`: serialised writes.
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
mod sessions;
mod turn;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::store::{self, Fetched, Primary, PrimaryChange, PrimaryName, Puller, SharedLine, Turn};

use super::address::Address;
use super::connection::{ANSWER_WITHIN, Connection, within};
use super::error::Error;
use super::logs;
use super::sync::{self, SharedEmbedder};
use sessions::{Sessions, Shared};

pub use join::{JoinReport, has_memory, join};

/// Client of the database that is the primary store of a memory.
pub struct PgStore(Arc<Shared>);

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
        let shared = Shared::start(address, name)?;
        Ok(Self(Arc::new(shared)))
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
        self.0.ask(ANSWER_WITHIN, Sessions::prepare(&self.0))
    }

    fn turn(&self, limit: Duration) -> Result<Box<dyn Turn>, store::Error> {
        let taking = Sessions::take(&self.0, limit);
        let sessions = self.0.ask(limit + ANSWER_WITHIN, taking)?;
        Ok(Box::new(turn::PgTurn {
            shared: Arc::clone(&self.0),
            sessions: Some(sessions),
            began_after: None,
        }))
    }
}
