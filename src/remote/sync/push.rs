//! Push: sends the records of this workspace to the shared store.

use futures_util::TryStreamExt as _;

use crate::model::Kind;
use crate::store::{Positions, Scoped};

use super::super::connection::Connection;
use super::super::error::Error;
use super::plan::{Manifest, Plan, Shrinking, outgoing};
use super::tables::{Row, columns, parameters, table};
use super::{CANNOT_COMPARE, OnSync, SyncReport, SyncStage};

/// Number of compared records between two progress reports.
const STEP: u64 = 4_096;

/// Plan per kind, with the file positions that it refers to.
#[derive(Debug)]
pub(super) struct Plans(Vec<(Kind, Positions, Plan)>);

/// Compares local records with the shared store.
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
        let mut manifest = super::plan::manifest(&positions, &mut || {
            done += 1;
            if done % STEP == 0 {
                on(SyncStage::Compared(done, total));
            }
        })?;
        unfit.append(&mut manifest.unfit);
        let plan = compare(connection, kind, &report.origin, manifest).await?;
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

    /// Executes the plan.
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
        let origin = origin.as_str();
        let (mut done, mut unreadable) = (0, Vec::new());
        for (kind, positions, plan) in self.0 {
            let mut sent = 0;
            if !plan.send.is_empty() {
                let failed = connection.failed("records cannot be sent");
                let upsert = table(kind).upsert();
                let upsert = connection.client.prepare(&upsert).await;
                let upsert = upsert.map_err(&failed)?;
                let mut places = plan.send.iter();
                let row = |id: &str, text: &str| row(kind, id, text);
                loop {
                    let batch = next_batch(&positions, &mut places, &row, &mut unreadable)?;
                    if batch.is_empty() {
                        break;
                    }
                    // Each batch is a transaction of its own.
                    let columns = columns(&batch);
                    let parameters = parameters(&origin, &columns);
                    let stored = connection.client.execute(&upsert, &parameters).await;
                    stored.map_err(&failed)?;
                    sent += batch.len() as u64;
                    done += batch.len() as u64;
                    on(SyncStage::Pushed(done, total));
                }
            }
            let mut removed = 0;
            for ids in plan.remove.chunks(MAX_ROWS) {
                removed += bury(connection, kind, origin, ids).await?;
            }
            let moved = report.of(kind);
            moved.pushed = sent;
            moved.push_removed = removed;
        }
        report.warnings.extend(not_shared(UNREADABLE, &unreadable));
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

/// Rows of the records at the next places; none if there are no more. `unreadable` gets the names of records that
/// are not valid for their kind.
fn next_batch(
    positions: &Positions,
    places: &mut std::slice::Iter<'_, u32>,
    row: &dyn Fn(&str, &str) -> Option<Row>,
    unreadable: &mut Vec<String>,
) -> Result<Vec<Row>, Error> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for place in places {
        let Some((_, entry)) = positions.any_entry(*place)? else {
            continue;
        };
        // One that no row can hold is not in the plan.
        let Ok(outgoing) = outgoing(entry) else {
            continue;
        };
        match row(&outgoing.entry.id, &outgoing.text) {
            Some(row) => {
                bytes += row.iter().flatten().map(String::len).sum::<usize>();
                rows.push(row);
            }
            None => unreadable.push(format!("`{}`", outgoing.entry.id)),
        }
        if rows.len() >= MAX_ROWS || bytes >= MAX_BYTES {
            break;
        }
    }
    Ok(rows)
}
