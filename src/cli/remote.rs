//! `remote …`: the shared store, and who may log in to it.

use clap::{Args, Subcommand};

use crate::remote::{
    self, Address, CheckReport, InitReport, RemotePruneReport, StatusReport, UserReport,
};

use super::context::{Context, random, wait};
use super::error::CliError;
use super::join::{self, JoinArgs, LeaveArgs};
use super::output::{Align, Page, Report, Style, Table, plural};
use super::primary::DATABASE;

/// A PostgreSQL database that a team shares
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  memctl remote check")]
pub(super) enum RemoteCommand {
    Init(InitArgs),
    #[command(subcommand)]
    User(UserCommand),
    Check(CheckArgs),
    Status(StatusArgs),
    Join(JoinArgs),
    Leave(LeaveArgs),
}

/// Make the tables, functions and policies in a database, or bring them up to date
///
/// Nothing is changed where a table of another program has one of our names.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  memctl remote init --url postgres://postgres@db.example/memory\n\n\
        The URL is that of an administrator: a superuser, or a role that may create roles and\n\
        extensions. `--url -` reads it from standard input, where nobody else sees it."
)]
pub(super) struct InitArgs {
    /// The database, with the login of an administrator; `-` for standard input
    #[arg(long, value_name = "URL")]
    url: String,
}

/// Logins of users
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Example:\n  memctl remote user add ann --url postgres://postgres@db.example/memory"
)]
pub(super) enum UserCommand {
    Add(UserAddArgs),
}

/// Make a login; its URL, with the password, is printed this once
///
/// A user sees what is theirs and nothing else. Machines of one user, or a team that shares everything,
/// get a login each, all with the same `--user-id`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl remote user add ann --url postgres://postgres@db.example/memory\n  \
        memctl remote user add ann_laptop --user-id 2f1c6c1e-… --url -"
)]
pub(super) struct UserAddArgs {
    /// The name of the login: a–z, 0–9 and `_`
    name: String,
    /// The database, with the login of an administrator; `-` for standard input
    #[arg(long, value_name = "URL")]
    url: String,
    /// One more login for this user
    #[arg(long, value_name = "ID")]
    user_id: Option<String>,
}

/// Prove that nobody sees what is not theirs
///
/// Looks at the rights, and writes a row to every table and looks for it as another user; all of it is
/// rolled back. Exits with 1 where something fails.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  memctl remote check")]
pub(super) struct CheckArgs {
    /// The database, with a user's login; else `MEMCTL_DATABASE_URL` or `DATABASE_URL`
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

/// Show what you have in the shared store
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  memctl remote status")]
pub(super) struct StatusArgs {
    /// The database, with a user's login; else `MEMCTL_DATABASE_URL` or `DATABASE_URL`
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

pub(super) fn remote(
    context: &Context,
    command: RemoteCommand,
) -> Result<Box<dyn Report>, CliError> {
    match command {
        RemoteCommand::Init(args) => {
            let address = address(context, Some(&args.url))?;
            let spinner = context.printer.spinner("preparing the database");
            let report = wait(remote::init(&address))??;
            drop(spinner);
            Ok(Box::new(report))
        }
        RemoteCommand::User(UserCommand::Add(args)) => {
            let address = address(context, Some(&args.url))?;
            let user_id = args.user_id.as_deref();
            let report = wait(remote::add_user(&address, &args.name, user_id, random))??;
            Ok(Box::new(report))
        }
        RemoteCommand::Check(args) => {
            let address = address(context, args.url.as_deref())?;
            let spinner = context.printer.spinner("checking the database");
            let report = wait(remote::check(&address))??;
            drop(spinner);
            Ok(Box::new(report))
        }
        RemoteCommand::Status(args) => {
            let address = address(context, args.url.as_deref())?;
            Ok(Box::new(wait(remote::status(&address))??))
        }
        RemoteCommand::Join(args) => {
            let address = address(context, args.url.as_deref())?;
            join::join(context, &args, address)
        }
        RemoteCommand::Leave(args) => join::leave(context, &args),
    }
}

/// The database that is named on the command line, or by the environment.
pub(super) fn address(context: &Context, given: Option<&str>) -> Result<Address, CliError> {
    let url = match given {
        Some(given) => context.text(given)?,
        None => DATABASE
            .iter()
            .find_map(|name| context.environment.var(name))
            .ok_or_else(|| {
                let message =
                    "no database is named: neither `MEMCTL_DATABASE_URL` nor `DATABASE_URL` is set";
                CliError::usage(message, "memctl remote user add NAME --url ADMIN_URL")
            })?,
    };
    Ok(Address::parse(&url)?)
}

impl Report for InitReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        if self.applied.is_empty() {
            page.line(format!("Everything is there already: {}", self.database));
        }
        for migration in &self.applied {
            let name = format!("{} {}", migration.version, migration.name);
            page.styled(&[(Style::Good, "applied "), (Style::Plain, &name)]);
        }
        page.field("database", &self.database);
        page.field("schema", &self.schema.to_string());
        page.field(
            "server",
            &format!("PostgreSQL {}, pgvector {}", self.server, self.pgvector),
        );
        if !self.applied.is_empty() {
            page.line("\nNext: make a login for each user, with the same URL");
            page.line("  memctl remote user add NAME --url ADMIN_URL");
        }
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

impl Report for RemotePruneReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

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
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        page.field("user", &self.user_id);
        page.field("login", &self.login);
        // On a line of its own, to be copied: it must not be broken.
        page.line("\nThe URL, shown this once:\n");
        page.line(&self.url);
        page.line("\nNext: put it into `DATABASE_URL` on the user's machine and type");
        page.line("  memctl remote check");
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The password is what was asked for.
    fn reveals(&self) -> bool {
        true
    }
}

impl Report for CheckReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
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
            "rows are kept apart"
        } else {
            "do not share anything through it"
        };
        page.line(format!("\n{}: {said}", self.database));
    }

    fn exit_code(&self) -> u8 {
        u8::from(!self.passed)
    }
}

impl Report for StatusReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        let connection = match self.connection {
            "verified" => "encrypted, certificate verified",
            "encrypted" => "encrypted, certificate not verified (sslmode=verify-full does)",
            _ => "not encrypted",
        };
        page.field("database", &self.database);
        page.field("connection", connection);
        let pgvector = self.pgvector.as_deref().unwrap_or("–");
        page.field(
            "server",
            &format!("PostgreSQL {}, pgvector {pgvector}", self.server),
        );
        page.field("login", &self.role);
        page.field(
            "user",
            self.user_id
                .as_deref()
                .unwrap_or("nobody: this login belongs to no user"),
        );
        page.line("");
        let mut table = Table::new(&[("Table", Align::Left), ("Rows", Align::Right)], &[0]);
        for count in &self.tables {
            table.row([count.table.to_owned(), count.rows.to_string()]);
        }
        page.table(&table);
    }
}
