//! What others have sent comes here: every change after the last one that is here, in its order.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::TryStreamExt as _;
use tokio_postgres::types::ToSql;

use crate::model::Kind;
use crate::store::{Puller, is_origin};

use super::super::connection::Connection;
use super::super::error::Error;
use super::manifest::ORDER;
use super::pull_batch::{Batch, Refused};
use super::state::State;
use super::tables::table;
use super::{OnSync, Shrinking, SyncReport, SyncStage};

/// Most removals that are looked up at once.
const ROWS: usize = 5_000;

/// Pulling for one workspace.
pub(super) struct Pull<'a> {
    pub(super) puller: &'a Puller,
    /// Its name: what is its own is not pulled.
    pub(super) origin: &'a str,
}

/// What there is to pull.
#[derive(Debug)]
pub(super) struct PullPlan {
    state: State,
    /// What the state calls the database.
    database: String,
    kinds: Vec<KindPlan>,
    shrinking: Shrinking,
    /// Origins of which everything is pulled again: a file of theirs here is damaged.
    again: BTreeSet<String>,
    warnings: Vec<String>,
}

#[derive(Debug)]
struct KindPlan {
    kind: Kind,
    /// The number of the table's last change; later ones are for the next time.
    until: i64,
    records: u64,
    /// Removals of records that are here.
    removals: u64,
}

