//! `memory purge`: everything is forgotten, after a question.

use clap::Args;
use dialoguer::Input;

use crate::engine::PurgeReport;

use super::context::Context;
use super::error::CliError;
use super::output::{Page, Report, Style, clean, plural};
use super::question::ask;
use super::records::counted;

/// Forget everything, for good
///
/// Removes every record with its text, vectors, index, logs, tombstones and copies. Settings, prompts, the
/// name of the workspace, skills, and files that memctl does not know stay, and are named. With `--user`
/// or `--scope` only what these may see goes. There is no way back but an export.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl memory purge --dry-run\n  memctl memory purge --yes\n  \
    memctl memory purge --yes --user alice"
)]
pub(super) struct PurgeArgs {
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Say what would go, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn purge(context: &Context, args: &PurgeArgs) -> Result<Box<dyn Report>, CliError> {
    let mut engine = context.engine(None)?;
    // Who has switched memory off may still want it gone.
    engine.store = engine.store.even_if_disabled();
    if !args.dry_run && !args.yes {
        confirm(context, &engine.purge(true)?)?;
    }
    Ok(Box::new(engine.purge(args.dry_run)?))
}

/// Lets a person type the name of the workspace.
fn confirm(context: &Context, plan: &PurgeReport) -> Result<(), CliError> {
    if !context.is_interactive() {
        return Err(CliError::usage(
            "nobody can be asked here whether everything is to be forgotten",
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
    let prompt = format!("There is no way back. Type `{}` to forget it", clean(&name));
    let question = Input::<String>::new().with_prompt(prompt);
    let typed = ask(|| question.allow_empty(true).interact_text())?;
    if typed.trim() == name {
        return Ok(());
    }
    Err(CliError::usage(
        "that is not the name of the workspace: nothing was removed",
        "memctl memory purge",
    ))
}

impl Report for PurgeReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
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
        let verb = if self.dry_run { "would go: " } else { "gone: " };
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
            ("stays: ", self.kept.iter().map(String::as_str).collect()),
            (
                "stays, not known here: ",
                self.unknown.iter().map(String::as_str).collect(),
            ),
            (
                "stays, in skills: ",
                self.in_skills.iter().map(String::as_str).collect(),
            ),
        ] {
            if !names.is_empty() {
                page.styled(&[(Style::Dim, label), (Style::Plain, &names.join(", "))]);
            }
        }
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
