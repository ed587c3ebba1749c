//! Pull: fetches every change of other workspaces since the last pull, in order.

use std::collections::BTreeMap;

use futures_util::TryStreamExt as _;

use crate::model::Kind;
use crate::store::{OTHER_PROGRAMS, PulledChange, Puller, is_origin};

use super::super::connection::{Connection, Parameter};
use super::super::error::Error;
use super::plan::{Shrinking, State};
use super::tables::table;
use super::{OnSync, SyncReport, SyncStage, has_rows};

/// Maximum number of removals per lookup, and of rows and bytes per batch.
const ROWS: usize = 5_000;
const BYTES: usize = 8 << 20;

/// Step of an error.
const COUNT: &str = "what others have sent cannot be counted";

pub(super) struct Pull<'a> {
    pub(super) puller: &'a Puller,
    /// Origin of this workspace, whose rows are skipped.
    pub(super) origin: &'a str,
}

/// Plan of a pull.
#[derive(Debug)]
pub(super) struct PullPlan {
    state: State,
    /// Name of the database in the state.
    database: String,
    kinds: Vec<KindPlan>,
    /// Removals in this plan.
    pub(super) shrinking: Shrinking,
    /// Origins with a damaged file here. All origins are fetched from the start then.
    damaged: Vec<String>,
    warnings: Vec<String>,
}

#[derive(Debug)]
struct KindPlan {
    kind: Kind,
    /// Sequence number of the last change to fetch.
    until: i64,
    records: u64,
    /// Removals of records that exist here.
    removals: u64,
}

impl Pull<'_> {
    /// Determines what to fetch.
    pub(super) async fn plan(&self, connection: &Connection) -> Result<PullPlan, Error> {
        let mut state = State::read(self.puller);
        let database = connection.name().await?;
        let (damaged, warnings) = self.damaged(connection).await?;
        if !damaged.is_empty() {
            state.forget(&database);
        }
        let mut kinds = Vec::new();
        for kind in Kind::ALL {
            let own = table(kind).own();
            let after = state.reached(&database, table(kind).name);
            let count = format!(
                "select coalesce(max(seq), 0), count(*) filter (where entry is not null and origin <> $2)
                 from {own} and seq > $1"
            );
            let parameters: [&dyn Parameter; 2] = [&after, &self.origin];
            let row = connection.row(COUNT, &count, &parameters).await?;
            let (until, records): (i64, i64) = (row.get(0), row.get(1));
            let removed = format!(
                "select origin, entry_id from {own} and seq > $1 and seq <= $2
                   and origin <> $3 and deleted_at is not null and entry_id is not null"
            );
            let parameters: [&dyn Parameter; 3] = [&after, &until, &self.origin];
            let mut rows = connection.stream(COUNT, &removed, &parameters).await?;
            let mut removals = 0;
            let mut ids: BTreeMap<String, Vec<String>> = BTreeMap::new();
            let mut waiting = 0;
            while let Some(row) = rows.try_next().await? {
                ids.entry(row.get(0)).or_default().push(row.get(1));
                waiting += 1;
                if waiting == ROWS {
                    removals += self.existing_count(kind, &ids)?;
                    ids.clear();
                    waiting = 0;
                }
            }
            removals += self.existing_count(kind, &ids)?;
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
            damaged,
            warnings,
        })
    }

    /// Returns the origins with a damaged file that the database can restore, and warnings.
    async fn damaged(&self, connection: &Connection) -> Result<(Vec<String>, Vec<String>), Error> {
        let (mut restorable, mut warnings) = (Vec::new(), Vec::new());
        let damaged = self.puller.damaged().into_iter();
        for origin in damaged.filter(|origin| origin != OTHER_PROGRAMS) {
            if self.is_known(connection, &origin).await? {
                warnings.push(format!(
                    "a file of the workspace `{origin}` was damaged here: everything of it is pulled again"
                ));
                restorable.push(origin);
            } else {
                // The damaged file came from another database, so this one cannot restore it.
                warnings.push(format!(
                    "a file of the workspace `{origin}` is damaged here, and `{}` has nothing of it",
                    connection.address.shown()
                ));
            }
        }
        Ok((restorable, warnings))
    }

    /// Returns `true` if the database has rows of an origin.
    async fn is_known(&self, connection: &Connection, origin: &str) -> Result<bool, Error> {
        for kind in Kind::ALL {
            if has_rows(connection, kind, origin).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Number of these records that exist here.
    fn existing_count(
        &self,
        kind: Kind,
        ids: &BTreeMap<String, Vec<String>>,
    ) -> Result<u64, Error> {
        let mut existing_count = 0;
        for (origin, ids) in ids.iter().filter(|(origin, _)| is_origin(origin)) {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            existing_count += self.puller.count_held(origin, kind, &ids)?;
        }
        Ok(existing_count)
    }

    /// Executes the plan.
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
        if !plan.damaged.is_empty() {
            // First, so that an interrupted pull begins again from the start.
            state.keep(self.puller)?;
        }
        for origin in &plan.damaged {
            self.puller.discard(origin)?;
        }
        let doing = "what others have sent cannot be read";
        for KindPlan { kind, until, .. } in &plan.kinds {
            let (name, own) = (table(*kind).name, table(*kind).own());
            let after = state.reached(&plan.database, name);
            let query = format!(
                "select seq, origin, entry_id, entry from {own}
                   and seq > $1 and seq <= $2 and origin <> $3 and entry_id is not null
                 order by seq"
            );
            let parameters: [&dyn Parameter; 3] = [&after, until, &self.origin];
            let mut rows = connection.stream(doing, &query, &parameters).await?;
            let mut batch = Batch::default();
            while let Some(row) = rows.try_next().await? {
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
            // The remaining rows up to `until` belong to this workspace and need no second look.
            state.reach(&plan.database, name, *until);
            on(SyncStage::Pulled(done, total));
        }
        if state != plan.state {
            state.keep(self.puller)?;
        }
        report.warnings.extend(refused.messages());
        Ok(())
    }

    /// Stores a batch and counts the refused rows.
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
    /// Adds the planned numbers to the report.
    pub(super) fn count(&self, report: &mut SyncReport) {
        report.warnings.extend(self.warnings.iter().cloned());
        for plan in &self.kinds {
            let moved = report.of(plan.kind);
            moved.pulled = plan.records;
            moved.pull_removed = plan.removals;
        }
    }
}

/// Counts of refused rows.
#[derive(Debug, Default)]
struct Refused {
    /// Rows that hold no valid record with their id.
    records: u64,
    /// Rows per origin with an invalid workspace name.
    origins: BTreeMap<String, u64>,
}

impl Refused {
    /// Warnings about the refused rows.
    fn messages(&self) -> Vec<String> {
        let mut messages = Vec::new();
        if self.records > 0 {
            messages.push(format!(
                "{} rows of others are no records with the id that they claim, and were left there",
                self.records
            ));
        }
        if !self.origins.is_empty() {
            let rows: u64 = self.origins.values().sum();
            let shown = self.origins.keys().take(3).map(|origin| {
                let beginning: String = origin.chars().take(40).collect();
                format!("`{}`", beginning.escape_debug())
            });
            messages.push(format!(
                "{rows} rows of {} origins whose name no workspace can have were left there: {}",
                self.origins.len(),
                shown.collect::<Vec<_>>().join(", ")
            ));
        }
        messages
    }
}

/// Changes that are stored together, by origin.
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