impl Pull<'_> {
    /// Finds out what there is.
    pub(super) async fn plan(&self, connection: &Connection) -> Result<PullPlan, Error> {
        let state = State::read(self.puller);
        let database = connection.name().await?;
        let (again, warnings) = self.damaged(connection, &state).await?;
        let failed = connection.failed("what others have sent cannot be counted");
        let client = &connection.client;
        let mut kinds = Vec::new();
        for kind in ORDER {
            let name = table(kind).name;
            let after = state.reached(&database, name);
            let count = format!(
                "select coalesce(max(seq), 0), count(*) filter (where entry is not null and origin <> $2)
                 from public.{name} where user_id = (select memctl.current_user_id()) and seq > $1"
            );
            let row = client.query_one(&count, &[&after, &self.origin]).await;
            let row = row.map_err(&failed)?;
            let (until, records): (i64, i64) = (row.get(0), row.get(1));
            let gone = format!(
                "select origin, entry_id from public.{name}
                 where user_id = (select memctl.current_user_id()) and seq > $1 and seq <= $2
                   and origin <> $3 and deleted_at is not null and entry_id is not null"
            );
            let parameters: [&(dyn ToSql + Sync); 3] = [&after, &until, &self.origin];
            let rows = client.query_raw(&gone, parameters).await.map_err(&failed)?;
            let mut rows = std::pin::pin!(rows);
            let mut removals = 0;
            let mut ids: BTreeMap<String, Vec<String>> = BTreeMap::new();
            let mut waiting = 0;
            while let Some(row) = rows.try_next().await.map_err(&failed)? {
                ids.entry(row.get(0)).or_default().push(row.get(1));
                waiting += 1;
                if waiting == ROWS {
                    removals += self.held(kind, &ids)?;
                    ids.clear();
                    waiting = 0;
                }
            }
            removals += self.held(kind, &ids)?;
            kinds.push(KindPlan {
                kind,
                until,
                records: u64::try_from(records).unwrap_or_default(),
                removals,
            });
        }
        let shrinking = Shrinking {
            going: kinds.iter().map(|plan| plan.removals).sum(),
            of: self.puller.total()?,
            is_remote: false,
        };
        Ok(PullPlan {
            state,
            database,
            kinds,
            shrinking,
            again,
            warnings,
        })
    }

    /// Origins that have to be pulled again as a whole, and what is to be said of damage here.
    async fn damaged(
        &self,
        connection: &Connection,
        state: &State,
    ) -> Result<(BTreeSet<String>, Vec<String>), Error> {
        let mut again = state.again.clone();
        let mut warnings = Vec::new();
        for origin in self.puller.damaged() {
            if self.is_known(connection, &origin).await? {
                warnings.push(format!(
                    "a file of the workspace `{origin}` was damaged here: everything of it is pulled again"
                ));
                again.insert(origin);
            } else {
                // It came from another database: this one cannot make it whole.
                warnings.push(format!(
                    "a file of the workspace `{origin}` is damaged here, and `{}` has nothing of it",
                    connection.address.shown()
                ));
            }
        }
        Ok((again, warnings))
    }

    /// Whether the database has rows of an origin.
    async fn is_known(&self, connection: &Connection, origin: &str) -> Result<bool, Error> {
        let failed = connection.failed("the rows of a workspace cannot be looked for");
        for kind in ORDER {
            let any = format!(
                "select exists (select from public.{} where user_id = (select memctl.current_user_id()) and origin = $1)",
                table(kind).name
            );
            let row = connection.client.query_one(&any, &[&origin]).await;
            if row.map_err(&failed)?.get(0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How many of these records are here.
    fn held(&self, kind: Kind, ids: &BTreeMap<String, Vec<String>>) -> Result<u64, Error> {
        let mut held = 0;
        for (origin, ids) in ids.iter().filter(|(origin, _)| is_origin(origin)) {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            held += self.puller.count_held(origin, kind, &ids)?;
        }
        Ok(held)
    }

    /// Pulls it.
    pub(super) async fn carry_out(
        &self,
        connection: &Connection,
        plan: &PullPlan,
        report: &mut SyncReport,
        on: OnSync<'_>,
    ) -> Result<(), Error> {
        let total = plan.kinds.iter().map(|plan| plan.records).sum();
        let mut done = 0;
        let mut refused = Refused::default();
        let mut state = plan.state.clone();
        report.warnings.extend(plan.warnings.iter().cloned());
        self.pull_again(connection, plan, &mut state, report, &mut refused)
            .await?;
        let failed = connection.failed("what others have sent cannot be read");
        for KindPlan { kind, until, .. } in &plan.kinds {
            let name = table(*kind).name;
            let after = state.reached(&plan.database, name);
            let query = format!(
                "select seq, origin, entry_id, entry from public.{name}
                 where user_id = (select memctl.current_user_id()) and seq > $1 and seq <= $2 and origin <> $3
                   and entry_id is not null
                 order by seq"
            );
            let parameters: [&(dyn ToSql + Sync); 3] = [&after, until, &self.origin];
            let rows = connection.client.query_raw(&query, parameters).await;
            let mut rows = std::pin::pin!(rows.map_err(&failed)?);
            let mut batch = Batch::default();
            while let Some(row) = rows.try_next().await.map_err(&failed)? {
                batch.add(row.get(1), row.get(2), row.get(3));
                done += 1;
                if batch.is_full() {
                    self.store(&batch, *kind, report, &mut refused)?;
                    state.reach(&plan.database, name, row.get(0));
                    state.keep(self.puller)?;
                    batch = Batch::default();
                    on(SyncStage::Pulled(done, total));
                }
            }
            self.store(&batch, *kind, report, &mut refused)?;
            // Behind what came lies what is this workspace's own: it need not be looked at again.
            state.reach(&plan.database, name, *until);
            on(SyncStage::Pulled(done, total));
        }
        if state != plan.state {
            state.keep(self.puller)?;
        }
        report.warnings.extend(refused.told());
        Ok(())
    }

    /// Pulls everything of origins whose files here are damaged. That they are to be pulled is kept before
    /// anything is thrown away, and until all of it is here.
    async fn pull_again(
        &self,
        connection: &Connection,
        plan: &PullPlan,
        state: &mut State,
        report: &mut SyncReport,
        refused: &mut Refused,
    ) -> Result<(), Error> {
        if plan.again.is_empty() {
            return Ok(());
        }
        state.again.clone_from(&plan.again);
        state.keep(self.puller)?;
        let failed = connection.failed("what others have sent cannot be read");
        for origin in &plan.again {
            self.puller.discard(origin)?;
            for KindPlan { kind, until, .. } in &plan.kinds {
                // Where nothing is new, everything is from before.
                let until = (*until).max(state.reached(&plan.database, table(*kind).name));
                let query = format!(
                    "select origin, entry_id, entry from public.{}
                     where user_id = (select memctl.current_user_id()) and origin = $1 and seq <= $2
                       and entry is not null and entry_id is not null
                     order by seq",
                    table(*kind).name
                );
                let parameters: [&(dyn ToSql + Sync); 2] = [origin, &until];
                let rows = connection.client.query_raw(&query, parameters).await;
                let mut rows = std::pin::pin!(rows.map_err(&failed)?);
                let mut batch = Batch::default();
                while let Some(row) = rows.try_next().await.map_err(&failed)? {
                    batch.add(row.get(0), row.get(1), row.get(2));
                    if batch.is_full() {
                        self.store(&batch, *kind, report, refused)?;
                        batch = Batch::default();
                    }
                }
                self.store(&batch, *kind, report, refused)?;
            }
            state.again.remove(origin);
            state.keep(self.puller)?;
        }
        Ok(())
    }

    /// Stores a batch, and counts what of it is not fit to be stored.
    fn store(
        &self,
        batch: &Batch,
        kind: Kind,
        report: &mut SyncReport,
        refused: &mut Refused,
    ) -> Result<(), Error> {
        for (origin, changes) in &batch.changes {
            if !is_origin(origin) {
                *refused.origins.entry(origin.clone()).or_default() += changes.len() as u64;
                continue;
            }
            let count = self.puller.apply(origin, kind, changes)?;
            let moved = report.of(kind);
            moved.pulled += count.added + count.changed;
            moved.pull_removed += count.removed;
            refused.records += count.refused;
        }
        Ok(())
    }
}

impl PullPlan {
    /// What would go from this memory.
    pub(super) fn shrinking(&self) -> Shrinking {
        self.shrinking
    }

    /// Says what would be done.
    pub(super) fn count(&self, report: &mut SyncReport) {
        report.warnings.extend(self.warnings.iter().cloned());
        for plan in &self.kinds {
            let moved = report.of(plan.kind);
            moved.pulled = plan.records;
            moved.pull_removed = plan.removals;
        }
    }
}
