//! `undo`: revert of a change. `why`: origin and effects of a record, as a tree.

use clap::Args;
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style, Table, end, plural};
use crate::model::error::UserError;
use crate::model::{EPISODE, Kind, mark};
use crate::serve::arguments::TYPED;
use crate::upkeep::undo::{self, ChangeReport, UndoReport};
use crate::upkeep::{self, Relation, WhyReport};

/// Revert the last change
///
/// A change is everything that one command wrote: records, fields, guardrails, tests. It is
/// reverted as a whole, or not at all with the reasons. Counts from agent hooks are reverted only
/// by name. An undo is a change too: `memctl undo NAME` reverts it. Logs do not change.
///
/// ```console
/// $ memctl undo --dry-run
/// $ memctl undo
/// $ memctl undo --list
/// $ memctl undo 3f2a9c1e
/// ```
#[derive(Debug, Args)]
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
    if !args.user_store {
        context.needs_memory()?;
    }
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
    let reverted = undo::revert(&workspace, name, args.dry_run);
    let reverted = reverted.map_err(|error| {
        let mut error = UserError::from(error);
        error.hint = error.hint.map(|hint| match hint.as_str() {
            undo::LIST => format!("{hint} --user-store"),
            _ => hint,
        });
        error
    })?;
    Ok(Box::new(UndoReport {
        of_user_store: true,
        ..reverted
    }))
}

/// Reverts a change of the workspace, with its part in the user store.
fn revert(context: &Context, name: Option<&str>, dry_run: bool) -> Done<UndoReport> {
    let workspace = context.workspace(None)?;
    let user = context.of_user_store().ok();
    let user = user.filter(Context::has_memory);
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
        let done = if self.dry_run {
            "would revert "
        } else {
            "reverted "
        };
        let change = &self.change;
        let who = if change.is_own { "you" } else { &change.who };
        page.good(done, format!("{}  {} by {who}", change.change, change.why));
        for step in &self.steps {
            let target = [step.target.as_str(), &end(&step.what, 60)].join("  ");
            page.field(step.did, target.trim_end());
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
        let mut table = Table::new("Change|>Age|Who|Command|~Records|");
        for change in &self.changes {
            table.row([
                change.change.clone(),
                page.age(&change.at),
                if change.is_own { "you" } else { &change.who }.to_owned(),
                change.why.clone(),
                change.touched.join(", "),
                if change.undone { "undone" } else { "" }.to_owned(),
            ]);
        }
        page.table(&table);
    }
}

/// Maximum number of rows of the text of a record.
const ROWS: usize = 6;
/// Minimum length of a text that is not repeated in a chain.
const SAID: usize = 30;

/// Show where a record came from and what came of it
///
/// Links an execution, its correction, the rule, its tests and the executions with the rule in
/// their prompt; or a lesson and the sessions that showed it; and the newest sessions in which an
/// agent was told it. Deleted records are marked.
///
/// ```console
/// $ memctl why REFL-001
/// $ memctl why latest
/// ```
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// Record id, a prefix of one, or `latest` for the newest execution
    id: String,
}

pub(crate) fn why(context: &Context, args: &WhyArgs) -> Done<WhyReport> {
    let (workspace, id) = context.workspace_of_id(&args.id)?;
    Ok(upkeep::why(&workspace, &id)?)
}

impl Report for WhyReport {
    fn page(&self, page: &mut Page) {
        for (at, link) in self.chain.iter().enumerate() {
            let indent = "  ".repeat(link.depth);
            let relation = match link.relation.words() {
                none if none.is_empty() => none,
                // No session has it: a person typed it.
                _ if link.id.is_empty() && link.relation == Relation::SeenIn => "typed".to_owned(),
                words => words + " ",
            };
            let trust = link.trust.filter(|_| link.kind == Kind::Reflexion.name());
            let state = mark(link.status.as_deref(), link.source.as_deref(), trust);
            let state = state.or_else(|| link.state.clone());
            let facts = [
                state.map(|state| state.replace(EPISODE, "pattern")),
                Some(page.age(&link.at)),
                link.executions
                    .filter(|count| *count > 0)
                    .map(|count| format!("in {}", plural(count, "execution"))),
                link.origins
                    .map(|count| format!("seen {}", plural(count, "time"))),
            ];
            let facts = facts.into_iter().flatten().filter(|fact| !fact.is_empty());
            let facts: String = facts.map(|fact| format!("  {fact}")).collect();
            page.styled(&[
                (Style::Dim, &[indent.as_str(), &relation].concat()),
                (Style::Strong, &link.id),
                (Style::Dim, &facts),
            ]);
            // Without the words of a link above it.
            let above = self.chain[..at].iter().map(|above| &above.summary);
            let above = above.filter(|above| above.len() >= SAID);
            let text = above.fold(link.summary.clone(), |text, above| text.replace(above, "…"));
            if !["", "…"].contains(&text.as_str()) {
                let text = end(&text, page.width() * ROWS);
                page.sentence(Style::Plain, &format!("{indent}  "), &text);
            }
        }
        let of = self.evidence;
        let (shown, helped, harmed) = (of.shown, of.helped, of.harmed);
        // Rules that are told at calls have receipts instead, at their line.
        if shown + helped + harmed > 0 {
            let evidence = format!("shown {shown}, helped {helped}, harmed {harmed}");
            page.field("evidence", &evidence);
        }
    }
}
