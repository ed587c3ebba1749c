//! `remote …` and `sync`: the shared store, its logins, and the exchange of records with it.

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::cli::ask::confirms;
use crate::cli::connections::{database_url, no_url};
use crate::cli::context::{Context, random};
use crate::cli::ending::wait;
use crate::cli::output::printer::stages;
use crate::cli::output::{Done, Page, Report, Style};
use crate::model::error::UserError;
use crate::remote::{
    self, Address, CheckReport, Direction, InitReport, JoinReport, OnSync, PgStore,
    RemotePruneReport, SharedEmbedder, StatusReport, SyncOptions, SyncReport, UserReport,
    VectorsReport,
};
use crate::store::workspace::Workspace;
use memctl_search::embedder::Patience;

/// Set up and check a PostgreSQL database that a team shares
///
/// An administrator runs `init` once and `user add` for each login. A user puts the printed URL into
/// `DATABASE_URL`, runs `check`, and then `memctl sync`, or `join` on a server.
///
/// ```console
/// $ memctl remote init --url postgres://postgres@db.example/memory
/// $ memctl remote check
/// ```
#[derive(Debug, Subcommand)]
pub(crate) enum RemoteCommand {
    Init(InitArgs),
    #[command(subcommand)]
    User(UserCommand),
    /// Check that no user can see another user's records
    ///
    /// Checks the privileges, then writes a row to every table and searches for it as another user;
    /// rolls everything back. Exits with 1 if a check fails.
    ///
    /// ```console
    /// $ memctl remote check
    /// $ memctl remote check --url postgres://memctl_ann@db.example/memory
    /// ```
    Check(UserUrl),
    /// Show your records in the shared store
    ///
    /// Also shows the server, the version of its schema, your role, and how the connection is secured.
    ///
    /// ```console
    /// $ memctl remote status
    /// $ memctl remote status --json
    /// ```
    Status(UserUrl),
    Join(JoinArgs),
    /// Make this directory a separate memory again, with its current records
    ///
    /// The database and other copies do not change. Later writes stay in this directory.
    ///
    /// ```console
    /// $ memctl remote leave
    /// $ memctl remote leave --json
    /// ```
    Leave,
}

/// Create or update the tables, functions and policies in a database
///
/// Changes nothing if a table of another program has one of the names.
///
/// The URL is that of an administrator: a superuser, or a role that may create roles and
/// extensions. `--url -` reads it from standard input, where nobody else sees it.
///
/// ```console
/// $ memctl remote init --url postgres://postgres@db.example/memory
/// $ echo "$ADMIN_URL" | memctl remote init --url -
/// ```
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Database URL with an administrator's login; `-` for standard input
    #[arg(long, value_name = "URL")]
    url: String,
}

/// Manage logins of users
///
/// ```console
/// $ memctl remote user add ann --url postgres://postgres@db.example/memory
/// $ memctl remote user add ann_laptop --user-id 2f1c6c1e-… --url -
/// ```
#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    Add(UserAddArgs),
}

/// Create a login; prints its URL, with the password, once
///
/// A user sees only their own records. Machines of one user, or a team that shares everything, get
/// one login each, all with the same `--user-id`.
///
/// ```console
/// $ memctl remote user add ann --url postgres://postgres@db.example/memory
/// $ memctl remote user add ann_laptop --user-id 2f1c6c1e-… --url -
/// ```
#[derive(Debug, Args)]
pub(crate) struct UserAddArgs {
    /// Name of the login: a–z, 0–9 and `_`
    name: String,
    /// Database URL with an administrator's login; `-` for standard input
    #[arg(long, value_name = "URL")]
    url: String,
    /// Add one more login for this user
    #[arg(long, value_name = "ID")]
    user_id: Option<String>,
}

