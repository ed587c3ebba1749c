//! `remote …`: the shared store, and its logins.

use std::sync::Arc;

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::cli::context::{Context, random};
use crate::cli::database::{self, DATABASE};
use crate::cli::ending::wait;
use crate::cli::output::progress::stages;
use crate::cli::output::{Done, Page, Report, Style, Table, plural};
use crate::model::Kind;
use crate::model::error::UserError;
use crate::remote;
use crate::remote::{
    Address, CheckReport, InitReport, JoinReport, PgStore, RemotePruneReport, StatusReport,
    UserReport,
};

/// Set up and check a PostgreSQL database that a team shares
///
/// An administrator runs `init` once and `user add` for each login. A user puts the printed URL into
/// `DATABASE_URL`, runs `check`, and then `memctl sync`, or `join` on a server.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  memctl remote init --url postgres://postgres@db.example/memory\n  \
        memctl remote check"
)]
pub(crate) enum RemoteCommand {
    Init(InitArgs),
    #[command(subcommand)]
    User(UserCommand),
    /// Check that no user can see another user's records
    ///
    /// Checks the privileges, then writes a row to every table and searches for it as another user;
    /// rolls everything back. Exits with 1 if a check fails.
    #[command(after_help = "Examples:\n  memctl remote check\n  \
        memctl remote check --url postgres://memctl_ann@db.example/memory")]
    Check(UserUrl),
    /// Show your records in the shared store
    ///
    /// Also shows the server, the version of its schema, your role, and how the connection is secured.
    #[command(after_help = "Examples:\n  memctl remote status\n  memctl remote status --json")]
    Status(UserUrl),
    Join(JoinArgs),
    Leave(LeaveArgs),
}

/// Create or update the tables, functions and policies in a database
///
/// Changes nothing if a table of another program has one of the names.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl remote init --url postgres://postgres@db.example/memory\n  \
        echo \"$ADMIN_URL\" | memctl remote init --url -\n\n\
        The URL is that of an administrator: a superuser, or a role that may create roles and\n\
        extensions. `--url -` reads it from standard input, where nobody else sees it."
)]
pub(crate) struct InitArgs {
    /// Database URL with an administrator's login; `-` for standard input
    #[arg(long, value_name = "URL")]
    url: String,
}

/// Manage logins of users
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  memctl remote user add ann --url postgres://postgres@db.example/memory\n  \
        memctl remote user add ann_laptop --user-id 2f1c6c1e-… --url -"
)]
pub(crate) enum UserCommand {
    Add(UserAddArgs),
}

/// Create a login; prints its URL, with the password, once
///
/// A user sees only their own records. Machines of one user, or a team that shares everything, get
/// one login each, all with the same `--user-id`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl remote user add ann --url postgres://postgres@db.example/memory\n  \
        memctl remote user add ann_laptop --user-id 2f1c6c1e-… --url -"
)]
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
    database::forget(&context.environment);
    match command {
        RemoteCommand::Init(args) => {
            let address = address(context, Some(&args.url))?;
            let message = "preparing the database";
            let report = context
                .printer
                .during(message, || wait(remote::init(&address)));
            Ok(Box::new(report??))
        }
        RemoteCommand::User(UserCommand::Add(args)) => {
            let address = address(context, Some(&args.url))?;
            let user_id = args.user_id.as_deref();
            let report = wait(remote::add_user(&address, &args.name, user_id, random))??;
            Ok(Box::new(report))
        }
        RemoteCommand::Check(args) => {
            let address = address(context, args.url.as_deref())?;
            let message = "checking the database";
            let report = context
                .printer
                .during(message, || wait(remote::check(&address)));
            Ok(Box::new(report??))
        }
        RemoteCommand::Status(args) => {
            let address = address(context, args.url.as_deref())?;
            Ok(Box::new(wait(remote::status(&address))??))
        }
        RemoteCommand::Join(args) => {
            let address = address(context, args.of.url.as_deref())?;
            join(context, &args, address)
        }
        RemoteCommand::Leave(args) => leave(context, &args),
    }
}

