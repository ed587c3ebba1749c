//! Push: sends the records of this workspace to the shared store.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Statement};

use crate::model::Kind;
use crate::store::{Positions, Scoped};

use super::super::connection::Connection;
use super::super::error::Error;
use super::plan::{Manifest, Outgoing, Plan, Shrinking, hash_of_id, outgoing};
use super::tables::{Row, columns, parameters, table};
use super::{CANNOT_COMPARE, OnSync, SyncReport, SyncStage, has_rows};

/// Number of batches that are sent before the first of them is stored.
const IN_FLIGHT: usize = 2;
/// Number of compared records between two progress reports.
const STEP: u64 = 4_096;

/// Plan per kind, with the file positions that it refers to.
#[derive(Debug)]
pub(super) struct Plans(Vec<(Kind, Positions, Plan)>);

/// Compares local records with the shared store. Records of a kind that has no row there are not
/// read for it: all of them are to be sent.
pub(super) async fn plan(
    connection: &Connection,
    store: &Scoped,
    report: &mut SyncReport,
    on: OnSync<'_>,
) -> Result<Plans, Error> {
    let mut kinds = Vec::new();
    // Referenced records go before those that refer to them.
    let positions = Kind::ALL.iter().map(|kind| store.positions(*kind));
    let positions: Vec<Positions> = positions.collect::<Result<_, _>>()?;
    let total: u64 = positions.iter().map(|p| p.len() as u64).sum();
    let (mut done, mut unfit) = (0, Vec::new());
    for (kind, positions) in Kind::ALL.into_iter().zip(positions) {
        // A plan that is only shown says how many records are fit, and so reads them.
        let may_skip = !report.dry_run && !kind.may_expire();
        let plan = if may_skip && !has_rows(connection, kind, &report.origin).await? {
            done += positions.len() as u64;
            on(SyncStage::Compared(done, total));
            Plan::of_all(positions.places())
        } else {
            let mut manifest = super::plan::manifest(&positions, &mut || {
                done += 1;
                if done % STEP == 0 {
                    on(SyncStage::Compared(done, total));
                }
            })?;
            unfit.append(&mut manifest.unfit);
            compare(connection, kind, &report.origin, manifest).await?
        };
        kinds.push((kind, positions, plan));
    }
    report.warnings.extend(not_shared(UNFIT, &unfit));
    Ok(Plans(kinds))
}

/// Compares the records of a manifest with the rows of this workspace.
async fn compare(
    connection: &Connection,
    kind: Kind,
    origin: &str,
    mut manifest: Manifest,
) -> Result<Plan, Error> {
    let mut plan = Plan::default();
    let own = table(kind).own();
    let query = format!(
        "select entry_id, left(hash, 16) from {own} and origin = $1 and deleted_at is null"
    );
    let mut rows = connection
        .stream(CANNOT_COMPARE, &query, &[&origin])
        .await?;
    while let Some(row) = rows.try_next().await? {
        let (id, hash): (&str, &str) = (row.get(0), row.get(1));
        let hash = u64::from_str_radix(hash, 16).unwrap_or_default();
        manifest.meet(id, hash, &mut plan);
    }
    Ok(manifest.finish(plan))
}

const UNFIT: &str =
    "since its id has other characters than A-Z a-z 0-9 `.` `_` `-`, or its text a zero byte";
const UNREADABLE: &str = "since a value in it cannot be read (a number such as 1e400?)";

/// Returns a warning that names the first of the records which are not sent.
fn not_shared(reason: &str, names: &[String]) -> Option<String> {
    let (first, rest) = names.split_first()?;
    let more = match rest.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("not shared, {reason}: {first}{more}"))
}

impl Plans {
    /// Removals in this plan.
    pub(super) fn shrinking(&self) -> Shrinking {
        let plans = || self.0.iter().map(|(_, _, plan)| plan);
        Shrinking {
            going: plans().map(|plan| plan.remove.len() as u64).sum(),
            of: plans().map(|plan| plan.there).sum(),
            is_remote: true,
        }
    }

    /// Adds the planned numbers to the report.
    pub(super) fn count(&self, report: &mut SyncReport) {
        for (kind, _, plan) in &self.0 {
            let moved = report.of(*kind);
            moved.pushed = plan.send.len() as u64;
            moved.push_removed = plan.remove.len() as u64;
        }
    }