/// Database of a user.
#[derive(Debug, Args)]
pub(crate) struct UserUrl {
    /// Database URL of a user; default: `MEMCTL_DATABASE_URL` or `DATABASE_URL`
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

pub(crate) fn remote(context: &Context, command: RemoteCommand) -> Done {
    if let Some(state_dir) = &context.environment.state_dir {
        remote::forget_answers(state_dir);
    }
    let (printer, given) = (&context.printer, |url| address(context, url));
    Ok(match command {
        RemoteCommand::Init(args) => {
            let address = given(Some(&args.url))?;
            let init = || wait(remote::init(&address));
            Box::new(printer.during("preparing the database", init)??)
        }
        RemoteCommand::User(UserCommand::Add(args)) => {
            let address = given(Some(&args.url))?;
            let user_id = args.user_id.as_deref();
            let adding = remote::add_user(&address, &args.name, user_id, random);
            Box::new(wait(adding)??)
        }
        RemoteCommand::Check(args) => {
            let address = given(args.url.as_deref())?;
            let check = || wait(remote::check(&address));
            Box::new(printer.during("checking the database", check)??)
        }
        RemoteCommand::Status(args) => {
            let address = given(args.url.as_deref())?;
            Box::new(wait(remote::status(&address))??)
        }
        RemoteCommand::Join(args) => {
            let address = given(args.of.url.as_deref())?;
            Box::new(join(context, &args.name, address)?)
        }
        RemoteCommand::Leave => {
            let store = context.workspace_over_files(None)?.store;
            let left = store.primary_name()?;
            if left.is_some() {
                store.leave_primary(&mut random)?;
            }
            Box::new(LeaveReport {
                memory: left.as_ref().map(|name| name.origin.clone()),
                database: left.map(|name| name.shown),
            })
        }
    })
}

/// Returns the database from the command line, else from the environment.
pub(crate) fn address(context: &Context, given: Option<&str>) -> Result<Address, UserError> {
    let found = match given {
        Some(given) => context.text(given)?,
        None => database_url(&context.environment)
            .map(|(_, url)| url)
            .ok_or_else(|| {
                no_url("no database URL: neither `MEMCTL_DATABASE_URL` nor `DATABASE_URL` is set")
            })?,
    };
    Ok(Address::parse(&found)?)
}

impl Report for InitReport {
    fn page(&self, page: &mut Page) {
        page.document(self, &[]);
        if !self.applied.is_empty() {
            page.line("\nNext: create a login for each user, with the same URL");
            page.line("  memctl remote user add NAME --url ADMIN_URL");
        }
    }
}

impl Report for RemotePruneReport {}

impl Report for UserReport {
    fn page(&self, page: &mut Page) {
        page.field("user", &self.user_id);
        page.field("login", &self.login);
        // A separate line does not wrap, so that the URL can be copied.
        page.line("\nThe URL, shown only once:\n");
        page.line(&self.url);
        page.line("\nNext: put it into `DATABASE_URL` on the user's machine and run");
        page.line("  memctl remote check");
    }

