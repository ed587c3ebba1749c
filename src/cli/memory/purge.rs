//! `memory purge`: deletion of all records, after a confirmation.

use clap::Args;
use dialoguer::Input;

use super::wording::counted;
use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style, clean, plural};
use crate::cli::question::ask;
use crate::model::error::UserError;
use crate::upkeep::{self, PurgeReport};

/// Delete all records permanently
///
/// Removes every record with its text, vectors, index, logs, tombstones and copies. Keeps settings,
/// prompts, the name of the workspace, skills and unknown files, and lists them. With `--user` or
/// `--scope`, removes only visible records. Only an export can restore them.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl memory purge --dry-run\n  memctl memory purge --yes\n  \
    memctl memory purge --yes --user alice"
)]
pub(crate) struct PurgeArgs {
    /// Delete without asking
    #[arg(long)]
    yes: bool,
    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn purge(context: &Context, args: &PurgeArgs) -> Done {
    let mut workspace = context.workspace(None)?;
    // A purge works while memory is switched off.
    workspace.store = workspace.store.even_if_disabled();
    if !args.dry_run && !args.yes {
        confirm(context, &upkeep::purge(&workspace, true)?)?;
    }
    Ok(Box::new(upkeep::purge(&workspace, args.dry_run)?))
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
    let mut page = context.printer.page();
    plan.page(&mut page);
    context.printer.note(page.into_text().trim_end());
    let prompt = format!("This cannot be undone. Type `{}` to confirm", clean(&name));
    let question = Input::<String>::new().with_prompt(prompt);
    let typed = ask(|| question.allow_empty(true).interact_text())?;
    if typed.trim() == name {
        return Ok(());
    }
    Err(UserError::usage(
        "the name does not match the workspace; nothing was deleted",
        "memctl memory purge",
    ))
}

impl Report for PurgeReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        let records: Vec<String> = self
            .records
            .iter()
            .map(|(name, n)| counted(name, *n))
            .collect();
        let mut what = if records.is_empty() {
            "no records".to_owned()
        } else {
            records.join(", ")
        };
        if self.lines > 0 {
            what = format!("{what}, {} of logs", plural(self.lines, "line"));
        }
        let verb = if self.dry_run {
            "would delete: "
        } else {
            "deleted: "
        };
        let bytes = if self.bytes > 0 {
            format!(" ({} kB)", self.bytes.div_ceil(1_000))
        } else {
            String::new()
        };
        page.styled(&[
            (Style::Strong, verb),
            (Style::Plain, &format!("{what}{bytes}")),
        ]);
        let names: Vec<&str> = self
            .removed
            .iter()
            .map(|removed| removed.name.as_str())
            .collect();
        for (label, names) in [
            ("files: ", names),
            ("kept: ", self.kept.iter().map(String::as_str).collect()),
            (
                "kept, unknown: ",
                self.unknown.iter().map(String::as_str).collect(),
            ),
            (
                "kept, in skills: ",
                self.in_skills.iter().map(String::as_str).collect(),
            ),
        ] {
            if !names.is_empty() {
                page.note(label, &names.join(", "));
            }
        }
    }
}
