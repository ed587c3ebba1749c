//! Synchronisation of a local store with the shared store: pushes the records of this workspace,
//! pulls those of others.
//!
//! - `tables`: table and columns of each kind.
//! - `plan`: what to send, and the progress of the pull. `push`, `pull`: execute it.
//! - `vectors`: vectors of rows. `other_programs`: rows that other programs wrote.
//!
//! Invariants: an origin writes only its own rows. Every batch is a transaction, and every step is
//! idempotent, so an interrupted run can be repeated. Everything sent passes the redactor of the
//! store. A plan that removes more than a tenth of the records needs the user's consent.
//!
//! Deliberately absent: conflict resolution. There are no conflicts, since only the owner writes a
//! row.

mod other_programs;
mod plan;
mod pull;
mod push;
mod tables;
mod vectors;

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;

use crate::lessons;
use crate::model::Kind;
use crate::model::error::message;
use crate::store::{self, AuditAction, Scoped};

use super::address::Address;
use super::check::check;
use super::connection::Connection;
use super::error::Error;
use super::logs;
use super::migrate;

pub(super) use other_programs::{has_rows_after, take_in_others};
pub use plan::Shrinking;
pub(super) use plan::{claim_for, claimed, is_fit};
pub(super) use tables::{Table, columns, parameters, row_or_blank, table, time, without_nul};
pub use vectors::{SharedEmbedder, VectorsReport, fill_vectors};

/// Options of a synchronisation.
#[derive(Debug, Clone, Copy)]
pub struct SyncOptions {
    /// Direction.
    pub way: Direction,
    /// Change nothing on either side.
    pub dry_run: bool,
    /// Allow removals of more than a tenth of the records.
    pub may_shrink: bool,
}

/// Direction of a synchronisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Send local records.
    Push,
    /// Fetch records of others.
    Pull,
    /// Send and fetch.
    Both,
}

/// Progress: number of records done, and total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncStage {
    /// Compared with the shared store.
    Compared(u64, u64),
    /// Sent.
    Pushed(u64, u64),
    /// Fetched.
    Pulled(u64, u64),
    /// Embedded.
    Vectors(u64, u64),
}

/// Callback for progress.
pub type OnSync<'a> = &'a mut dyn FnMut(SyncStage);

/// Result of a synchronisation.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct SyncReport {
    /// Host, port and name of the database.
    pub database: String,
    /// Name of this workspace in the shared store.
    pub origin: String,
    /// Number of records sent, new or changed.
    pub pushed: u64,
    /// Number of records fetched, new or changed.
    pub pulled: u64,
    /// Number of removals in both directions.
    pub tombstones: u64,
    /// Numbers per kind; kinds without changes are left out.
    pub by_kind: BTreeMap<&'static str, Moved>,
    /// Lines of logs that were sent.
    pub lines: MovedLines,
    /// Report on vectors; `None` if nothing was pushed.
    pub vectors: Option<VectorsReport>,
    /// `true` if nothing was changed; the numbers then say what would move.
    pub dry_run: bool,
    /// Duration in milliseconds.
    pub took_ms: f64,
    /// Problems that did not stop the run.
    pub warnings: Vec<String>,
}

/// Lines of logs that a sync has sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct MovedLines {
    /// Lines of the log of agents.
    pub execution_logs: u64,
    /// Audit events.
    pub audit_events: u64,
}

/// Numbers of moved records of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Moved {
    /// Records sent.
    pub pushed: u64,
    /// Removals sent.
    pub push_removed: u64,
    /// Records fetched.
    pub pulled: u64,
    /// Removals fetched.
    pub pull_removed: u64,
}

impl SyncReport {
    fn of(&mut self, kind: Kind) -> &mut Moved {
        self.by_kind.entry(kind.plural()).or_default()
    }

    /// Writes the audit events: the numbers of records sent and received, by kind.
    fn audit(&self, store: &Scoped) -> Result<(), store::Error> {
        let sent = |moved: &Moved| moved.pushed + moved.push_removed;
        let received = |moved: &Moved| moved.pulled + moved.pull_removed;
        for did in [AuditAction::Exported, AuditAction::Added] {
            let of = |moved: &Moved| match did {
                AuditAction::Exported => sent(moved),
                _ => received(moved),
            };
            let moved = self.by_kind.iter().filter(|(_, moved)| of(moved) > 0);
            let moved = moved.map(|(kind, moved)| format!("{} {kind}", of(moved)));
            let moved: Vec<String> = moved.collect();
            let touched: Vec<_> = moved.iter().map(|what| (what.as_str(), None)).collect();
            if !touched.is_empty() {
                store.audit(did, &touched)?;
            }
        }
        Ok(())
    }

    fn sum_up(&mut self) {
        self.by_kind.retain(|_, moved| *moved != Moved::default());
        let moved = || self.by_kind.values();
        self.pushed = moved().map(|moved| moved.pushed).sum();
        self.pulled = moved().map(|moved| moved.pulled).sum();
        self.tombstones = moved().map(|m| m.push_removed + m.pull_removed).sum();
    }
}

