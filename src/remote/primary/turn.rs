//! Serialised writes to a memory in the database.
//!
//! A writer uses two sessions. The first holds the lock on the memory's row in a transaction that
//! lasts for the whole turn. The second stores records, in transactions that commit at once. The
//! lock orders the writers. If the first session dies, another writer can get the turn while the
//! second session still works. So every transaction checks for changes that this writer has not
//! read before it stores anything.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use tokio_postgres::Statement;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use crate::model::Kind;
use crate::store::{self, Reached, Turn};

use super::super::connection::{Connection, typed};
use super::super::error::Error;
use super::super::sync::{columns, has_rows_after, is_fit, parameters, row, table};
use super::join::{has_changed, last_change};
use super::{ANSWER_WITHIN, Shared};

/// Maximum number of rows per statement.
const ROWS: usize = 2_000;

/// Maximum duration of a turn without a statement on the locking session. The other session writes
/// and detects a lost turn.
const LONGEST_TURN: Duration = Duration::from_mins(10);

/// Sessions of a writer.
pub(super) struct Sessions {
    lock: Connection,
    data: Connection,
    /// Prepared statements of the second session, by their SQL.
    statements: HashMap<String, Statement>,
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

    /// Runs `statement` with each set of parameters, all in one transaction. Stores nothing and
    /// fails if rows were written after `base.after`.
    async fn store(
        &mut self,
        origin: &str,
        base: Base,
        statement: &str,
        all: &[Vec<&(dyn ToSql + Sync)>],
    ) -> Result<Reached, Error> {
        let failed = self.data.failed("records cannot be stored");
        let check = format!("select {}", has_changed());
        let check = self.prepared(&check).await?;
        let statement = self.prepared(statement).await?;
        // Rows that other programs have written during the turn are not in the files: the next reader asks.
        let is_behind = has_rows_after(|_| 1);
        let reached = format!(
            "select case when {is_behind} then 0 else memctl.clock() end, {}",
            last_change()
        );
        let reached = self.prepared(&reached).await?;
        let client = &self.data.client;
        // All statements are sent at once, and the server runs them in this order. The first blocks
        // other writers of this user's rows until the transaction ends.
        let opened = async {
            let begin = "rollback; begin; select memctl.begin_write()";
            client.batch_execute(begin).await.map_err(&failed)
        };
        let has_changed = async {
            let row = client.query_one(&check, &[&origin, &base.after]).await;
            Ok(row.map_err(&failed)?.get::<_, bool>(0))
        };
        let stored = all.iter().map(|parameters| async {
            let done = client.execute(&statement, parameters).await;
            done.map(drop).map_err(&failed)
        });
        let reached = async {
            let row = client
                .query_one(&reached, &[&base.began_after])
                .await
                .map_err(&failed)?;
            Ok(Reached {
                clock: row.get(0),
                seq: row.get(1),
            })
        };
        // The first error is the cause; those of later statements follow from it.
        let (opened, changed, stored, reached) =
            tokio::join!(opened, has_changed, join_all(stored), reached);
        let outcome = opened
            .and(changed)
            .and_then(|has_changed| {
                if has_changed {
                    return Err(Error::stopped(
                        format!(
                            "another program wrote to `{origin}` at the same time: nothing was stored"
                        ),
                        "run the command again",
                    ));
                }
                stored.into_iter().collect::<Result<(), _>>()
            })
            .and(reached);
        let end = if outcome.is_ok() {
            "commit"
        } else {
            "rollback"
        };
        let ended = client.batch_execute(end).await.map_err(&failed);
        let reached = outcome?;
        ended.map(|()| reached)
    }

    /// Prepares a statement on the writing session, once.
    async fn prepared(&mut self, sql: &str) -> Result<Statement, Error> {
        if let Some(prepared) = self.statements.get(sql) {
            return Ok(prepared.clone());
        }
        let failed = self.data.failed("records cannot be stored");
        let prepared = self.data.client.prepare(sql).await;
        let prepared = prepared.map_err(failed)?;
        self.statements.insert(sql.to_owned(), prepared.clone());
        Ok(prepared)
    }

