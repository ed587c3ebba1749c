//! `memory …`: commands on the memory as a whole: status, prompt, switch, audit log. Beside them, those on records.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use memctl_files::named;
use serde::Serialize;

use crate::cli::arguments::NoArgs;
use crate::cli::context::{Context, Off};
use crate::cli::memory::change::{ConflictsArgs, ResolveArgs, conflicts, resolve};
use crate::cli::memory::transfer::{
    AddArgs, ExportArgs, ImportArgs, PruneArgs, PurgeArgs, add, export, import, prune, purge,
};
use crate::cli::opening;
use crate::cli::output::{Done, Page, Report, Style, Table, plural, product};
use crate::cli::review::decisions::{PromoteArgs, promote};
use crate::cli::start::places;
use crate::model::error::{Kind as ErrorKind, UserError};
use crate::model::{Kind, Scope, Viewer};
use crate::serve::arguments::TYPED;
use crate::skills::{self, PromptReport};
use crate::store::{Audited, Scoped};
use crate::upkeep::{self, AuditReport, StatusReport};

pub(crate) mod change;
pub(crate) mod list;
pub(crate) mod search;
pub(crate) mod transfer;

commands! {
    /// Status, prompts, notes, audit, import, export, purge, disable
    ///
    /// Commands on the memory as a whole. `memctl search`, `list`, `show`, `edit` and `forget` work on
    /// records.
    ///
    /// ```console
    /// $ memctl memory status
    /// $ memctl memory export --output backup.jsonl
    /// ```
    MemoryCommand, memory, |context|
    /// Show if memory is on, where it is, and how much it holds
    ///
    /// Also shows which agents have the hooks, and if files or a database store the records.
    ///
    /// ```console
    /// $ memctl memory status
    /// $ memctl memory status --json | jq .procedures
    /// ```
    Status(_args: NoArgs) => status(context);
    Purge(args: PurgeArgs) => purge(context, &args);
    /// Switch memory off: nothing is read, written or lost
    ///
    /// `run` works without rules and records nothing. Hooks and `hint` print nothing. Other commands
    /// report that memory is off; `memory status`, `export`, `purge` and `enable` work. The switch is
    /// the file `.agentura/disabled`. `MEMCTL_MEMORY=off` does the same for one process.
    ///
    /// With `--user`, calls of this user read and write nothing, here and at `memctl serve`. Others see no
    /// difference.
    ///
    /// ```console
    /// $ memctl memory disable
    /// $ memctl memory disable --user ada
    /// $ MEMCTL_MEMORY=off memctl run hr/resume-screen
    /// ```
    Disable(_args: NoArgs) => switch(context, true);
    /// Switch memory on
    ///
    /// With `--user`, for this user only.
    ///
    /// ```console
    /// $ memctl memory enable
    /// $ memctl memory enable --user ada
    /// ```
    Enable(_args: NoArgs) => switch(context, false);
    Prompt(args: PromptArgs) => prompt(context, &args);
    Add(args: AddArgs) => add(context, args);
    Promote(args: PromoteArgs) => promote(context, &args);
    Audit(args: AuditArgs) => audit(context, args);
    Prune(args: PruneArgs) => prune(context, &args);
    Conflicts(args: ConflictsArgs) => conflicts(context, &args);
    Resolve(args: ResolveArgs) => resolve(context, &args);
    Export(args: ExportArgs) => export(context, &args);
    Import(args: ImportArgs) => import(context, &args);
}

fn status(context: &Context) -> Done<Status> {
    let workspace = context.workspace(None)?;
    let mut report = upkeep::status(&workspace)?;
    report.enabled = context.off.is_none();
    if context.shows_files() && workspace.store.is_apart()? {
        report.store = "JSONStore";
        report.store_reason += "; `--store json` shows the files of the copy here";
    } else if report.store == "JSONStore" {
        opening::explain(context, &mut report)?;
    }
    Ok(Status {
        report,
        is_there: context.has_memory(),
        hosts: places::hosts(context),
    })
}

/// Counts of a memory, and what only the page says about it.
#[derive(Serialize)]
pub(crate) struct Status {
    #[serde(flatten)]
    report: StatusReport,
    #[serde(skip)]
    is_there: bool,
    /// Agent hosts with hooks.
    #[serde(skip)]
    hosts: Vec<&'static str>,
}

