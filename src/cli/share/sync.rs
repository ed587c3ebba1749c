//! `sync`: exchange of records with the shared store.

use std::time::Duration;

use clap::{Args, ValueEnum};
use dialoguer::Confirm;

use crate::cli::ask::ask;
use crate::cli::context::{Context, random};
use crate::cli::ending::wait;
use crate::cli::output::progress::stages;
use crate::cli::output::{Done, Page, Report, Table, plural};
use crate::cli::share::remote::address;
use crate::model::error::UserError;
use crate::remote;
use crate::remote::{Address, Direction, OnSync, SyncOptions, SyncReport, VectorsReport};
use crate::store::workspace::Workspace;

/// Maximum time for embedding in one sync. The next sync continues.
const VECTORS_WITHIN: Duration = Duration::from_secs(20);

/// Exchange records with a shared PostgreSQL database
///
/// Records keep their ids. Records from other workspaces are stored under `.agentura/remote/`, are
/// searchable at once, and cannot be changed here. An interrupted sync continues with the next one.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl sync --dry-run\n  memctl sync\n  memctl sync pull\n\n\
        The database is the one in `MEMCTL_DATABASE_URL` or `DATABASE_URL`, with the login that\n\
        `memctl remote user add` has created."
)]
pub(crate) struct SyncArgs {
    /// Sync in one direction only
    way: Option<OneWay>,
    /// Show what would be sent and fetched, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask, even if more than a tenth of either side would be deleted
    #[arg(long)]
    yes: bool,
    /// Database URL of a user; default: `MEMCTL_DATABASE_URL` or `DATABASE_URL`
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OneWay {
    /// Send local records
    Push,
    /// Fetch records that others share
    Pull,
}

pub(crate) fn sync(context: &Context, args: &SyncArgs) -> Done {
    let address = address(context, args.url.as_deref())?;
    let workspace = context.workspace(None)?;
    let options = SyncOptions {
        way: match args.way {
            None => Direction::Both,
            Some(OneWay::Push) => Direction::Push,
            Some(OneWay::Pull) => Direction::Pull,
        },
        dry_run: args.dry_run,
        // A dry run changes nothing, so it needs no confirmation.
        may_shrink: args.yes || args.dry_run,
    };
    let mut done = carry_out(context, &workspace, &address, options)?;
    if let Err(remote::Error::Shrinks(shrinking)) = &done
        && context.is_interactive()
        && confirmed(&shrinking.to_string())?
    {
        let may_shrink = true;
        let options = SyncOptions {
            may_shrink,
            ..options
        };
        done = carry_out(context, &workspace, &address, options)?;
    }
    let mut report = done?;
    if !args.dry_run {
        let (out, came) = report.summary();
        report
            .warnings
            .extend(remote::note_sync(&workspace.store, &out, &came)?);
    }
    Ok(Box::new(report))
}

/// Exchanges the records, then embeds the shared ones.
fn carry_out(
    context: &Context,
    workspace: &Workspace,
    address: &Address,
    options: SyncOptions,
) -> Result<Result<SyncReport, remote::Error>, UserError> {
    let on = &mut stages(&context.printer);
    // Records in a primary are in the database already; only vectors are missing.
    let has_sent = options.way != Direction::Pull || workspace.store.primary_name()?.is_some();
    wait(async {
        let store = workspace.store.clone();
        let mut report = remote::sync(address, &store, options, &mut random, on).await?;
        if has_sent && !options.dry_run {
            match share_vectors(workspace, address, &report.origin, on).await {
                Ok(vectors) => report.vectors = Some(vectors),
                // Keyword search finds rows without vectors.
                Err(error) => {
                    let warning = format!("shared without vectors: {error}");
                    report.warnings.push(warning);
                }
            }
        }
        Ok(report)
    })
}

async fn share_vectors(
    workspace: &Workspace,
    address: &Address,
    origin: &str,
    on: OnSync<'_>,
) -> Result<VectorsReport, String> {
    let shared_embedder = remote::shared_embedder(workspace).map_err(|error| error.to_string())?;
    let name = shared_embedder.name();
    let vectorise = &mut |texts: &[String]| shared_embedder.vectors(texts);
    let filled = remote::fill_vectors(address, origin, name, VECTORS_WITHIN, vectorise, on);
    filled.await.map_err(|error| error.to_string())
}

/// Asks the user to confirm the deletions.
fn confirmed(what: &str) -> Result<bool, UserError> {
    let question = Confirm::new().with_prompt(format!("{what}. Continue?"));
    ask(|| question.default(false).interact())
}

impl Report for SyncReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        if self.by_kind.is_empty() {
            page.line(format!("Already in sync with {}.", self.database));
        } else {
            let mut table = Table::new("|>Pushed|>Deleted there|>Pulled|>Deleted here", &[0]);
            for (kind, moved) in &self.by_kind {
                let number = |n: u64| {
                    if n == 0 {
                        "–".to_owned()
                    } else {
                        n.to_string()
                    }
                };
                table.row([
                    (*kind).to_owned(),
                    number(moved.pushed),
                    number(moved.push_removed),
                    number(moved.pulled),
                    number(moved.pull_removed),
                ]);
            }
            page.table(&table);
            if self.dry_run {
                page.dim("Dry run: nothing was transferred.");
            }
        }
        let vectors = self.vectors.as_ref();
        if let Some(vectors) = vectors.filter(|v| v.made + v.waiting > 0) {
            page.line(format!(
                "{} added to shared records; {} left for the next sync.",
                plural(vectors.made, "vector"),
                vectors.waiting
            ));
        }
    }
}
