//! `memory add`, `memory export` and `memory import`: notes, and the memory as files; `memory prune` and `memory
//! purge`: removal of expired records, or of all.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::cli::ask::answer;
use crate::cli::context::Context;
use crate::cli::ending::wait;
use crate::cli::output::{Done, Page, Report, clean};
use crate::cli::share::remote::address;
use crate::model::error::UserError;
use crate::model::{Kind, MemoryType, SkillPath};
use crate::notes::{AddOptions, AddReport};
use crate::review::approve;
use crate::upkeep::{
    self, AgentsMdReport, ExportOptions, ExportReport, FileChange, ImportOptions, ImportReport,
    PruneReport, PurgeReport,
};
use crate::{notes, remote};

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
    let name = context.project().file_name().unwrap_or_default();
    let name = name.to_string_lossy();
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

/// Format of an export.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatName {
    /// JSON Lines: everything; `memory import` reads it
    Jsonl,
    /// The approved rules as a block in a Markdown file
    AgentsMd,
}

/// Export memories
///
/// `memory import` restores the JSON Lines, with tombstones and logs. Secrets are redacted.
/// An existing file is replaced only if it is an export.
///
/// `agents-md` keeps the approved rules between two markers of `AGENTS.md`, or of the file that
/// `--output` names. The rest of the file stays as it is.
///
/// ```console
/// $ memctl memory export --output memory.jsonl
/// $ memctl memory export --kind rule --output -
/// $ memctl memory export --format agents-md
/// ```
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Output file or `-` for stdout; agents-md writes `AGENTS.md` without it
    #[arg(long, short, value_name = "FILE|-")]
    output: Option<PathBuf>,
    /// Format of the export
    #[arg(long, default_value = "jsonl", value_name = "FORMAT")]
    format: FormatName,
    /// Export only records of this kind, and no logs; repeatable
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<Kind>,
    /// Export only records of this skill, and no logs
    #[arg(long, value_name = "SKILL")]
    skill: Option<String>,
    /// Replace a file even if it is not an export
    #[arg(long)]
    force: bool,
}

pub(crate) fn export(context: &Context, args: &ExportArgs) -> Done {
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
    let is_stdout = args.output.as_deref() == Some(Path::new("-"));
    let is_block = matches!(args.format, FormatName::AgentsMd);
    let refusal = if is_block
        && (is_stdout || !args.kinds.is_empty() || skill.is_some() || args.force)
    {
        Some((
            "`agents-md` replaces a block of a file with all approved rules: it takes only `--output FILE`",
            "memctl memory export --format agents-md --output AGENTS.md",
        ))
    } else if !is_block && args.output.is_none() {
        Some((
            "the export needs a file",
            "memctl memory export --output FILE",
        ))
    } else {
        (is_stdout && context.printer.is_json()).then_some((
            "the export and the report cannot both go to standard output",
            "memctl memory export --output FILE --json",
        ))
    };
    if let Some((message, hint)) = refusal {
        return Err(UserError::usage(message, hint));
    }
    let output = args.output.as_ref().filter(|_| !is_stdout);
    let output = output.map(|path| context.environment.absolute(path));
    if is_block {
        // The rules reach agents with it, which they do not while memory is off.
        if let Some(off) = &context.off {
            return Err(off.clone().into());
        }
        let root = context.places.project(&context.environment);
        let file = output.unwrap_or_else(|| root.join("AGENTS.md"));
        let workspace = context.workspace(None)?;
        let report = upkeep::export_agents_md(&workspace, &root, &file)?;
        return Ok(Box::new(report));
    }
    let options = ExportOptions {
        output,
        kinds: args.kinds.clone(),
        skill,
        force: args.force,
    };
    let workspace = context.workspace(None)?;
    let report = context.printer.counting("exporting", |reach| {
        let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let progress = &mut |done, of| reach(count(done), count(of));
        upkeep::export(&workspace, &options, progress)
    });
    Ok(Box::new(report?))
}

impl Report for AgentsMdReport {
    fn page(&self, page: &mut Page) {
        if self.rules == 0 && self.change == FileChange::Unchanged {
            return page.line(format!(
                "no approved rule for {}: nothing was written",
                self.path
            ));
        }
        page.document(self, &[]);
        if self.candidates > 0 {
            page.note("hint: ", "candidates wait for approval: memctl review");
        }
    }
}

impl Report for ExportReport {
    fn page(&self, page: &mut Page) {
        let Some(output) = &self.output else {
            return page.verbatim(self.text.as_deref().unwrap_or_default());
        };
        page.result("exported", &output.display().to_string(), self);
    }

    fn reveals(&self) -> bool {
        // Each record is redacted as JSON. Redaction of the whole line as text could remove more
        // and break the JSON.
        self.text.is_some()
    }
}

/// Import an export, or an `.agentura` directory
///
/// Reads exports of this program and `.agentura` directories byte for byte. Each entry is imported, already
/// known, or skipped with a reason. Existing records do not change, and a repeated import adds nothing.
/// Rules, lessons and notes that you did not write or approve on this machine wait for `memctl approve`.
/// `--trust` approves all of these, also those that an earlier import left waiting.
///
/// ```console
/// $ memctl memory import memory.jsonl
/// $ memctl memory import memory.jsonl --dry-run
/// $ memctl memory import ../other/.agentura --trust
/// ```
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// File or directory to import
    #[arg(value_name = "FILE|DIR")]
    path: PathBuf,
    /// Show what would be imported, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Import records that were deleted here, too
    #[arg(long)]
    restore: bool,
    /// Count the approvals that the file claims as yours
    #[arg(long)]
    trust: bool,
}

pub(crate) fn import(context: &Context, args: &ImportArgs) -> Done<ImportReport> {
    let options = ImportOptions {
        path: context.environment.absolute(&args.path),
        dry_run: args.dry_run,
        restore: args.restore,
        trust: args.trust,
    };
    let workspace = context.workspace(None)?;
    let import = || upkeep::import(&workspace, &options);
    let mut report = context.printer.during("importing", import)?;
    if !args.dry_run && !report.approved.is_empty() {
        let approved = approve(&workspace, &report.approved, None, None)?;
        let new = approved
            .into_iter()
            .filter(|one| !matches!(one.before, "approved" | "user"));
        report.approved = new.map(|one| one.id).collect();
    }
    Ok(report)
}

impl Report for ImportReport {
    fn page(&self, page: &mut Page) {
        page.document(self, &[]);
        if self.read > 0 && self.duplicates == self.read {
            page.line("All of it is already there.");
        }
        if self.observed > 0 && !self.dry_run {
            let hint = "what is not approved yet: memctl review, memctl approve ID, or import with --trust";
            page.note("hint: ", hint);
        }
    }
}
