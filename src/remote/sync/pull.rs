//! What others have sent comes here: every change after the last one that is here, in its order.

use std::collections::BTreeMap;

use futures_util::TryStreamExt as _;
use tokio_postgres::types::ToSql;

use crate::model::Kind;
use crate::store::{PulledChange, Puller, is_origin};

use super::super::connection::Connection;
use super::super::error::Error;
use super::manifest::ORDER;
use super::state::State;
use super::tables::table;
use super::{OnSync, Shrinking, SyncReport, SyncStage};

/// So many rows, or so many bytes of them, are stored at once.
const ROWS: usize = 5_000;
const BYTES: usize = 8 << 20;

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
                   and origin <> $3 and deleted_at is not null"
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
        })
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
        let (mut done, mut refused) = (0, 0);
        let mut state = plan.state.clone();
        let failed = connection.failed("what others have sent cannot be read");
        for KindPlan { kind, until, .. } in &plan.kinds {
            let name = table(*kind).name;
            let after = state.reached(&plan.database, name);
            let query = format!(
                "select seq, origin, entry_id, entry from public.{name}
                 where user_id = (select memctl.current_user_id()) and seq > $1 and seq <= $2 and origin <> $3
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
                    refused += self.store(&batch, *kind, report)?;
                    state.reach(&plan.database, name, row.get(0));
                    state.keep(self.puller)?;
                    batch = Batch::default();
                    on(SyncStage::Pulled(done, total));
                }
            }
            refused += self.store(&batch, *kind, report)?;
            // Behind what came lies what is this workspace's own: it need not be looked at again.
            state.reach(&plan.database, name, *until);
            on(SyncStage::Pulled(done, total));
        }
        if state != plan.state {
            state.keep(self.puller)?;
        }
        if refused > 0 {
            report.warnings.push(format!(
                "{refused} rows of others are no records with the id that they claim, and were left there"
            ));
        }
        Ok(())
    }

    /// Stores a batch; answers how many rows of it are no records.
    fn store(&self, batch: &Batch, kind: Kind, report: &mut SyncReport) -> Result<u64, Error> {
        let mut refused = 0;
        for (origin, changes) in &batch.changes {
            if !is_origin(origin) {
                refused += changes.len() as u64;
                continue;
            }
            let count = self.puller.apply(origin, kind, changes)?;
            let moved = report.of(kind);
            moved.pulled += count.added + count.changed;
            moved.pull_removed += count.removed;
            refused += count.refused;
        }
        Ok(refused)
    }
}

impl PullPlan {
    /// What would go from this memory.
    pub(super) fn shrinking(&self) -> Shrinking {
        self.shrinking
    }

    /// Says what would be done.
    pub(super) fn count(&self, report: &mut SyncReport) {
        for plan in &self.kinds {
            let moved = report.of(plan.kind);
            moved.pulled = plan.records;
            moved.pull_removed = plan.removals;
        }
    }
}

/// Changes that are stored together, by the workspace that they are of.
#[derive(Debug, Default)]
struct Batch {
    changes: BTreeMap<String, Vec<PulledChange>>,
    rows: usize,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, origin: String, id: String, text: Option<String>) {
        self.rows += 1;
        self.bytes += text.as_ref().map_or(0, String::len);
        self.changes
            .entry(origin)
            .or_default()
            .push(PulledChange { id, text });
    }

    fn is_full(&self) -> bool {
        self.rows >= ROWS || self.bytes >= BYTES
    }
}
