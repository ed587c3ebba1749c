//! Push: sends the records of this workspace to the shared store.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use crate::model::Kind;
use crate::store::{Positions, Scoped};

use super::super::connection::{Connection, failure};
use super::super::error::Error;
use super::super::locks::Shrinking;
use super::plan::{Comparison, Plan};
use super::plan::{Manifest, ORDER};
use super::push_batch::{Batch, MAX_ROWS, Missed, read_batches};
use super::push_statements::Statements;
use super::tables::{RowUser, Table, table};
use super::{OnSync, SyncReport, SyncStage};

/// Number of batches that are sent before the first of them is stored.
const IN_FLIGHT: usize = 2;
/// Number of compared records between two progress reports.
const STEP: u64 = 4_096;
const CANNOT_COMPARE: &str = "the rows cannot be compared";

/// Plan per kind, with the file positions that it refers to.
#[derive(Debug)]
pub(super) struct Plans {
    user: RowUser,
    kinds: Vec<(Kind, Positions, Plan)>,
}

/// Compares local records with the shared store. Records of a kind that has no row there are not
/// read for it: all of them are to be sent.
pub(super) async fn plan(
    connection: &Connection,
    store: &Scoped,
    user: RowUser,
    report: &mut SyncReport,
    on: OnSync<'_>,
) -> Result<Plans, Error> {
    let mut kinds = Vec::new();
    let positions: Result<Vec<_>, _> = ORDER.iter().map(|kind| store.positions(*kind)).collect();
    let positions = positions?;
    let total: u64 = positions.iter().map(|p| p.len() as u64).sum();
    let (mut done, mut unfit) = (0, 0);
    for (kind, positions) in ORDER.into_iter().zip(positions) {
        // A plan that is only shown says how many records are fit, and so reads them.
        let may_skip = !report.dry_run && !kind.may_expire();
        let plan = if may_skip && !has_rows(connection, kind, &report.origin).await? {
            done += positions.len() as u64;
            on(SyncStage::Compared(done, total));
            Plan::of_all(positions.places())
        } else {
            let manifest = super::plan::manifest(&positions, &mut || {
                done += 1;
                if done % STEP == 0 {
                    on(SyncStage::Compared(done, total));
                }
            })?;
            unfit += manifest.unfit;
            compare(connection, kind, user, &report.origin, manifest).await?
        };
        kinds.push((kind, positions, plan));
    }
    warn_of_unfit(unfit, report);
    Ok(Plans { user, kinds })
}

/// Returns `true` if this workspace has sent records of a kind before.
async fn has_rows(connection: &Connection, kind: Kind, origin: &str) -> Result<bool, Error> {
    let Table { name, holder, .. } = table(kind);
    let query = format!(
        "select exists (select from public.{name}
         where {holder} = (select memctl.current_user_id()) and origin = $1)"
    );
    let row = connection.client.query_one(&query, &[&origin]).await;
    Ok(row.map_err(connection.failed(CANNOT_COMPARE))?.get(0))
}

/// Compares the records of a manifest with the rows of this workspace.
async fn compare(
    connection: &Connection,
    kind: Kind,
    user: RowUser,
    origin: &str,
    manifest: Manifest,
) -> Result<Plan, Error> {
    let mut comparison = Comparison::new(manifest);
    let Table { name, holder, .. } = table(kind);
    // Rows that may belong to another user than the login are sent again, which sets the user.
    let hash = if user == RowUser::Record && kind.has_user() {
        "''"
    } else {
        "left(hash, 16)"
    };
    let query = format!(
        "select entry_id, {hash} from public.{name}
         where {holder} = (select memctl.current_user_id()) and origin = $1 and deleted_at is null"
    );
    let failed = connection.failed(CANNOT_COMPARE);
    let parameters: [&(dyn ToSql + Sync); 1] = [&origin];
    let rows = connection.client.query_raw(&query, parameters);
    let rows = rows.await.map_err(&failed)?;
    let mut rows = std::pin::pin!(rows);
    while let Some(row) = rows.try_next().await.map_err(&failed)? {
        let (id, hash): (&str, &str) = (row.get(0), row.get(1));
        comparison.meet(id, u64::from_str_radix(hash, 16).unwrap_or_default());
    }
    Ok(comparison.finish())
}