impl Report for Status {
    fn page(&self, page: &mut Page) {
        let of = &self.report;
        match (self.is_there, of.enabled) {
            (false, _) => page.warn("There is no memory here: ", &of.directory),
            (true, false) => page.warn("Memory is off: ", &of.directory),
            (true, true) => page.good("Memory is on: ", &of.directory),
        }
        let counts = [
            plural(of.reflexions, "rule"),
            plural(of.procedures, "lesson"),
            plural(of.memories, "note"),
        ];
        page.line(counts.join(", "));
        match self.hosts.join(", ") {
            none if none.is_empty() => page.line("No agent has the hooks: memctl setup"),
            hosts => page.line(format!("Agents with the hooks: {hosts}")),
        }
        // The words of the source documents.
        page.line(format!("Store: {}", of.store));
        page.line(format!(
            "Executions: {}  |  Corrections: {}  |  Reflexions: {}  |  Tests: {}",
            of.executions, of.corrections, of.reflexions, of.tests
        ));
        page.sentence(Style::Dim, "", &of.store_reason);
        if of.sessions > 0 {
            page.line(plural(of.sessions, "session"));
        }
        if of.pulled.records > 0 {
            let records = plural(of.pulled.records, "record");
            let workspaces = plural(of.pulled.workspaces as u64, "other workspace");
            page.line(format!("Pulled: {records} of {workspaces}"));
        }
        of.problems
            .iter()
            .for_each(|problem| page.warn("problem: ", problem));
    }
}

/// Show the prompt for a skill's model
///
/// The plain output is the prompt alone, byte for byte.
///
/// ```console
/// $ memctl memory prompt hr/resume-screen
/// $ memctl memory prompt hr/resume-screen --input in.json --json | jq .omitted
/// ```
#[derive(Debug, Args)]
pub(crate) struct PromptArgs {
    /// Skill, as `domain/skill`
    skill: String,
    /// Input of the skill; ranks rules when the token budget is short
    #[arg(long, short, value_name = "FILE")]
    input: Option<PathBuf>,
}

fn prompt(context: &Context, args: &PromptArgs) -> Done<PromptReport> {
    let skill = context.skill(&args.skill)?;
    let input = context.input(args.input.as_deref())?;
    let workspace = context.workspace_of_user(None)?;
    let mut report = skills::prompt(
        &workspace,
        &skill,
        input.as_deref().map(serde_json::value::RawValue::get),
    )?;
    for kind in [Kind::Reflexion, Kind::Procedure] {
        for file in workspace.store.damaged_files(kind)? {
            report.is_incomplete = true;
            report.warnings.push(format!(
                "{} of `{file}` may be missing in the prompt: memctl doctor --repair",
                kind.nouns()
            ));
        }
    }
    Ok(report)
}

impl Report for PromptReport {
    fn page(&self, page: &mut Page) {
        page.verbatim(&product(&self.assembly.prompt));
        if self.is_incomplete {
            page.exit_code = ErrorKind::Store.code();
        }
    }
}

fn switch(context: &Context, is_disabled: bool) -> Done<SwitchReport> {
    // A project with skills can be switched off before its first record.
    if !named::is_dir(&context.places.skills) {
        context.needs_memory()?;
    }
    // The switch for everybody needs no settings, so that unreadable settings do not block it.
    let Some(user) = &context.global.user else {
        let store = Scoped::new(&context.places.memory, Scope::All);
        let switch = if is_disabled {
            Scoped::disable
        } else {
            Scoped::enable
        };
        let changed = switch(&store)?;
        return Ok(SwitchReport::of(context, changed, None));
    };
    let config = context.config()?;
    let Viewer::User(user) = config.viewer()? else {
        return Err(UserError::usage(
            format!("`{user}` is no user"),
            "memctl memory disable --user ID",
        ));
    };
    let store = context.store(&config)?.even_if_disabled();
    let changed = store.switch_user(&user, is_disabled)?;
    Ok(SwitchReport::of(context, changed, Some(user.to_string())))
}

/// State of the switch.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct SwitchReport {
    /// `true` if memory is now on, for this process.
    enabled: bool,
    /// `true` if this call created or removed the marker.
    changed: bool,
    /// The user that it is for; `None` for everybody.
    user: Option<String>,
    directory: String,
    warnings: Vec<String>,
}

impl SwitchReport {
    fn of(context: &Context, changed: bool, user: Option<String>) -> Self {
        let off = Off::of(&context.environment, &context.places, user.as_deref());
        let warnings = match &off {
            Some(off @ Off::Variable(_)) => vec![format!("{off}; {}", off.hint())],
            _ => Vec::new(),
        };
        Self {
            enabled: off.is_none(),
            changed,
            user,
            directory: context.places.memory.display().to_string(),
            warnings,
        }
    }
}

