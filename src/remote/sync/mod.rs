//! Synchronisation of a local store with the shared store: pushes the records of this workspace,
//! pulls those of others.
//!
//! - `push`, `pull`: what to send and to fetch, and its execution.
//! - `report`: report and progress.
//! - `vectors`: vectors of rows. `other_programs`: rows that other programs wrote.
//!
//! Invariants: an origin writes only its own rows. Every batch is a transaction, and every step is
//! idempotent, so an interrupted run can be repeated. Everything sent passes the redactor of the
//! store. A plan that removes more than a tenth of the records needs the user's consent.
//!
//! Deliberately absent: conflict resolution. There are no conflicts, since only the owner writes a
//! row.

mod other_programs;
mod pull;
mod push;
mod report;
mod vectors;

use std::time::Instant;

use crate::lessons;
use crate::model::error::message;
use crate::store::Scoped;

use super::address::Address;
use super::check::examine;
use super::connection::Connection;
use super::error::Error;
use super::logs;
use super::migrate;

pub(super) use other_programs::{has_rows_after, take_in_others};
pub use report::{Moved, MovedLines, OnSync, SyncReport, SyncStage, VectorsReport};
pub use vectors::{SharedEmbedder, fill_vectors};

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

/// Logs in. Fails unless the isolation check passes.
pub(super) async fn open(address: &Address) -> Result<Connection, Error> {
    let connection = Connection::open(address).await?;
    let proof = examine(&connection).await?;
    if proof.passed {
        return Ok(connection);
    }
    // A schema of another version fails the check too, and has a way out of its own.
    if let Err(error @ Error::Stopped(..)) = migrate::demand(&connection).await {
        return Err(error);
    }
    let wrong = proof.checks.into_iter().filter(|check| !check.ok);
    let wrong: Vec<String> = wrong.map(|c| format!("{}: {}", c.name, c.detail)).collect();
    Err(Error::stopped(
        format!(
            "`{}` does not isolate users, so nothing was sent: {}",
            proof.database,
            wrong.join("; ")
        ),
        "memctl remote check",
    ))
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
    let (origin, warning) = claim(&connection, store, options.dry_run, random).await?;
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
        Some(plan) => plan.carry_out(&connection, &mut report, on).await?,
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
    plan.carry_out(connection, report, on).await?;
    report.sum_up();
    Ok(())
}

const CANNOT_CLAIM: &str = "the name of the memory cannot be claimed";

/// Claim on a name.
pub(crate) struct Claimed {
    pub(crate) replica: String,
    /// `None` if the claim belongs to a workspace that pushes its files.
    pub(crate) tombstone_key: Option<String>,
}

/// Returns the claim on a name; `None` if it is free.
pub(crate) async fn claimed(
    connection: &Connection,
    origin: &str,
) -> Result<Option<Claimed>, Error> {
    let claimed = "select replica, tombstone_key from memctl.origins
        where user_id = (select memctl.current_user_id()) and origin = $1";
    let rows = connection.rows(CANNOT_CLAIM, claimed, &[&origin]).await?;
    Ok(rows.first().map(|row| Claimed {
        replica: row.get(0),
        tombstone_key: row.get(1),
    }))
}

/// Claims a name for a copy, unless it is taken.
pub(crate) async fn claim_for(
    connection: &Connection,
    origin: &str,
    replica: &str,
) -> Result<(), Error> {
    let claim =
        "insert into memctl.origins (origin, replica) values ($1, $2) on conflict do nothing";
    let claimed = connection
        .run(CANNOT_CLAIM, claim, &[&origin, &replica])
        .await;
    claimed.map(drop)
}

/// Claims the name of the workspace, or returns the replica name and a warning if another copy holds it.
///
/// The name is created once. A copied directory, or a clone with the identity in version control, has the same
/// name as the original. The first copy that pushes keeps it, and every other copy uses its replica name.
/// Otherwise each copy would remove the records that only the other one has.
async fn claim(
    connection: &Connection,
    store: &Scoped,
    dry_run: bool,
    random: &mut dyn FnMut() -> String,
) -> Result<(String, Option<String>), Error> {
    let (origin, replica) = if dry_run {
        let identity = store.identity().map(|identity| identity.origin);
        (
            identity.unwrap_or_default(),
            store.replica().unwrap_or_default(),
        )
    } else {
        let (identity, replica) = store.name_itself(random)?;
        (identity.origin, replica)
    };
    if !dry_run {
        claim_for(connection, &origin, &replica).await?;
    }
    let claimed = claimed(connection, &origin).await?;
    if claimed.is_none_or(|claimed| claimed.replica == replica) {
        return Ok((origin, None));
    }
    let warning = format!(
        "another copy of this workspace shares as `{origin}`; this one shares as `{replica}`, and what \
         both have is there twice"
    );
    Ok((replica, Some(warning)))
}
