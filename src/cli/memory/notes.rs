//! `memory add`, `memory prune`, `memory purge`: adds typed memories, and removes expired records or all.

use clap::Args;

use crate::cli::ask::answer;
use crate::cli::context::Context;
use crate::cli::ending::wait;
use crate::cli::output::{Done, Page, Report, clean};
use crate::cli::share::remote::address;
use crate::model::MemoryType;
use crate::model::error::UserError;
use crate::notes::{AddOptions, AddReport};
use crate::upkeep::{PruneReport, PurgeReport};
use crate::{notes, remote, upkeep};

/// Add a typed memory
///
/// The metadata is validated against the type, as docs/memories.md has it; unknown fields are kept unchanged.
/// Adding the same memory twice stores it once. Secrets, and text between `private` tags, are removed.
///
/// ```console
/// $ memctl memory add --type brand_memory --content "Voice: calm" --metadata '{"tone": ["calm"]}'
/// $ memctl memory add --type task_memory --content - --metadata @task.json --expires-at 30d
/// ```
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Memory type
    #[arg(long = "type", value_name = "TYPE")]
    memory_type: MemoryType,
    /// Text of the memory; `-` reads standard input
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true)]
    content: String,
    /// Metadata as a JSON object; `@FILE` reads a file and `-` standard input
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    metadata: Option<String>,
    /// Expiry: `2027-01-31`, `2027-01-31T12:00:00Z`, `30d` or `never`. Default: 90 days for
    /// `task_memory` (the setting `memory.task_days`), `never` for others
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    expires_at: Option<String>,
    /// Memory whose place this one takes (can be repeated); it expires now
    #[arg(long, value_name = "ID")]
    replaces: Vec<String>,
}

pub(crate) fn add(context: &Context, args: AddArgs) -> Done<AddReport> {
    let metadata = args.metadata.as_deref();
    Context::one_from_input([("--content", Some(&args.content)), ("--metadata", metadata)])?;
    let options = AddOptions {
        memory_type: args.memory_type,
        content: context.text(&args.content)?,
        metadata: context.json_of("--metadata", metadata)?,
        expires_at: args.expires_at,
        replaces: args.replaces,
    };
    let workspace = context.workspace(None)?;
    if !context.environment.is_of_agent() {
        return Ok(notes::add_memory(&workspace, &options)?);
    }
    if !options.replaces.is_empty() {
        return Err(UserError::usage(
            "an agent replaces no note",
            "let a person run this command, or add the note without `--replaces`",
        ));
    }
    let mut report = notes::add_observed(&workspace, &options)?;
    report.warnings.push(format!(
        "an agent has added it: it is data until a person runs `memctl approve {}`",
        report.id
    ));
    Ok(report)
}

impl Report for AddReport {
    fn page(&self, page: &mut Page) {
        let done = if self.added { "added" } else { "kept" };
        page.result(done, &self.id, self);
    }
}

/// Delete expired records from the disk
///
/// Expired records are already hidden from every command. This deletes them with their terms and
/// vectors in the index. Their ids are never reused.
///
/// ```console
/// $ memctl memory prune --dry-run
/// $ memctl memory prune --json
/// ```
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Delete them in the shared store; with an administrator's URL, for all users
    ///
    /// The database is the one in `MEMCTL_DATABASE_URL` or `DATABASE_URL`.
    #[arg(long)]
    remote: bool,
}

pub(crate) fn prune(context: &Context, args: &PruneArgs) -> Done {
    if args.remote {
        let address = address(context, None)?;
        return Ok(Box::new(wait(remote::prune(&address, args.dry_run))??));
    }
    Ok(Box::new(upkeep::prune(
        &context.workspace(None)?,
        args.dry_run,
    )?))
}

impl Report for PruneReport {
    fn page(&self, page: &mut Page) {
        if self.removed.is_empty() {
            page.line("Nothing has expired.");
        }
        page.document(self, &[]);
    }
}

/// Delete all records permanently
///
/// Removes every record with its text, vectors, index, logs, tombstones and copies. Keeps settings,
/// prompts, the name of the workspace, skills and unknown files, and lists them. With `--user` or
/// `--scope`, removes only visible records. Only an export can restore them.
///
/// ```console
/// $ memctl memory purge --dry-run
/// $ memctl memory purge --yes
/// $ memctl memory purge --yes --user alice
/// ```
#[derive(Debug, Args)]
pub(crate) struct PurgeArgs {
    /// Delete without asking
    #[arg(long)]
    yes: bool,
    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn purge(context: &Context, args: &PurgeArgs) -> Done<PurgeReport> {
    let mut workspace = context.workspace(None)?;
    context.needs_memory()?;
    // A purge works while memory is switched off.
    workspace.store = workspace.store.even_if_disabled();
    if !args.dry_run && !args.yes {
        confirm(context, &upkeep::purge(&workspace, true)?)?;
    }
    Ok(upkeep::purge(&workspace, args.dry_run)?)
}

/// Asks the user to type the name of the workspace.
fn confirm(context: &Context, plan: &PurgeReport) -> Result<(), UserError> {
    if !context.is_interactive() {
        return Err(UserError::usage(
            "confirmation is required, and there is no terminal to ask on",
            "memctl memory export --output memory.jsonl, then memctl memory purge --yes",
        ));
    }
    let project = context
        .places
        .memory
        .parent()
        .and_then(|path| path.file_name());
    let name = project.unwrap_or_default().to_string_lossy().into_owned();
    context.printer.note_page(|page| plan.page(page));
    let prompt = format!(
        "This cannot be undone. Type `{}` to confirm: ",
        clean(&name)
    );
    if answer(&prompt)?.is_some_and(|typed| typed == name) {
        return Ok(());
    }
    Err(UserError::usage(
        "the name does not match the workspace; nothing was deleted",
        "memctl memory purge",
    ))
}

impl Report for PurgeReport {
    fn page(&self, page: &mut Page) {
        let done = if self.dry_run {
            "would delete"
        } else {
            "deleted"
        };
        page.result(done, &self.directory, self);
    }
}