    /// Executes the plan. The next records are read and redacted while the database stores those before.
    ///
    /// `row` returns the row of a record; without it, the record is left out.
    pub(super) async fn carry_out(
        self,
        connection: &Connection,
        row: fn(Kind, &str, &str) -> Option<Row>,
        report: &mut SyncReport,
        on: OnSync<'_>,
    ) -> Result<(), Error> {
        let plans = self.0.iter().map(|(_, _, plan)| plan);
        let total = plans.map(|plan| plan.send.len() as u64).sum();
        let origin = report.origin.clone();
        let mut done = 0;
        let mut missed = Missed::default();
        for (kind, positions, plan) in self.0 {
            let mut sent = 0;
            if !plan.send.is_empty() {
                let failed = connection.failed("records cannot be sent");
                let client = &connection.client;
                let statements = Statements::prepare(client, kind, plan.is_first).await;
                let statements = statements.map_err(&failed)?;
                let mut places = plan.send.iter();
                let batches = std::iter::from_fn(|| {
                    let row = |outgoing: &Outgoing| row(kind, &outgoing.entry.id, &outgoing.text);
                    next_batch(&positions, &mut places, &row, &mut missed).transpose()
                });
                let (statements, origin, failed) = (&statements, &origin, &failed);
                // Each batch is a transaction of its own.
                let storing = stream::iter(batches).map(|batch| async move {
                    let batch = batch?;
                    let stored = statements.store(client, origin, &batch).await;
                    stored.map(|()| batch.rows.len() as u64).map_err(failed)
                });
                let mut storing = std::pin::pin!(storing.buffered(IN_FLIGHT));
                while let Some(rows) = storing.try_next().await? {
                    sent += rows;
                    done += rows;
                    on(SyncStage::Pushed(done, total));
                }
            }
            let mut removed = 0;
            for ids in plan.remove.chunks(MAX_ROWS) {
                removed += bury(connection, kind, &origin, ids).await?;
            }
            let moved = report.of(kind);
            moved.pushed = sent;
            moved.push_removed = removed;
        }
        let Missed { unfit, unreadable } = &missed;
        let unfit = not_shared(UNFIT, unfit);
        report
            .warnings
            .extend(unfit.into_iter().chain(not_shared(UNREADABLE, unreadable)));
        Ok(())
    }
}

/// Turns the rows of removed records into tombstones. Returns their number.
async fn bury(
    connection: &Connection,
    kind: Kind,
    origin: &str,
    ids: &[String],
) -> Result<u64, Error> {
    let tombstones = vec![None::<&str>; ids.len()];
    let doing = "removals cannot be sent";
    connection
        .run(doing, &table(kind).bury(), &[&origin, &ids, &tombstones])
        .await
}

/// Maximum number of rows and of bytes per transaction.
const MAX_ROWS: usize = 2_000;
const MAX_BYTES: usize = 4 << 20;

/// Rows of one statement, each id once.
#[derive(Debug, Default)]
struct Batch {
    rows: Vec<Row>,
    bytes: usize,
    places: HashMap<u64, usize>,
}

impl Batch {
    /// Adds a record. If records share an id, the last one wins, as everywhere.
    fn add(&mut self, id: &str, row: Row) {
        self.bytes += row.iter().flatten().map(String::len).sum::<usize>();
        match self.places.entry(hash_of_id(id)) {
            Entry::Occupied(place) => self.rows[*place.get()] = row,
            Entry::Vacant(place) => {
                place.insert(self.rows.len());
                self.rows.push(row);
            }
        }
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= MAX_ROWS || self.bytes >= MAX_BYTES
    }
}

/// Names of records that are not sent.
#[derive(Debug, Default)]
struct Missed {
    /// Records that no row can hold.
    unfit: Vec<String>,
    /// Records that are not valid for their kind.
    unreadable: Vec<String>,
}

/// Reads the records at the next places; `None` if there are no more.
fn next_batch(
    positions: &Positions,
    places: &mut std::slice::Iter<'_, u32>,
    row: &dyn Fn(&Outgoing) -> Option<Row>,
    missed: &mut Missed,
) -> Result<Option<Batch>, Error> {
    let mut batch = Batch::default();
    for place in places {
        let Some((_, entry)) = positions.any_entry(*place)? else {
            continue;
        };
        match outgoing(entry) {
            Ok(outgoing) => match row(&outgoing) {
                Some(row) => batch.add(&outgoing.entry.id, row),
                None => missed.unreadable.push(format!("`{}`", outgoing.entry.id)),
            },
            Err(name) => missed.unfit.push(name),
        }
        if batch.is_full() {
            break;
        }
    }
    Ok((!batch.rows.is_empty()).then_some(batch))
}

/// Prepared statements for batches of one kind.
struct Statements {
    upsert: Statement,
    /// Faster than `upsert`, and fails if a row is there; `None` if rows are expected.
    insert: Option<Statement>,
}

impl Statements {
    /// `is_first`: no record of this workspace is there.
    async fn prepare(
        client: &Client,
        kind: Kind,
        is_first: bool,
    ) -> Result<Self, tokio_postgres::Error> {
        let table = table(kind);
        let insert = if is_first {
            Some(client.prepare(&table.insert()).await?)
        } else {
            None
        };
        Ok(Self {
            upsert: client.prepare(&table.upsert()).await?,
            insert,
        })
    }

    /// Stores a batch in a transaction of its own.
    async fn store(
        &self,
        client: &Client,
        origin: &str,
        batch: &Batch,
    ) -> Result<(), tokio_postgres::Error> {
        let columns = columns(&batch.rows);
        let parameters = parameters(&origin, &columns);
        if let Some(insert) = &self.insert {
            match client.execute(insert, &parameters).await {
                // An id is in two batches, or the database still stores those of a sync that was cut
                // off.
                Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {}
                done => return done.map(drop),
            }
        }
        client.execute(&self.upsert, &parameters).await.map(drop)
    }
}