fn warn_of_unfit(unfit: u64, report: &mut SyncReport) {
    if unfit > 0 {
        report.warnings.push(format!(
            "not shared, for lack of an id of plain letters and digits, or of text: {unfit} of the records"
        ));
    }
}

impl Plans {
    /// Removals in this plan.
    pub(super) fn shrinking(&self) -> Shrinking {
        let plans = || self.kinds.iter().map(|(_, _, plan)| plan);
        Shrinking {
            going: plans().map(|plan| plan.remove.len() as u64).sum(),
            of: plans().map(|plan| plan.there).sum(),
            is_remote: true,
        }
    }

    /// Adds the planned numbers to the report.
    pub(super) fn count(&self, report: &mut SyncReport) {
        for (kind, _, plan) in &self.kinds {
            let moved = report.of(*kind);
            moved.pushed = plan.send.len() as u64;
            moved.push_removed = plan.remove.len() as u64;
        }
    }

    /// Executes the plan. A thread reads and redacts the next records while the database stores those before.
    pub(super) async fn carry_out(
        self,
        connection: &mut Connection,
        report: &mut SyncReport,
        on: OnSync<'_>,
    ) -> Result<(), Error> {
        let plans = self.kinds.iter().map(|(_, _, plan)| plan);
        let total = plans.map(|plan| plan.send.len() as u64).sum();
        let user = self.user;
        let mut done = 0;
        let mut missed = Missed::default();
        for (kind, positions, plan) in self.kinds {
            let mut sent = 0;
            if !plan.send.is_empty() {
                let failed = connection.failed("records cannot be sent");
                let client = &connection.client;
                let statements = Statements::prepare(client, kind, user, plan.is_first).await;
                let statements = statements.map_err(&failed)?;
                let (sender, batches) = mpsc::channel(1);
                let places = plan.send;
                let reading = spawn_blocking(move || {
                    read_batches(kind, user, &positions, &places, &|batch| {
                        sender.blocking_send(batch).is_ok()
                    })
                });
                let stored = &mut |rows| {
                    sent += rows;
                    done += rows;
                    on(SyncStage::Pushed(done, total));
                };
                let storing = store(client, &statements, &report.origin, batches, stored);
                storing.await.map_err(&failed)?;
                let of_kind = reading.await.map_err(|_| Error::NoAnswer)??;
                missed.unfit += of_kind.unfit;
                missed.unreadable += of_kind.unreadable;
            }
            let mut removed = 0;
            for ids in plan.remove.chunks(MAX_ROWS) {
                removed += bury(connection, kind, &report.origin, ids).await?;
            }
            let moved = report.of(kind);
            moved.pushed = sent;
            moved.push_removed = removed;
        }
        warn_of_unfit(missed.unfit, report);
        if missed.unreadable > 0 {
            report.warnings.push(format!(
                "not shared, since they cannot be read: {} of the records; see `memctl doctor`",
                missed.unreadable
            ));
        }
        Ok(())
    }
}

/// Stores batches in their order, each in a transaction of its own. Calls `stored` with the number of rows
/// of each.
async fn store(
    client: &Client,
    statements: &Statements,
    origin: &str,
    mut batches: mpsc::Receiver<Batch>,
    stored: &mut dyn FnMut(u64),
) -> Result<(), tokio_postgres::Error> {
    let batches = stream::poll_fn(|task| batches.poll_recv(task));
    let storing = batches.map(|batch| async move {
        statements.store(client, origin, &batch).await?;
        Ok(batch.ids.len() as u64)
    });
    let mut storing = std::pin::pin!(storing.buffered(IN_FLIGHT));
    while let Some(rows) = storing.try_next().await? {
        stored(rows);
    }
    Ok(())
}

/// Turns the rows of removed records into tombstones. Returns their number.
async fn bury(
    connection: &mut Connection,
    kind: Kind,
    origin: &str,
    ids: &[String],
) -> Result<u64, Error> {
    let address = connection.address.clone();
    let failed = |e| failure(&address, "removals cannot be sent", &e);
    let statement = table(kind).bury();
    connection
        .client
        .execute(&statement, &[&origin, &ids, &vec![None::<&str>; ids.len()]])
        .await
        .map_err(failed)
}