impl Report for SwitchReport {
    fn page(&self, page: &mut Page) {
        let already = if self.changed { "" } else { " already" };
        let user = self.user.as_ref();
        let whom = user.map(|user| format!(" for the user `{user}`"));
        let whom = whom.unwrap_or_default();
        let line = if self.enabled {
            format!("Memory is on{whom}{already}.")
        } else {
            format!("Memory is off{whom}{already}: it is not read or written.")
        };
        page.line(line);
        page.dim(&self.directory);
    }
}

/// Returns a count with its noun: `1 lesson`, `3 notes`, `2 of hints.jsonl`. `name` is the plural
/// of a kind, or a log.
pub(crate) fn counted(name: &str, count: u64) -> String {
    match Kind::ALL
        .into_iter()
        .find(|kind| kind.plural() == name || kind.nouns() == name)
    {
        Some(kind) if count == 1 => format!("1 {}", kind.noun()),
        Some(kind) => format!("{count} {}", kind.nouns()),
        None if name == "skills" => plural(count, "skill"),
        None => format!("{count} of {name}"),
    }
}

/// Returns what an audit event is about: an id, or a count such as `3 reflexions`.
fn in_words(record: &str) -> String {
    let counted_kind = record
        .split_once(' ')
        .and_then(|(count, kind)| Some(counted(kind, count.parse().ok()?)));
    counted_kind.unwrap_or_else(|| record.to_owned())
}

/// Show who read and wrote which records, when and why
///
/// Logs every write, and every read of notes and sessions. Users see their own events and the
/// events on their own records.
///
/// ```console
/// $ memctl memory audit
/// $ memctl memory audit --who ann -n 100
/// $ memctl memory audit verify
/// ```
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    command: Option<AuditCommand>,
    /// Show only events of this user or program
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Show at most N events, the newest
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N",
        value_parser = clap::value_parser!(u32).range(TYPED))]
    limit: u32,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    Verify(VerifyArgs),
}

/// Check that no audit event was changed, removed, inserted or cut off
///
/// Exits with 1 if one was. Keep the printed `head` in another place: `--head` then detects even a
/// log that was rewritten as a whole.
///
/// ```console
/// $ memctl memory audit verify
/// $ memctl memory audit verify --head 9f86d081…
/// ```
#[derive(Debug, Args)]
struct VerifyArgs {
    /// Hash noted earlier that must still be in the log
    #[arg(long, value_name = "HASH")]
    head: Option<String>,
}

pub(crate) fn audit(context: &Context, args: AuditArgs) -> Done {
    if let Some(AuditCommand::Verify(args)) = args.command {
        let store = context.store(&context.config()?)?;
        let audited = store.verify_audit(args.head.as_deref())?;
        return Ok(Box::new(Verified {
            sound: audited.flaws.is_empty(),
            audited,
        }));
    }
    let store = context.workspace(None)?.store;
    let (who, limit) = (args.who.as_deref(), args.limit as usize);
    Ok(Box::new(upkeep::audit(&store, who, limit)?))
}

impl Report for AuditReport {
    fn page(&self, page: &mut Page) {
        if self.lines.is_empty() {
            return page.line("No matching audit events.");
        }
        let mut table = Table::new(">Age|Who|Did|~Records|Why");
        for line in &self.lines {
            let records = line.records.iter().map(|record| in_words(record));
            let mut records = records.collect::<Vec<_>>().join(", ");
            if !line.of.is_empty() {
                records.extend([" (of ", &line.of.join(", "), ")"]);
            }
            table.row([
                page.age(&line.at),
                line.who.clone(),
                format!("{:?}", line.did).to_lowercase(),
                records,
                line.why.clone(),
            ]);
        }
        page.table(&table);
        page.newest(self.lines.len(), self.total);
    }
}

/// Result of a verification, with its verdict.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Verified {
    /// `true` if no event was changed, removed, inserted or cut off.
    sound: bool,
    #[serde(flatten)]
    audited: Audited,
}

impl Report for Verified {
    fn page(&self, page: &mut Page) {
        page.fails_if(!self.sound);
        let events = plural(self.audited.lines, "event");
        if self.sound {
            page.good("sound: ", events);
        } else {
            page.bad("not sound: ", events);
        }
        for flaw in &self.audited.flaws {
            let line = flaw.line.map(|line| format!("line {line}: "));
            page.line(line.unwrap_or_default() + &flaw.message);
        }
        page.some("head", self.audited.head.as_deref());
    }
}
