//! `remote join`, `remote leave`: a directory as a copy of a memory in a database.

use std::sync::Arc;

use clap::Args;
use serde::Serialize;

use crate::cli::context::{Context, random};
use crate::cli::interrupt::wait;
use crate::cli::output::{Done, Page, Report, plural};
use crate::cli::progress::Bars;
use crate::model::Kind;
use crate::remote::{self, Address, JoinReport, PgStore};

/// Make this directory a copy of a memory in the database
///
/// Every copy reads its own files and writes through the database, so that many servers share one
/// memory: every later read sees an acknowledged write. A memory that does not exist yet starts
/// with the records of this directory. Skills are files, and stay in place.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl remote join support\n  memctl remote join support && memctl serve\n\n\
        The database is the one in `MEMCTL_DATABASE_URL` or `DATABASE_URL`, with a user's login; every\n\
        later command needs it too. For a laptop, which is offline at times, use `memctl sync` instead."
)]
pub(crate) struct JoinArgs {
    /// Name of the memory, the same on all of the user's machines
    name: String,
    /// Database URL of a user; default: `MEMCTL_DATABASE_URL` or `DATABASE_URL`
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
}

pub(crate) fn join(context: &Context, args: &JoinArgs, address: Address) -> Done {
    let workspace = context.workspace_over_files(None)?;
    let mut bars = Bars::new(&context.printer);
    let mut report: JoinReport = wait(async {
        let store = workspace.store.clone();
        let on = &mut |stage| bars.on(stage);
        remote::join(&address, &store, &args.name, &mut random, on).await
    })??;
    drop(bars);
    let Some(name) = workspace.store.primary_name()? else {
        return Ok(Box::new(report));
    };
    let primary = Arc::new(PgStore::new(address, name)?);
    let spinner = context.printer.spinner("fetching");
    let store = workspace.store.clone().backed_by(primary);
    store.catch_up()?;
    drop(spinner);
    for kind in Kind::ALL {
        report.records += store.count(kind)?;
    }
    Ok(Box::new(report))
}

/// Make this directory a separate memory again, with its current records
///
/// The database and other copies do not change. Later writes stay in this directory.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl remote leave\n  memctl remote leave --json")]
pub(crate) struct LeaveArgs {}

pub(crate) fn leave(context: &Context, _args: &LeaveArgs) -> Done {
    let workspace = context.workspace_over_files(None)?;
    let left = workspace.store.primary_name()?;
    if left.is_some() {
        workspace.store.leave_primary(&mut random)?;
    }
    Ok(Box::new(LeaveReport {
        memory: left.as_ref().map(|name| name.origin.clone()),
        database: left.map(|name| name.shown),
    }))
}

/// Result of leaving a primary.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct LeaveReport {
    /// Name of the memory; `None` if the directory was no copy.
    memory: Option<String>,
    database: Option<String>,
}

impl Report for LeaveReport {
    fn page(&self, page: &mut Page) {
        match (&self.memory, &self.database) {
            (Some(memory), Some(database)) => page.line(format!(
                "This memory is stored in local files again; `{memory}` in {database} is unchanged."
            )),
            _ => page.line("This memory is stored in local files."),
        }
    }
}

impl Report for JoinReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        let records = plural(self.records, "record");
        let line = if self.created {
            format!(
                "Created `{}` in {} with {records}.",
                self.memory, self.database
            )
        } else {
            format!(
                "This directory is a copy of `{}` in {}: {records}.",
                self.memory, self.database
            )
        };
        page.line(line);
        let next = "Every command needs the database from now on: keep `DATABASE_URL` set.";
        page.dim(next);
    }
}
