//! `memory …`: its commands, a file each.

pub(crate) mod approve;
pub(crate) mod audit;
mod conflicts;
mod edit;
mod export;
mod forget;
mod import;
pub(crate) mod list;
mod memories;
mod pin;
mod promote;
mod purge;
mod resolve;
mod search;
mod show;
pub(crate) mod switch;
pub(crate) mod undo;
mod why;
mod wording;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, plural, product};
use crate::cli::primary;
use crate::model::error::Kind as ErrorKind;
use crate::model::{Kind, SkillPath};
use crate::skills::{self, PromptReport};
use crate::upkeep::{self, StatusReport};
use approve::{ApproveArgs, approve};
use audit::{AuditArgs, audit};
use conflicts::{ConflictsArgs, conflicts};
pub(crate) use edit::in_editor as edit_in_editor;
use edit::{EditArgs, edit};
use export::{ExportArgs, export};
use forget::{ForgetArgs, forget};
use import::{ImportArgs, import};
use list::{ListArgs, list};
use memories::{AddArgs, PruneArgs};
use pin::{PinArgs, pin};
use promote::{PromoteArgs, promote};
use purge::{PurgeArgs, purge};
use resolve::{ResolveArgs, resolve};
use search::{SearchArgs, search};
use show::{ShowArgs, show};
use switch::{DisableArgs, EnableArgs, disable, enable};
use undo::{UndoArgs, undo};
use why::{WhyArgs, why};
pub(crate) use wording::counted;

/// Status, prompts, notes, audit, import, export, purge, disable
///
/// Commands on the memory as a whole. `memctl search`, `list`, `show`, `edit` and `forget` work on
/// records.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  memctl memory status\n  memctl memory export --output backup.jsonl"
)]
pub(crate) enum MemoryCommand {
    #[command(flatten)]
    Records(RecordsCommand),
    #[command(flatten)]
    Whole(WholeCommand),
    Prompt(PromptArgs),
    Add(AddArgs),
    Pin(PinArgs),
    Promote(PromoteArgs),
    Audit(AuditArgs),
    Prune(PruneArgs),
    Conflicts(ConflictsArgs),
    Resolve(ResolveArgs),
    Export(ExportArgs),
    Import(ImportArgs),
}

/// Commands of `memory` that are also understood without that word.
#[derive(Debug, Subcommand)]
pub(crate) enum WholeCommand {
    Status(StatusArgs),
    Purge(PurgeArgs),
    Disable(DisableArgs),
    Enable(EnableArgs),
}

/// Names of [`WholeCommand`]: `memory` shows them, the first level hides them.
pub(crate) const OF_MEMORY: &[&str] = &["status", "purge", "disable", "enable"];

/// Names of [`RecordsCommand`]: the first level shows them, `memory` hides them.
pub(crate) const AT_TOP: &[&str] = &[
    "search", "list", "show", "approve", "why", "edit", "forget", "undo",
];

/// Commands on records, which `memory` understands too.
#[derive(Debug, Subcommand)]
pub(crate) enum RecordsCommand {
    Approve(ApproveArgs),
    Search(SearchArgs),
    List(ListArgs),
    Show(ShowArgs),
    Why(WhyArgs),
    Edit(EditArgs),
    Forget(ForgetArgs),
    Undo(UndoArgs),
}

impl WholeCommand {
    /// Returns `true` if the command works while memory is off.
    pub(crate) const fn works_without_memory(&self) -> bool {
        match self {
            Self::Status(_) | Self::Purge(_) | Self::Enable(_) | Self::Disable(_) => true,
        }
    }
}

impl MemoryCommand {
    /// Returns `true` if the command works while memory is off.
    pub(crate) const fn works_without_memory(&self) -> bool {
        match self {
            Self::Whole(command) => command.works_without_memory(),
            Self::Export(args) => !args.acts(),
            Self::Audit(_) => true,
            _ => false,
        }
    }
}

pub(crate) fn memory(context: &Context, command: MemoryCommand) -> Done {
    match command {
        MemoryCommand::Records(command) => records(context, command),
        MemoryCommand::Whole(command) => whole(context, &command),
        MemoryCommand::Prompt(args) => prompt(context, &args),
        MemoryCommand::Add(args) => memories::add(context, args),
        MemoryCommand::Pin(args) => pin(context, &args),
        MemoryCommand::Promote(args) => promote(context, &args),
        MemoryCommand::Audit(args) => audit(context, args),
        MemoryCommand::Prune(args) => memories::prune(context, &args),
        MemoryCommand::Conflicts(args) => conflicts(context, &args),
        MemoryCommand::Resolve(args) => resolve(context, &args),
        MemoryCommand::Export(args) => export(context, &args),
        MemoryCommand::Import(args) => import(context, &args),
    }
}