/// Returns the database from the command line, else from the environment.
pub(crate) fn address(context: &Context, given: Option<&str>) -> Result<Address, UserError> {
    let url = match given {
        Some(given) => context.text(given)?,
        None => DATABASE
            .iter()
            .find_map(|name| context.environment.var(name))
            .ok_or_else(|| {
                let message =
                    "no database URL: neither `MEMCTL_DATABASE_URL` nor `DATABASE_URL` is set";
                UserError::usage(message, "memctl remote user add NAME --url ADMIN_URL")
            })?,
    };
    Ok(Address::parse(&url)?)
}

impl Report for InitReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        if self.applied.is_empty() {
            page.line(format!("Already up to date: {}", self.database));
        }
        for migration in &self.applied {
            page.good(
                "applied ",
                format!("{} {}", migration.version, migration.name),
            );
        }
        page.fields([
            ("database", self.database.clone()),
            ("schema", self.schema.to_string()),
            (
                "server",
                format!("PostgreSQL {}, pgvector {}", self.server, self.pgvector),
            ),
        ]);
        if !self.applied.is_empty() {
            page.line("\nNext: create a login for each user, with the same URL");
            page.line("  memctl remote user add NAME --url ADMIN_URL");
        }
    }
}

impl Report for RemotePruneReport {
    fn page(&self, page: &mut Page) {
        let verb = if self.dry_run {
            "would be removed"
        } else {
            "removed"
        };
        let whose = if self.of_all { " of all users" } else { "" };
        page.line(format!(
            "{}{whose} {verb} from {}.",
            plural(self.removed, "expired row"),
            self.database
        ));
    }
}

impl Report for UserReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
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
        let said = if self.passed {
            "users are isolated from each other"
        } else {
            "do not use this database for sharing"
        };
        page.line(format!("\n{}: {said}", self.database));
    }
}

impl Report for StatusReport {
    fn page(&self, page: &mut Page) {
        let connection = match self.connection {
            "verified" => "encrypted, certificate verified",
            "encrypted" => "encrypted, certificate not verified (sslmode=verify-full verifies it)",
            _ => "not encrypted",
        };
        let pgvector = self.pgvector.as_deref().unwrap_or("–");
        let nobody = "none: this login is not mapped to a user";
        page.fields([
            ("database", self.database.as_str()),
            ("connection", connection),
            (
                "server",
                &format!("PostgreSQL {}, pgvector {pgvector}", self.server),
            ),
            ("login", &self.role),
            ("user", self.user_id.as_deref().unwrap_or(nobody)),
        ]);
        page.line("");
        let mut table = Table::new("Table|>Rows", &[0]);
        for count in &self.tables {
            table.row([count.table.to_owned(), count.rows.to_string()]);
        }
        page.table(&table);
    }
}

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
    #[command(flatten)]
    of: UserUrl,
}

pub(crate) fn join(context: &Context, args: &JoinArgs, address: Address) -> Done {
    let workspace = context.workspace_over_files(None)?;
    let mut on = stages(&context.printer);
    let mut report: JoinReport = wait(async {
        let store = workspace.store.clone();
        remote::join(&address, &store, &args.name, &mut random, &mut on).await
    })??;
    drop(on);
    let Some(name) = workspace.store.primary_name()? else {
        return Ok(Box::new(report));
    };
    let primary = Arc::new(PgStore::new(address, name)?);
    let store = workspace.store.clone().backed_by(primary);
    context.printer.during("fetching", || store.catch_up())?;
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
        let (records, memory, database) =
            (plural(self.records, "record"), &self.memory, &self.database);
        page.line(if self.created {
            format!("Created `{memory}` in {database} with {records}.")
        } else {
            format!("This directory is a copy of `{memory}` in {database}: {records}.")
        });
        page.dim("Every command needs the database from now on: keep `DATABASE_URL` set.");
    }
}
