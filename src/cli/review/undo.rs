//! `memctl undo`: revert of a change.

use clap::Args;
use memctl_files::Directory;
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style, Table};
use crate::model::error::UserError;
use crate::serve::arguments::TYPED;
use crate::upkeep::undo;
use crate::upkeep::undo::{ChangeReport, UndoReport};

/// Revert the last change
///
/// A change is everything that one command wrote: records, fields, guardrails, tests. It is
/// reverted as a whole, or not at all with the reasons. Counts from agent hooks are reverted only
/// by name. An undo is a change too: `memctl undo NAME` reverts it. Logs do not change.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl undo --dry-run\n  memctl undo\n  \
    memctl undo --list\n  memctl undo 3f2a9c1e")]
pub(crate) struct UndoArgs {
    /// Name of the change from `--list`, or a prefix of it; default: the last change
    change: Option<String>,
    /// Show what would be reverted, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Revert or list changes that were made in the user store alone
    #[arg(long)]
    user_store: bool,
    /// List the newest changes
    #[arg(long, conflicts_with_all = ["change", "dry_run"])]
    list: bool,
    /// Maximum number of changes
    #[arg(short = 'n', long, default_value_t = 20, requires = "list",
        value_parser = clap::value_parser!(u32).range(TYPED), value_name = "N")]
    limit: u32,
}

pub(crate) fn undo(context: &Context, args: &UndoArgs) -> Done {
    let name = args.change.as_deref();
    if !args.list && !args.user_store {
        return Ok(Box::new(revert(context, name, args.dry_run)?));
    }
    let workspace = if args.user_store {
        context.of_user_store()?.workspace(None)?
    } else {
        context.workspace(None)?
    };
    if args.list {
        return Ok(Box::new(Changes {
            changes: undo::changes(&workspace.store, args.limit as usize)?,
        }));
    }
    Ok(Box::new(UndoReport {
        of_user_store: true,
        ..undo::revert(&workspace, name, args.dry_run)?
    }))
}

/// Reverts a change of the workspace, with its part in the user store.
pub(crate) fn revert(
    context: &Context,
    name: Option<&str>,
    dry_run: bool,
) -> Result<UndoReport, UserError> {
    let workspace = context.workspace(None)?;
    let user = context.of_user_store().ok();
    let user = user.filter(|user| Directory::at(&user.places.memory).is_there());
    Ok(match user {
        Some(user) => {
            let user = user.workspace(None)?;
            undo::revert_with_user_store(&workspace, &user, name, dry_run)?
        }
        None => undo::revert(&workspace, name, dry_run)?,
    })
}

impl Report for UndoReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        let (style, done) = if self.dry_run {
            (Style::Dim, "would revert ")
        } else {
            (Style::Good, "reverted ")
        };
        let change = &self.change;
        page.styled(&[
            (style, done),
            (Style::Plain, &change.change),
            (Style::Dim, &format!("  {} by {}", change.why, change.who)),
        ]);
        for step in &self.steps {
            let what = console::truncate_str(&memctl_redact::redact(&step.what).text, 60, "…")
                .into_owned();
            page.field(step.did, &[step.target.as_str(), &what].join("  "));
        }
        if let Some(undo) = &self.undo {
            let place = if self.of_user_store {
                " --user-store"
            } else {
                ""
            };
            page.dim(format!("to redo it: memctl undo {undo}{place}"));
        }
    }
}

/// List of changes.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Changes {
    /// The newest first.
    changes: Vec<ChangeReport>,
}

impl Report for Changes {
    fn page(&self, page: &mut Page) {
        if self.changes.is_empty() {
            return page.line("No changes yet.");
        }
        let mut table = Table::new("Change|>Age|Who|Command|~Touched", &[4, 3]);
        for change in &self.changes {
            let undone = if change.undone { " (reverted)" } else { "" };
            table.row([
                change.change.clone(),
                page.age(&change.at),
                change.who.clone(),
                format!("{}{undone}", change.why),
                change.touched.join(", "),
            ]);
        }
        page.table(&table);
    }
}
