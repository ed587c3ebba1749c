//! Brings a memory and the shared store to the same state: what is this workspace's goes there, what is
//! others' comes here.
//!
//! - `origin`: the name that a workspace shares under.
//! - `manifest`: what is here, a line a record. `plan`: what of it has to go. Pure.
//! - `tables`: which table a kind lies in, and what stands in its columns.
//! - `push`, `pull`: the plan, done. `pull_batch`: rows on their way. `state`: how far was pulled.
//! - `vectors`: the vectors of what was pushed.
//!
//! Invariants: an origin writes only its own rows. Every batch is a transaction of its own, and each step
//! can be done twice: whoever was cut off begins anew, and what is there already is met as such. What
//! leaves has been through the redaction of the store. A plan that takes away much is not carried out
//! unasked.
//!
//! Deliberately absent: the resolution of conflicts. There are none, since nobody writes what is another's.

mod manifest;
mod origin;
mod plan;
mod pull;
mod pull_batch;
mod push;
mod state;
mod tables;
mod vectors;

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;

use crate::model::Kind;
use crate::store::Scoped;

use super::address::Address;
use super::check::check;
use super::connection::Connection;
use super::error::Error;
use super::limits;
use super::migrate;

pub(super) use manifest::is_fit;
pub(super) use tables::{blank, fields, table};
pub(super) use vectors::as_vector;
pub use vectors::{Vectorise, VectorsReport, fill_vectors};

/// What is to be done.
#[derive(Debug, Clone, Copy)]
pub struct SyncOptions {
    /// Which way.
    pub way: Way,
    /// Change nothing on either side.
    pub dry_run: bool,
    /// Do it even where much would go.
    pub may_shrink: bool,
}

/// Which way records go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// What is here goes there.
    Push,
    /// What others have sent comes here.
    Pull,
    /// Both.
    Both,
}

/// What is being done: so many records, out of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncStage {
    /// Compared with what is there.
    Compared(u64, u64),
    /// Sent.
    Pushed(u64, u64),
    /// Fetched.
    Pulled(u64, u64),
    /// Given a vector.
    Vectors(u64, u64),
}

/// Told what is being done.
pub type OnSync<'a> = &'a mut dyn FnMut(SyncStage);

/// What came of it.
#[derive(Debug, Default, Serialize)]
pub struct SyncReport {
    /// Host and name of the database.
    pub database: String,
    /// The name that this workspace shares under.
    pub origin: String,
    /// How many records went there, new or changed.
    pub pushed: u64,
    /// How many records came from others, new or changed.
    pub pulled: u64,
    /// How many removals went either way.
    pub tombstones: u64,
    /// The same, kind by kind; kinds of which nothing moved are left out.
    pub by_kind: BTreeMap<&'static str, Moved>,
    /// The vectors of what is shared; `None` where nothing was pushed.
    pub vectors: Option<VectorsReport>,
    /// Whether nothing was changed: then the numbers are what would move.
    pub dry_run: bool,
    /// Milliseconds.
    pub took_ms: f64,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

/// What moved of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// Records that went there.
    pub pushed: u64,
    /// Removals that went there.
    pub push_removed: u64,
    /// Records that came.
    pub pulled: u64,
    /// Removals that came.
    pub pull_removed: u64,
}

impl SyncReport {
    fn of(&mut self, kind: Kind) -> &mut Moved {
        self.by_kind.entry(kind.plural()).or_default()
    }

    /// What went out, and what came in: a number of each kind.
    pub fn told(&self) -> (Vec<String>, Vec<String>) {
        let told = |of: &dyn Fn(&Moved) -> u64| {
            let numbers = self.by_kind.iter().map(|(kind, moved)| (of(moved), kind));
            let told = numbers.filter(|(number, _)| *number > 0);
            told.map(|(number, kind)| format!("{number} {kind}"))
                .collect()
        };
        (
            told(&|moved| moved.pushed + moved.push_removed),
            told(&|moved| moved.pulled + moved.pull_removed),
        )
    }

    fn sum_up(&mut self) {
        self.by_kind.retain(|_, moved| *moved != Moved::default());
        let moved = || self.by_kind.values();
        self.pushed = moved().map(|moved| moved.pushed).sum();
        self.pulled = moved().map(|moved| moved.pulled).sum();
        self.tombstones = moved().map(|m| m.push_removed + m.pull_removed).sum();
    }
}