/// Logs in after the isolation check has passed.
pub(super) async fn open(address: &Address) -> Result<Connection, Error> {
    let proof = check(address).await?;
    if !proof.passed {
        // A schema of another version fails the check too, and has a way out of its own.
        let connection = Connection::open(address).await?;
        if let Err(error @ Error::Stopped(..)) = migrate::demand(&connection).await {
            return Err(error);
        }
        let wrong = proof.checks.into_iter().filter(|check| !check.ok);
        let wrong: Vec<String> = wrong.map(|c| format!("{}: {}", c.name, c.detail)).collect();
        return Err(Error::stopped(
            format!(
                "`{}` does not isolate users, so nothing was sent: {}",
                proof.database,
                wrong.join("; ")
            ),
            "memctl remote check",
        ));
    }
    let connection = Connection::open(address).await?;
    migrate::demand(&connection).await?;
    Ok(connection)
}

/// Synchronises both sides. `store` needs full access and a redactor; `random` names a copy of a
/// workspace that has no name yet.
pub async fn sync(
    address: &Address,
    store: &Scoped,
    options: SyncOptions,
    random: &mut dyn FnMut() -> String,
    on: OnSync<'_>,
) -> Result<SyncReport, Error> {
    let start = Instant::now();
    let mut options = options;
    let is_copy = store.primary_name()?.is_some();
    if is_copy {
        // A copy of a primary store can be behind, and a push would remove what others have added.
        options.way = Direction::Pull;
    }
    // Taken first, so that a second process cannot do the same work at once.
    let puller = store.pull()?;
    let connection = open(address).await?;
    let mut report = SyncReport {
        database: address.shown(),
        dry_run: options.dry_run,
        ..SyncReport::default()
    };
    let (origin, warning) = plan::claim(&connection, store, options.dry_run, random).await?;
    report.origin = origin;
    report.warnings.extend(warning);
    let pull = pull::Pull {
        puller: &puller,
        origin: &report.origin.clone(),
    };
    // All plans are made before one is executed, so that a refusal changes nothing.
    let push_plan = if options.way == Direction::Pull {
        None
    } else {
        Some(push::plan(&connection, store, &mut report, on).await?)
    };
    let pull_plans = if options.way == Direction::Push {
        None
    } else {
        let others = other_programs::plan(&connection, &puller).await?;
        Some((pull.plan(&connection).await?, others))
    };
    let pushed = push_plan.iter().map(push::Plans::shrinking);
    let plans = pull_plans.iter();
    let plans = plans.flat_map(|(pull, others)| [pull.shrinking, others.shrinking]);
    let much = pushed.chain(plans).find(|shrinking| shrinking.is_much());
    if let Some(shrinking) = much.filter(|_| !options.may_shrink) {
        return Err(Error::Shrinks(shrinking));
    }
    match push_plan {
        Some(plan) if options.dry_run => plan.count(&mut report),
        Some(plan) => {
            plan.carry_out(&connection, tables::row, &mut report, on)
                .await?;
        }
        None => {}
    }
    match pull_plans {
        Some((pull_plan, others)) if options.dry_run => {
            pull_plan.count(&mut report);
            others.count(&mut report);
        }
        Some((pull_plan, others)) => {
            pull.carry_out(&connection, &pull_plan, &mut report, on)
                .await?;
            others.carry_out(&connection, &puller, &mut report).await?;
        }
        None => {}
    }
    if !options.dry_run && (is_copy || options.way != Direction::Pull) {
        report.lines = send_logs(&connection, store, &report.origin).await?;
    }
    report.sum_up();
    if !options.dry_run {
        if let Err(error) = report.audit(store) {
            let warning = format!("this sync is not in the audit: {}", message(&error));
            report.warnings.push(warning);
        }
        for pulled in store.others() {
            lessons::storage::table::prepare(&pulled.store)?;
        }
    }
    report.took_ms = start.elapsed().as_secs_f64() * 1_000.0;
    Ok(report)
}

const CANNOT_COMPARE: &str = "the rows cannot be compared";

/// Returns `true` if the database has rows of a kind and an origin.
async fn has_rows(connection: &Connection, kind: Kind, origin: &str) -> Result<bool, Error> {
    let own = table(kind).own();
    let query = format!("select exists (select from {own} and origin = $1)");
    let row = connection.row(CANNOT_COMPARE, &query, &[&origin]).await?;
    Ok(row.get(0))
}

/// Sends the lines of the logs that the database does not have.
async fn send_logs(
    connection: &Connection,
    store: &Scoped,
    origin: &str,
) -> Result<MovedLines, Error> {
    let unsent = store.unsent(&connection.name().await?, origin)?;
    logs::put_events(connection, origin, &unsent.events).await?;
    logs::put_actions(connection, origin, &unsent.actions).await?;
    store.note_sent(&unsent);
    Ok(MovedLines {
        execution_logs: unsent.actions.len() as u64,
        audit_events: unsent.events.len() as u64,
    })
}

/// Sends all local records under the origin in the report.
pub(super) async fn push_all(
    connection: &Connection,
    store: &Scoped,
    report: &mut SyncReport,
    on: OnSync<'_>,
) -> Result<(), Error> {
    let plan = push::plan(connection, store, report, on).await?;
    // The memory moves to the database with all of its records.
    let row = |kind, id: &str, text: &str| Some(row_or_blank(kind, id, text));
    plan.carry_out(connection, row, report, on).await?;
    report.sum_up();
    Ok(())
}
