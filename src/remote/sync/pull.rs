//! Pull: fetches every change of other workspaces since the last pull, in order. Its progress, for each database,
//! is stored next to the pulled records.

use std::collections::BTreeMap;

use futures_util::TryStreamExt as _;
use serde::{Deserialize, Serialize};

use crate::model::Kind;
use crate::store::{OTHER_PROGRAMS, PulledChange, Puller, is_origin};

use super::super::connection::{Connection, Parameter};
use super::super::error::{Error, Shrinking};
use super::super::tables::table;
use super::push::has_rows;
use super::report::{OnSync, SyncReport, SyncStage};

/// Maximum number of rows and of bytes per batch.
const ROWS: usize = 5_000;
const BYTES: usize = 8 << 20;

/// Step of an error.
const COUNT: &str = "what others have sent cannot be counted";

/// Last pulled sequence number, by database and table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pulled: BTreeMap<String, BTreeMap<String, i64>>,
}

impl State {
    /// Reads the stored state. An unreadable state counts as empty, so that everything is pulled
    /// again.
    pub(super) fn read(puller: &Puller) -> Self {
        let bytes = puller.state().unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    pub(super) fn keep(&self, puller: &Puller) -> Result<(), Error> {
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        Ok(puller.keep_state(&bytes)?)
    }

    pub(super) fn reached(&self, database: &str, table: &str) -> i64 {
        let tables = self.pulled.get(database);
        tables
            .and_then(|tables| tables.get(table))
            .copied()
            .unwrap_or(0)
    }

    /// Forgets what was pulled from a database, so that everything is pulled again.
    pub(super) fn forget(&mut self, database: &str) {
        self.pulled.remove(database);
    }

    pub(super) fn reach(&mut self, database: &str, table: &str, seq: i64) {
        let tables = self.pulled.entry(database.to_owned()).or_default();
        let reached = tables.entry(table.to_owned()).or_default();
        *reached = seq.max(*reached);
    }
}

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
                "select origin, array_agg(entry_id) from {own} and seq > $1 and seq <= $2
                   and origin <> $3 and deleted_at is not null and entry_id is not null group by origin"
            );
            let parameters: [&dyn Parameter; 3] = [&after, &until, &self.origin];
            let mut removals = 0;
            for row in connection.rows(COUNT, &removed, &parameters).await? {
                let (origin, ids): (&str, Vec<&str>) = (row.get(0), row.get(1));
                if is_origin(origin) {
                    removals += self.puller.count_held(origin, kind, &ids)?;
                }
            }
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
        let mut refused = 0;
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
        if refused > 0 {
            report.warnings.push(format!(
                "{refused} rows of others were left there: no records with the id that they claim, or of an \
                 origin whose name no workspace can have"
            ));
        }
        Ok(())
    }

    /// Stores a batch and counts the refused rows.
    fn store(
        &self,
        batch: &Batch,
        kind: Kind,
        report: &mut SyncReport,
        refused: &mut u64,
    ) -> Result<(), Error> {
        for (origin, changes) in &batch.changes {
            if !is_origin(origin) {
                *refused += changes.len() as u64;
                continue;
            }
            let count = self.puller.apply(origin, kind, changes)?;
            let moved = report.of(kind);
            moved.pulled += count.added + count.changed;
            moved.pull_removed += count.removed;
            *refused += count.refused;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_only_goes_on() {
        let mut state = State::default();
        state.reach("db", "reflexions", 7);
        state.reach("db", "reflexions", 5);
        assert_eq!(state.reached("db", "reflexions"), 7);
        assert_eq!(
            (
                state.reached("db", "x"),
                state.reached("other", "reflexions")
            ),
            (0, 0)
        );
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<State>(&text).unwrap(), state);
    }
}