/// Logs in, and proves that rows are kept apart before one is sent.
pub(super) async fn open(address: &Address) -> Result<Connection, Error> {
    let proof = check(address).await?;
    if !proof.passed {
        let wrong = proof.checks.into_iter().filter(|check| !check.ok);
        let wrong: Vec<String> = wrong.map(|c| format!("{}: {}", c.name, c.detail)).collect();
        return Err(Error::Unsafe {
            database: proof.database,
            reason: wrong.join("; "),
        });
    }
    let connection = Connection::open(address).await?;
    migrate::demand(&connection).await?;
    Ok(connection)
}

/// Brings both sides together. `store` has to see everything, and has a redaction; `random` names a copy of
/// a workspace that has no name yet.
pub async fn sync(
    address: &Address,
    store: &Scoped,
    options: SyncOptions,
    random: &mut dyn FnMut() -> String,
    on: OnSync<'_>,
) -> Result<SyncReport, Error> {
    limits::named(
        address,
        brought_together(address, store, options, random, on),
    )
    .await
}

async fn brought_together(
    address: &Address,
    store: &Scoped,
    options: SyncOptions,
    random: &mut dyn FnMut() -> String,
    on: OnSync<'_>,
) -> Result<SyncReport, Error> {
    let start = Instant::now();
    let mut options = options;
    if store.primary_name()?.is_some() {
        // What lies in the database is there. A copy that compares itself with it may be behind, and would
        // take for removed what others have added.
        options.way = Way::Pull;
    }
    // Before anything else: two at once would each do what the other does.
    let puller = store.pull()?;
    let mut connection = open(address).await?;
    let mut report = SyncReport {
        database: address.shown(),
        dry_run: options.dry_run,
        ..SyncReport::default()
    };
    let claimed = origin::claim(&connection, store, options.dry_run, random).await?;
    report.origin = claimed.origin;
    report.warnings.extend(claimed.warning);
    let pull = pull::Pull {
        puller: &puller,
        origin: &report.origin.clone(),
    };
    // Both plans are made before either is carried out, so that a refusal leaves both sides alone.
    let push_plan = if options.way == Way::Pull {
        None
    } else {
        Some(push::plan(&connection, store, &mut report, on).await?)
    };
    let pull_plan = if options.way == Way::Push {
        None
    } else {
        Some(pull.plan(&connection).await?)
    };
    if !options.may_shrink {
        let plans = push_plan.iter().map(push::Plans::shrinking);
        for shrinking in plans.chain(pull_plan.iter().map(pull::PullPlan::shrinking)) {
            if shrinking.is_much() {
                return Err(Error::Shrinks(shrinking));
            }
        }
    }
    if let Some(plan) = push_plan {
        if options.dry_run {
            plan.count(&mut report);
        } else {
            plan.carry_out(&mut connection, store, &mut report, on)
                .await?;
        }
    }
    if let Some(plan) = pull_plan {
        if options.dry_run {
            plan.count(&mut report);
        } else {
            pull.carry_out(&connection, &plan, &mut report, on).await?;
        }
    }
    report.sum_up();
    report.took_ms = start.elapsed().as_secs_f64() * 1_000.0;
    Ok(report)
}

/// Sends all that is here under the name in the report.
pub(super) async fn push_all(
    connection: &mut Connection,
    store: &Scoped,
    report: &mut SyncReport,
    on: OnSync<'_>,
) -> Result<(), Error> {
    let plan = push::plan(connection, store, report, on).await?;
    plan.carry_out(connection, store, report, on).await?;
    report.sum_up();
    Ok(())
}

/// What would go of a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shrinking {
    /// How many records.
    pub going: u64,
    /// Out of how many.
    pub of: u64,
    /// Whether it is the shared store that would shrink, and not this memory.
    pub is_remote: bool,
}

impl Shrinking {
    /// Whether it is more than a tenth.
    fn is_much(self) -> bool {
        self.going * 10 > self.of
    }
}

impl std::fmt::Display for Shrinking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.is_remote {
            "this workspace shares would go from the shared store"
        } else {
            "others share would go from this memory"
        };
        write!(f, "{} of {} records that {place}", self.going, self.of)
    }
}
