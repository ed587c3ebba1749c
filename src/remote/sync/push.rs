//! Push: compares the records of this workspace with the shared store, and sends what is missing there.

use std::collections::HashMap;
use std::collections::hash_map;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use sha2::{Digest as _, Sha256};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Statement};
use xxhash_rust::xxh3::xxh3_64;

use crate::model::Kind;
use crate::store::{Entry, Positions, Scoped, redact};

use super::super::connection::{Connection, Parameter};
use super::super::error::{Error, Shrinking};
use super::super::tables::{Row, columns, is_fit, parameters, row, table};
use super::report::{OnSync, SyncReport, SyncStage};

/// Number of batches that are sent before the first of them is stored.
const IN_FLIGHT: usize = 2;
/// Number of compared records between two progress reports.
const STEP: u64 = 4_096;

const CANNOT_COMPARE: &str = "the rows cannot be compared";

/// Returns `true` if the database has rows of a kind and an origin.
pub(super) async fn has_rows(
    connection: &Connection,
    kind: Kind,
    origin: &str,
) -> Result<bool, Error> {
    let own = table(kind).own();
    let query = format!("select exists (select from {own} and origin = $1)");
    let row = connection.row(CANNOT_COMPARE, &query, &[&origin]).await?;
    Ok(row.get(0))
}

/// Plan for one kind.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    /// Positions of the records to send, in file order.
    send: Vec<u32>,
    /// Ids of rows whose record is gone.
    remove: Vec<String>,
    /// Number of rows in the shared store.
    there: u64,
    /// `true` if the shared store has never had a row.
    is_first: bool,
}

impl Plan {
    /// Plan for records of which the shared store has none.
    fn of_all(places: impl Iterator<Item = u32>) -> Self {
        let mut send: Vec<u32> = places.collect();
        send.sort_unstable();
        Self {
            send,
            is_first: true,
            ..Self::default()
        }
    }
}

/// Compact list of the local records of a kind, with a small entry for each.
#[derive(Debug, Default)]
struct Manifest {
    lines: HashMap<u64, Line>,
    /// Names of the records that no row can hold.
    unfit: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    /// First 8 bytes of the SHA-256 of the text; `None` if the record has expired. Expired records
    /// are not sent, and their rows are not removed.
    text: Option<u64>,
    /// Place among the records of its kind.
    place: u32,
}

impl Manifest {
    /// Compares a row of this workspace: its id, and the first 8 bytes of its hash.
    fn meet(&mut self, id: &str, text: u64, plan: &mut Plan) {
        plan.there += 1;
        match self.lines.get_mut(&hash_of_id(id)) {
            // The row is identical.
            Some(line) if line.text == Some(text) => line.text = None,
            Some(_) => {}
            None => plan.remove.push(id.to_owned()),
        }
    }

    /// Completes the plan after all rows have been compared.
    fn finish(self, plan: Plan) -> Plan {
        let open = self.lines.values().filter(|line| line.text.is_some());
        let mut send: Vec<u32> = open.map(|line| line.place).collect();
        send.sort_unstable();
        Plan { send, ..plan }
    }
}

fn hash_of_id(id: &str) -> u64 {
    xxh3_64(id.as_bytes())
}

/// First 8 bytes of the SHA-256.
fn hash_of_text(text: &str) -> u64 {
    let digest = Sha256::digest(text.as_bytes());
    digest
        .first_chunk()
        .map_or(0, |first| u64::from_be_bytes(*first))
}

/// Returns the redacted text of a record, for sending.
///
/// # Errors
///
/// Name for a record that cannot be stored as a row.
fn outgoing(entry: &Entry) -> Result<String, String> {
    let text = std::str::from_utf8(&entry.text).map(|text| redact(text).text.into_owned());
    match text {
        Ok(text) if is_fit(&entry.id, &text) => Ok(text),
        _ if entry.id.is_empty() => Err(format!("a {} without an id", entry.kind.noun())),
        _ => {
            let shown: String = entry.id.chars().take(NAME_SHOWN).collect();
            Err(format!("`{}`", shown.escape_debug()))
        }
    }
}

/// Number of characters of an id in a warning.
const NAME_SHOWN: usize = 60;

