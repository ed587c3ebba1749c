//! Rows of other programs (edge functions, SQL): pulled as records of the origin [`OTHER_PROGRAMS`].
//!
//! A program deletes its rows without a tombstone, so every run compares all ids. Rows that are new or
//! changed are fetched by their ids. A copy of a memory in the database takes them in with its other changes.
//!
//! The texts are data of unknown authors. They are observed; the claim of a row does not count. A text
//! that reads like instructions to a model is left in the database.

use std::collections::HashSet;

use tokio_postgres::Row;

use crate::model::Kind;
use crate::store::{OTHER_PROGRAMS, PulledChange, Puller};

use super::super::connection::{Connection, Parameter};
use super::super::error::{Error, Shrinking};
use super::super::tables::table;
use super::pull::State;
use super::report::SyncReport;

/// Kinds whose tables other programs write.
const KINDS: [Kind; 2] = [Kind::Procedure, Kind::Memory];

/// Maximum number of rows per statement, and of bytes per row: what a request may hold.
const ROWS: usize = 1_000;
const BYTES: i32 = 1 << 20;

/// Plan of a pull.
#[derive(Debug)]
pub(super) struct OthersPlan {
    kinds: Vec<KindPlan>,
    /// Removals in this plan.
    pub(super) shrinking: Shrinking,
    /// A local file is damaged, so all rows are fetched again.
    is_damaged: bool,
}

#[derive(Debug)]
struct KindPlan {
    kind: Kind,
    /// Ids of rows to fetch, in the order of their changes.
    fetch: Vec<String>,
    /// Ids of records whose row is gone.
    removed: Vec<String>,
    /// Sequence number of the last change.
    until: i64,
}

/// Name under which the progress of a table is saved.
fn progress(table: &str) -> String {
    format!("{table} of other programs")
}

/// Id of the record of a row.
fn record_id(kind: Kind, row: &str) -> String {
    format!("{}-{row}", kind.prefix())
}

/// Determines what to fetch.
pub(super) async fn plan(connection: &Connection, puller: &Puller) -> Result<OthersPlan, Error> {
    let state = State::read(puller);
    let database = connection.name().await?;
    let damaged = puller.damaged();
    let is_damaged = damaged.iter().any(|origin| origin == OTHER_PROGRAMS);
    let mut kinds = Vec::new();
    let (mut of_here, mut going) = (0, 0);
    for kind in KINDS {
        let after = state.reached(&database, &progress(table(kind).name));
        let list = format!(
            "select id::text, seq, deleted_at is null from {} and origin is null order by seq",
            table(kind).own()
        );
        let doing = "rows of other programs cannot be listed";
        let rows = connection.rows(doing, &list, &[]).await?;
        let existing: HashSet<String> = if is_damaged {
            HashSet::new()
        } else {
            puller.ids(OTHER_PROGRAMS, kind)?.into_iter().collect()
        };
        let mut plan = KindPlan {
            kind,
            fetch: Vec::new(),
            removed: Vec::new(),
            until: after,
        };
        let mut there = HashSet::with_capacity(rows.len());
        for row in rows {
            let (id, seq): (String, i64) = (row.get(0), row.get(1));
            plan.until = plan.until.max(seq);
            if !row.get::<_, bool>(2) {
                continue;
            }
            let record = record_id(kind, &id);
            if seq > after || !existing.contains(&record) {
                plan.fetch.push(id);
            }
            there.insert(record);
        }
        of_here += existing.len() as u64;
        plan.removed = existing
            .into_iter()
            .filter(|id| !there.contains(id))
            .collect();
        going += plan.removed.len() as u64;
        kinds.push(plan);
    }
    Ok(OthersPlan {
        kinds,
        shrinking: Shrinking {
            going,
            of: of_here,
            is_remote: false,
        },
        is_damaged,
    })
}

/// SQL expression that is true if other programs have written rows: of each kind, after the sequence number that is
/// its parameter, from `$first` on.
pub(crate) fn has_rows_after(first: impl Fn(usize) -> usize) -> String {
    let kinds = KINDS.into_iter().enumerate();
    let parts = kinds.map(|(n, kind)| {
        let own = table(kind).own();
        format!(
            "exists (select from {own} and origin is null and seq > ${})",
            first(n)
        )
    });
    parts.collect::<Vec<_>>().join(" or ")
}