    /// The password is the requested output.
    fn reveals(&self) -> bool {
        true
    }
}

impl Report for CheckReport {
    fn page(&self, page: &mut Page) {
        page.fails_if(!self.passed);
        for check in &self.checks {
            let (style, mark) = if check.ok {
                (Style::Good, "ok     ")
            } else {
                (Style::Bad, "failed ")
            };
            let name = format!("{:<14}", check.name);
            page.styled(&[
                (style, mark),
                (Style::Strong, &name),
                (Style::Plain, &check.detail),
            ]);
        }
        let verdict = if self.passed {
            "users are isolated from each other"
        } else {
            "do not use this database for sharing"
        };
        page.line(format!("{}: {verdict}", self.database));
    }
}

impl Report for StatusReport {
    fn page(&self, page: &mut Page) {
        let connection = match self.connection {
            "verified" => "encrypted, certificate verified",
            "encrypted" => "encrypted, certificate not verified (sslmode=verify-full verifies it)",
            _ => "not encrypted",
        };
        page.field("connection", connection);
        page.document(self, &[self.connection]);
        if self.user_id.is_none() {
            page.warn("no user: ", "this login is not mapped to a user");
        }
    }
}

/// Make this directory a copy of a memory in the database
///
/// Every copy reads its own files and writes through the database, so that many servers share one
/// memory: every later read sees an acknowledged write. A memory that does not exist yet starts
/// with the records of this directory. Skills are files, and stay in place.
///
/// The database is the one in `MEMCTL_DATABASE_URL` or `DATABASE_URL`, with a user's login; every
/// later command needs it too. For a laptop, which is offline at times, use `memctl sync` instead.
///
/// ```console
/// $ memctl remote join support
/// $ memctl remote join support && memctl serve
/// ```
#[derive(Debug, Args)]
pub(crate) struct JoinArgs {
    /// Name of the memory, the same on all of the user's machines
    name: String,
    #[command(flatten)]
    of: UserUrl,
}

pub(crate) fn join(context: &Context, name: &str, address: Address) -> Done<JoinReport> {
    let workspace = context.workspace_over_files(None)?;
    let mut on = stages(&context.printer);
    let made = &mut random;
    let joining = remote::join(&address, &workspace.store, name, made, &mut on);
    let mut report: JoinReport = wait(joining)??;
    drop(on);
    let Some(name) = workspace.store.primary_name()? else {
        return Ok(report);
    };
    let primary = Arc::new(PgStore::new(address, name)?);
    let store = workspace.store.clone().backed_by(primary);
    context.printer.during("fetching", || store.catch_up())?;
    report.records = store.record_count()?;
    Ok(report)
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
        page.document(self, &[]);
        page.line("This memory is stored in local files.");
    }
}

impl Report for JoinReport {
    fn page(&self, page: &mut Page) {
        page.document(self, &[]);
        page.dim("Every command needs the database from now on: keep `DATABASE_URL` set.");
    }
}

/// Maximum time for embedding in one sync. The next sync continues.
const VECTORS_WITHIN: Duration = Duration::from_secs(20);

/// Exchange records with a shared PostgreSQL database
///
/// Records keep their ids. Records from other workspaces are stored under `.agentura/remote/`, are
/// searchable at once, and cannot be changed here. An interrupted sync continues with the next one.
///
/// The database is the one in `MEMCTL_DATABASE_URL` or `DATABASE_URL`, with the login that
/// `memctl remote user add` has created.
///
/// ```console
/// $ memctl sync --dry-run
/// $ memctl sync
/// $ memctl sync pull
/// ```
#[derive(Debug, Args)]
pub(crate) struct SyncArgs {
    /// Sync in one direction only
    way: Option<Direction>,
    /// Show what would be sent and fetched, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask, even if more than a tenth of either side would be deleted
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    of: UserUrl,
}

pub(crate) fn sync(context: &Context, args: &SyncArgs) -> Done<SyncReport> {
    let address = address(context, args.of.url.as_deref())?;
    let workspace = context.workspace(None)?;
    let options = SyncOptions {
        way: args.way.unwrap_or(Direction::Both),
        dry_run: args.dry_run,
        // A dry run changes nothing, so it needs no confirmation.
        may_shrink: args.yes || args.dry_run,
    };
    let mut done = carry_out(context, &workspace, &address, options)?;
    if let Err(remote::Error::Shrinks(shrinking)) = &done
        && context.is_interactive()
        && confirms(&format!("{shrinking}. Continue?"), false)?
    {
        let options = SyncOptions {
            may_shrink: true,
            ..options
        };
        done = carry_out(context, &workspace, &address, options)?;
    }
    Ok(done?)
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
                Err(error) => report
                    .warnings
                    .push(format!("shared without vectors: {error}")),
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
    let embedder = SharedEmbedder::open(&workspace.providers.embedder, Patience::Index);
    let embedder = embedder.map_err(|error| error.to_string())?;
    let filled = remote::fill_vectors(address, origin, &embedder, VECTORS_WITHIN, on);
    filled.await.map_err(|error| error.to_string())
}

impl Report for SyncReport {}