/// Reads all records of a kind. Calls `on_record` for each.
fn manifest(positions: &Positions, on_record: &mut dyn FnMut()) -> Result<Manifest, Error> {
    let mut manifest = Manifest::default();
    for place in positions.places() {
        on_record();
        let Some((_, entry)) = positions.any_entry(place)? else {
            continue;
        };
        let is_alive = !entry.kind.may_expire() || positions.entry(place)?.is_some();
        match outgoing(&entry) {
            Ok(text) => {
                let text = is_alive.then(|| hash_of_text(&text));
                // If records share an id, the last one wins, as everywhere.
                let id = hash_of_id(&entry.id);
                manifest.lines.insert(id, Line { text, place });
            }
            Err(name) => manifest.unfit.push(name),
        }
    }
    Ok(manifest)
}

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
            let mut manifest = manifest(&positions, &mut || {
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
    report.warnings.extend(not_shared(&unfit));
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

/// Returns a warning that names the first of the records which no row can hold.
fn not_shared(names: &[String]) -> Option<String> {
    let (first, rest) = names.split_first()?;
    let more = match rest.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "not shared, since its id has other characters than A-Z a-z 0-9 `.` `_` `-`, or its text a zero byte: \
         {first}{more}"
    ))
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
    pub(super) async fn carry_out(
        self,
        connection: &Connection,
        report: &mut SyncReport,
        on: OnSync<'_>,
    ) -> Result<(), Error> {
        let plans = self.0.iter().map(|(_, _, plan)| plan);
        let total = plans.map(|plan| plan.send.len() as u64).sum();
        let origin = report.origin.clone();
        let mut done = 0;
        let mut unfit = Vec::new();
        for (kind, positions, plan) in self.0 {
            let mut sent = 0;
            if !plan.send.is_empty() {
                let failed = connection.failed("records cannot be sent");
                let client = &connection.client;
                let statements = Statements::prepare(client, kind, plan.is_first).await;
                let statements = statements.map_err(&failed)?;
                let mut places = plan.send.iter();
                let batches = std::iter::from_fn(|| {
                    next_batch(kind, &positions, &mut places, &mut unfit).transpose()
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
            // Rows of removed records become tombstones.
            let mut removed = 0;
            for ids in plan.remove.chunks(MAX_ROWS) {
                let bury = table(kind).bury();
                let tombstones = vec![None::<&str>; ids.len()];
                let parameters: [&dyn Parameter; 3] = [&origin, &ids, &tombstones];
                let doing = "removals cannot be sent";
                removed += connection.run(doing, &bury, &parameters).await?;
            }
            let moved = report.of(kind);
            moved.pushed = sent;
            moved.push_removed = removed;
        }
        report.warnings.extend(not_shared(&unfit));
        Ok(())
    }
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
            hash_map::Entry::Occupied(place) => self.rows[*place.get()] = row,
            hash_map::Entry::Vacant(place) => {
                place.insert(self.rows.len());
                self.rows.push(row);
            }
        }
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= MAX_ROWS || self.bytes >= MAX_BYTES
    }
}

/// Reads the records at the next places; `None` if there are no more. Adds the names of those that no row can hold.
fn next_batch(
    kind: Kind,
    positions: &Positions,
    places: &mut std::slice::Iter<'_, u32>,
    unfit: &mut Vec<String>,
) -> Result<Option<Batch>, Error> {
    let mut batch = Batch::default();
    for place in places {
        let Some((_, entry)) = positions.any_entry(*place)? else {
            continue;
        };
        match outgoing(&entry) {
            Ok(text) => batch.add(&entry.id, row(kind, &entry.id, &text)),
            Err(name) => unfit.push(name),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(records: &[(&str, Option<u64>)]) -> Manifest {
        let lines = records.iter().zip(0..);
        let lines = lines.map(|((id, text), place)| (hash_of_id(id), Line { text: *text, place }));
        Manifest {
            lines: lines.collect(),
            unfit: Vec::new(),
        }
    }

    #[test]
    fn changed_records_are_sent_and_missing_ones_removed() {
        let check =
            |here: &[(&str, Option<u64>)], there: &[(&str, u64)], send: &[u32], remove: &[&str]| {
                let (mut manifest, mut plan) = (manifest(here), Plan::default());
                for (id, text) in there {
                    manifest.meet(id, *text, &mut plan);
                }
                let plan = manifest.finish(plan);
                assert_eq!(
                    (plan.send.as_slice(), plan.there),
                    (send, there.len() as u64)
                );
                assert_eq!(plan.remove, remove);
            };
        check(&[], &[], &[], &[]);
        check(&[("A", Some(1)), ("B", Some(2))], &[], &[0, 1], &[]);
        check(
            &[("A", Some(1)), ("B", Some(2))],
            &[("B", 2), ("A", 1)],
            &[],
            &[],
        );
        check(
            &[("A", Some(1)), ("B", Some(2))],
            &[("A", 1), ("B", 9)],
            &[1],
            &[],
        );
        check(&[("A", Some(1))], &[("A", 1), ("C", 3)], &[], &["C"]);
        // Expired records are not sent, and their rows are not removed.
        check(&[("A", None), ("B", None)], &[("A", 7)], &[], &[]);
    }
}

#[cfg(test)]
mod tests_of_manifest {
    use super::*;

    #[test]
    fn a_hash_is_the_beginning_of_the_one_that_the_server_makes() {
        // select left(encode(sha256(convert_to('abc', 'UTF8')), 'hex'), 16)
        assert_eq!(hash_of_text("abc"), 0xba78_16bf_8f01_cfea);
    }
}