/// Takes in what other programs have written since the last time, for a copy of a memory in the database: a copy
/// follows it without asking anybody. Rows that are gone go with the next one that is written, or with `sync`.
/// Returns `true` if records have changed.
pub(crate) async fn take_in_others(
    connection: &Connection,
    puller: &Puller,
) -> Result<bool, Error> {
    let database = connection.name().await?;
    let state = State::read(puller);
    let reached = KINDS.map(|kind| state.reached(&database, &progress(table(kind).name)));
    let query = format!("select {}", has_rows_after(|n| n + 1));
    let parameters = reached.each_ref().map(|seq| seq as &dyn Parameter);
    let doing = "rows of other programs cannot be listed";
    let is_news = connection.row(doing, &query, &parameters).await?;
    if !is_news.get::<_, bool>(0) {
        return Ok(false);
    }
    let mut report = SyncReport::default();
    let plan = plan(connection, puller).await?;
    plan.carry_out(connection, puller, &mut report).await?;
    report.sum_up();
    Ok(report.pulled + report.tombstones > 0)
}

impl OthersPlan {
    /// Adds the planned numbers to the report.
    pub(super) fn count(&self, report: &mut SyncReport) {
        for plan in &self.kinds {
            let moved = report.of(plan.kind);
            moved.pulled += plan.fetch.len() as u64;
            moved.pull_removed += plan.removed.len() as u64;
        }
    }

    /// Executes the plan.
    pub(super) async fn carry_out(
        &self,
        connection: &Connection,
        puller: &Puller,
        report: &mut SyncReport,
    ) -> Result<(), Error> {
        let database = connection.name().await?;
        let (mut suspicious, mut unusable) = (0_u64, 0);
        if self.is_damaged {
            puller.discard(OTHER_PROGRAMS)?;
        }
        for plan in &self.kinds {
            let removed = plan.removed.iter().map(|id| PulledChange {
                id: id.clone(),
                text: None,
            });
            let removed: Vec<PulledChange> = removed.collect();
            if !removed.is_empty() {
                let count = puller.apply(OTHER_PROGRAMS, plan.kind, &removed)?;
                report.of(plan.kind).pull_removed += count.removed;
            }
            for ids in plan.fetch.chunks(ROWS) {
                let rows = fetched(connection, plan.kind, ids).await?;
                unusable += (ids.len() - rows.len()) as u64;
                let mut changes = Vec::new();
                for row in &rows {
                    let (id, text): (String, String) = (row.get(0), row.get(1));
                    // An earlier version of a suspicious row may be here.
                    let is_suspicious = memctl_redact::admit(&text).quarantine.is_some();
                    suspicious += u64::from(is_suspicious);
                    let text = Some(text).filter(|_| !is_suspicious);
                    changes.push(PulledChange { id, text });
                }
                let count = puller.apply(OTHER_PROGRAMS, plan.kind, &changes)?;
                let moved = report.of(plan.kind);
                moved.pulled += count.added + count.changed;
                moved.pull_removed += count.removed;
                unusable += count.refused;
            }
            // Read again, since the pull of other workspaces has saved its progress meanwhile.
            let mut state = State::read(puller);
            state.reach(&database, &progress(table(plan.kind).name), plan.until);
            state.keep(puller)?;
        }
        let mut warn = |number: u64, why: &str| {
            if number > 0 {
                let warning = format!("{number} rows of other programs were left there: {why}");
                report.warnings.push(warning);
            }
        };
        warn(suspicious, "their text reads like instructions to a model");
        warn(unusable, "they have no text, or more than a megabyte");
        Ok(())
    }
}

/// Fetches rows by their ids, as records with their ids, without those that have no text or are too large.
async fn fetched(connection: &Connection, kind: Kind, ids: &[String]) -> Result<Vec<Row>, Error> {
    let sql = match kind {
        Kind::Procedure => include_str!("procedures_of_others.sql"),
        _ => include_str!("notes_of_others.sql"),
    };
    let sql = sql.replace("@own@", &table(kind).own());
    let doing = "rows of other programs cannot be fetched";
    connection.rows(doing, &sql, &[&ids, &BYTES]).await
}
