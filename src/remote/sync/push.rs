//! Push: sends the records of this workspace to the shared store.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_postgres::types::ToSql;

use crate::model::Kind;
use crate::store::{Positions, Scoped};

use super::super::connection::{Connection, failure};
use super::super::error::Error;
use super::super::shrinking::Shrinking;
use super::manifest::{self, ORDER};
use super::plan::{Comparison, Plan};
use super::tables::{RowUser, Table, fields, fields_with_user, table};
use super::{OnSync, SyncReport, SyncStage};

/// Maximum number of rows and of bytes per transaction.
const ROWS: usize = 2_000;
const BYTES: usize = 4 << 20;
/// Number of batches that are sent before the first of them is stored.
const IN_FLIGHT: usize = 2;
/// Number of compared records between two progress reports.
const STEP: u64 = 4_096;

/// Plan per kind, with the file positions that it refers to.
#[derive(Debug)]
pub(super) struct Plans {
    user: RowUser,
    kinds: Vec<(Kind, Positions, Plan)>,
}

/// Compares local records with the shared store.
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
        let manifest = manifest::manifest(&positions, &mut || {
            done += 1;
            if done % STEP == 0 {
                on(SyncStage::Compared(done, total));
            }
        })?;
        unfit += manifest.unfit;
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
        let failed = connection.failed("the rows cannot be compared");
        let parameters: [&(dyn ToSql + Sync); 1] = [&report.origin];
        let rows = connection.client.query_raw(&query, parameters);
        let rows = rows.await.map_err(&failed)?;
        let mut rows = std::pin::pin!(rows);
        while let Some(row) = rows.try_next().await.map_err(&failed)? {
            let (id, hash): (&str, &str) = (row.get(0), row.get(1));
            comparison.meet(id, u64::from_str_radix(hash, 16).unwrap_or_default());
        }
        kinds.push((kind, positions, comparison.finish()));
    }
    if unfit > 0 {
        report.warnings.push(format!(
            "{unfit} records are not shared: they have no id of plain letters and digits, or no text"
        ));
    }
    Ok(Plans { user, kinds })
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
        let mut unreadable = 0;
        for (kind, positions, plan) in self.kinds {
            let mut sent = 0;
            if !plan.send.is_empty() {
                let (sender, batches) = mpsc::channel(1);
                let places = plan.send;
                let reading = spawn_blocking(move || {
                    read(kind, user, &positions, &places, &|batch| {
                        sender.blocking_send(batch).is_ok()
                    })
                });
                let stored = &mut |rows| {
                    sent += rows;
                    done += rows;
                    on(SyncStage::Pushed(done, total));
                };
                store(connection, kind, user, &report.origin, batches, stored).await?;
                unreadable += reading.await.map_err(|_| Error::NoAnswer)??;
            }
            let mut removed = 0;
            for ids in plan.remove.chunks(ROWS) {
                removed += bury(connection, kind, &report.origin, ids).await?;
            }
            let moved = report.of(kind);
            moved.pushed = sent;
            moved.push_removed = removed;
        }
        if unreadable > 0 {
            report.warnings.push(format!(
                "{unreadable} records are not shared, since they cannot be read: see `memctl doctor`"
            ));
        }
        Ok(())
    }
}

/// Reads the records at these places, and passes them on in batches until `take` returns `false`. Returns
/// the number of records that cannot be read.
fn read(
    kind: Kind,
    user: RowUser,
    positions: &Positions,
    places: &[u32],
    take: &dyn Fn(Batch) -> bool,
) -> Result<u64, Error> {
    let mut batch = Batch::default();
    let mut unreadable = 0;
    for place in places {
        let entry = positions.any_entry(*place)?.map(|(_, entry)| entry);
        let Some(outgoing) = entry.and_then(manifest::outgoing) else {
            continue;
        };
        let fields = match user {
            RowUser::Login => fields(kind, &outgoing.text),
            RowUser::Record => Some(fields_with_user(kind, &outgoing.text)),
        };
        match fields {
            Some(fields) => batch.add(outgoing, fields),
            None => unreadable += 1,
        }
        if batch.is_full() && !take(std::mem::take(&mut batch)) {
            // The receiver was dropped after an error, which it reports itself.
            return Ok(unreadable);
        }
    }
    if !batch.ids.is_empty() {
        take(batch);
    }
    Ok(unreadable)
}

/// Stores batches in their order, each in a transaction of its own. Calls `stored` with the number of rows
/// of each.
async fn store(
    connection: &Connection,
    kind: Kind,
    user: RowUser,
    origin: &str,
    mut batches: mpsc::Receiver<Batch>,
    stored: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let failed = connection.failed("records cannot be sent");
    let client = &connection.client;
    let upsert = table(kind).upsert(user);
    let statement = &client.prepare(&upsert).await.map_err(&failed)?;
    let batches = stream::poll_fn(|task| batches.poll_recv(task));
    let storing = batches.map(|batch| async move {
        let Batch {
            ids,
            skills,
            texts,
            fields,
            ..
        } = &batch;
        let parameters: [&(dyn ToSql + Sync); 5] = [&origin, ids, skills, texts, fields];
        client.execute(statement, &parameters).await?;
        Ok(batch.ids.len() as u64)
    });
    let mut storing = std::pin::pin!(storing.buffered(IN_FLIGHT));
    while let Some(rows) = storing.try_next().await.map_err(&failed)? {
        stored(rows);
    }
    Ok(())
}

/// Rows of one statement.
#[derive(Debug, Default)]
struct Batch {
    ids: Vec<String>,
    skills: Vec<String>,
    texts: Vec<String>,
    fields: Vec<String>,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, outgoing: manifest::Outgoing, fields: String) {
        self.bytes += outgoing.text.len() + fields.len();
        self.skills.push(outgoing.skill());
        self.ids.push(outgoing.entry.id);
        self.texts.push(outgoing.text);
        self.fields.push(fields);
    }

    fn is_full(&self) -> bool {
        self.ids.len() >= ROWS || self.bytes >= BYTES
    }
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