pub(crate) fn whole(context: &Context, command: &WholeCommand) -> Done {
    match command {
        WholeCommand::Status(args) => status(context, args),
        WholeCommand::Purge(args) => purge(context, args),
        WholeCommand::Disable(args) => disable(context, args),
        WholeCommand::Enable(args) => enable(context, args),
    }
}

pub(crate) fn records(context: &Context, command: RecordsCommand) -> Done {
    match command {
        RecordsCommand::Approve(args) => approve(context, &args),
        RecordsCommand::Search(args) => search(context, &args),
        RecordsCommand::List(args) => list(context, &args),
        RecordsCommand::Show(args) => show(context, &args),
        RecordsCommand::Why(args) => why(context, &args),
        RecordsCommand::Edit(args) => edit(context, &args),
        RecordsCommand::Forget(args) => forget(context, &args),
        RecordsCommand::Undo(args) => undo(context, &args),
    }
}

/// Count the stored records
///
/// Also shows the directory of the memory, if files or a database store it, and if it is on.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl memory status\n  memctl memory status --json | jq .procedures"
)]
pub(crate) struct StatusArgs {}

fn status(context: &Context, _args: &StatusArgs) -> Done {
    let mut report = upkeep::status(&context.workspace(None)?)?;
    report.enabled = context.off.is_none();
    let database = primary::DATABASE
        .iter()
        .find(|name| context.environment.var(name).is_some());
    if let ("JSONStore", Some(name)) = (report.store, database) {
        report.store_reason.extend([
            "; `",
            name,
            "` is set, and used by: memctl sync, or memctl remote join NAME",
        ]);
    }
    Ok(Box::new(report))
}

impl Report for StatusReport {
    fn page(&self, page: &mut Page) {
        page.line(format!("Store: {}", self.store));
        page.line(format!(
            "Executions: {}  |  Corrections: {}  |  Reflexions: {}  |  Tests: {}",
            self.executions, self.corrections, self.reflexions, self.tests
        ));
        let others = [
            (self.procedures, "procedure"),
            (self.memories, "memory"),
            (self.sessions, "session"),
        ];
        let others: Vec<String> = others
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, noun)| match (count, noun) {
                (1, _) | (_, "procedure" | "session") => plural(count, noun),
                _ => format!("{count} memories"),
            })
            .collect();
        if !others.is_empty() {
            page.line(others.join("  |  "));
        }
        if self.pulled.records > 0 {
            let records = plural(self.pulled.records, "record");
            let workspaces = plural(self.pulled.workspaces as u64, "other workspace");
            page.line(format!("Pulled: {records} of {workspaces}"));
        }
        page.dim(&self.store_reason);
        page.dim(&self.directory);
        if !self.enabled {
            page.warn("off: ", "memory is not read or written");
        }
        for problem in &self.problems {
            page.warn("problem: ", problem);
        }
    }
}

/// Show the prompt for a skill's model
///
/// The plain output is the prompt alone, byte for byte.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl memory prompt hr/resume-screen\n  \
    memctl memory prompt hr/resume-screen --input in.json --json | jq .omitted")]
pub(crate) struct PromptArgs {
    /// Skill, as `domain/skill`
    skill: String,
    /// Input of the skill; ranks rules when the token budget is short
    #[arg(long, short, value_name = "FILE")]
    input: Option<PathBuf>,
}

fn prompt(context: &Context, args: &PromptArgs) -> Done {
    let skill: SkillPath = args.skill.parse()?;
    let input = args
        .input
        .as_deref()
        .map(|path| context.json(path))
        .transpose()?;
    let workspace = context.workspace_of_user(None)?;
    let mut report = skills::prompt(
        &workspace,
        &skill,
        input.as_deref().map(serde_json::value::RawValue::get),
    )?;
    let mut is_incomplete = false;
    for kind in [Kind::Reflexion, Kind::Procedure] {
        for file in workspace.store.damaged_files(kind)? {
            is_incomplete = true;
            report.warnings.push(format!(
                "{} of `{file}` may be missing in the prompt: memctl doctor --repair",
                kind.nouns()
            ));
        }
    }
    Ok(Box::new(Prompt {
        report,
        is_incomplete,
    }))
}

/// Prompt of a skill, and `true` if a damaged file may have kept rules out of it.
#[derive(Serialize)]
#[serde(transparent)]
struct Prompt {
    report: PromptReport,
    #[serde(skip)]
    is_incomplete: bool,
}

impl Report for Prompt {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.report.warnings);
        page.verbatim(&product(&self.report.assembly.prompt));
        if self.is_incomplete {
            page.exits_with(ErrorKind::Store.code());
        }
    }
}
