//! Serialised writes to a memory in the database.
//!
//! A writer uses two sessions. The first holds the lock on the memory's row in a transaction that
//! lasts for the whole turn. The second stores records, in transactions that commit at once. The
//! lock orders the writers. If the first session dies, another writer can get the turn while the
//! second session still works. So every transaction checks for changes that this writer has not
//! read before it stores anything.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;

use crate::model::Kind;
use crate::store::{self, Reached, Turn};

use super::super::connection::ANSWER_WITHIN;
use super::super::error::Error;
use super::super::sync::has_rows_after;
use super::super::tables::{columns, is_fit, parameters, row, table};
use super::join::{has_changed, last_change};
use super::sessions::{Sessions, Shared};

/// Maximum number of rows per statement.
const ROWS: usize = 2_000;

impl Sessions {
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