    async fn put(
        &mut self,
        origin: &str,
        base: Base,
        kind: Kind,
        records: &[(&str, &str)],
    ) -> Result<Reached, Error> {
        let rows = records.iter().map(|(id, text)| {
            let fit = is_fit(id, text).then(|| row(kind, id, text));
            fit.ok_or_else(|| {
                let message = format!(
                    "{kind} `{}` cannot be stored in a database: its id must consist of letters, digits, \
                     `.`, `_` and `-`, and its text must not contain NUL",
                    id.escape_debug()
                );
                Error::input(message, "memctl doctor")
            })
        });
        let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
        let chunks: Vec<_> = rows.chunks(ROWS).map(columns).collect();
        let all: Vec<_> = chunks.iter().map(|of| parameters(&origin, of)).collect();
        let upsert = table(kind).upsert();
        self.store(origin, base, &upsert, &all).await
    }

    async fn bury(
        &mut self,
        origin: &str,
        base: Base,
        kind: Kind,
        removed: &[(String, String)],
    ) -> Result<Reached, Error> {
        let removed = removed.iter();
        let (ids, tombstones): (Vec<&str>, Vec<&str>) = removed
            .map(|(id, line)| (id.as_str(), line.as_str()))
            .unzip();
        let bury = table(kind).bury();
        let removed: [Vec<&(dyn ToSql + Sync)>; 1] = [vec![&origin, &ids, &tombstones]];
        self.store(origin, base, &bury, &removed).await
    }
}

/// Numbers of the changes that a write builds on.
#[derive(Debug, Clone, Copy)]
struct Base {
    /// Last change before the write.
    after: i64,
    /// Last change before the first write of the turn.
    began_after: i64,
}

/// Exclusive write access to a memory.
pub(super) struct PgTurn {
    pub(super) shared: Arc<Shared>,
    /// `None` after a failure, so that later writes of the turn cannot build on missing rows.
    pub(super) sessions: Option<Sessions>,
    /// Number of the last change before the first write of the turn.
    pub(super) began_after: Option<i64>,
}

impl std::fmt::Debug for PgTurn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a turn at {}", self.shared.name.origin)
    }
}

impl PgTurn {
    fn base(&mut self, after: i64) -> Base {
        Base {
            after,
            began_after: *self.began_after.get_or_insert(after),
        }
    }

    /// Runs `work` with the sessions and the name of the memory, and blocks until it is done.
    fn done(
        &mut self,
        work: impl AsyncFnOnce(&mut Sessions, &str) -> Result<Reached, Error>,
    ) -> Result<Reached, store::Error> {
        let mut sessions = self.sessions.take().ok_or(Error::NoAnswer)?;
        let origin = &self.shared.name.origin;
        let work = async { Ok(work(&mut sessions, origin).await) };
        let reached = self.shared.ask(ANSWER_WITHIN, work)?;
        self.sessions = Some(sessions);
        Ok(reached?)
    }
}

impl Turn for PgTurn {
    fn put(
        &mut self,
        after: i64,
        kind: Kind,
        records: &[(&str, &str)],
    ) -> Result<Reached, store::Error> {
        if table(kind).has_vector {
            self.shared.has_new_texts.store(true, Ordering::Relaxed);
        }
        let base = self.base(after);
        self.done(async |sessions, origin| sessions.put(origin, base, kind, records).await)
    }

    fn bury(
        &mut self,
        after: i64,
        kind: Kind,
        removed: &[(String, String)],
    ) -> Result<Reached, store::Error> {
        let base = self.base(after);
        self.done(async |sessions, origin| sessions.bury(origin, base, kind, removed).await)
    }
}

impl Drop for PgTurn {
    fn drop(&mut self) {
        let Some(sessions) = self.sessions.take() else {
            return;
        };
        let shared = &*self.shared;
        // Blocks, so that this rollback cannot end the transaction of the next turn.
        let ended = shared.ask(ANSWER_WITHIN, async move {
            let failed = sessions.lock.failed("the turn cannot be ended");
            let rollback = sessions.lock.client.batch_execute("rollback");
            rollback.await.map_err(failed)?;
            *shared.writer.lock().await = Some(sessions);
            Ok(())
        });
        // If the rollback fails, the sessions are closed, which ends the transaction.
        drop(ended);
    }
}
