//! `approve` and `memory promote`: decisions of a person about records. `undo`: revert of a change. `why`: origin and
//! effects of a record.

use clap::Args;
use serde::Serialize;

use crate::cli::ask::confirms;
use crate::cli::context::Context;
use crate::cli::learn::lesson::in_other_projects;
use crate::cli::output::{Done, Page, Report, Style, Table, end, plural};
use crate::cli::review::parts;
use crate::cli::skills::correct::at_calls_too;
use crate::model::error::UserError;
use crate::model::{CallAction, EPISODE, Kind, USER_STORE, mark, split_origin, with_origin};
use crate::review;
use crate::review::queue::Part;
use crate::review::{Approved, Promoted};
use crate::serve::arguments::TYPED;
use crate::upkeep::undo::{self, ChangeReport, UndoReport};
use crate::upkeep::{self, Relation, WhyReport};

/// Approve records that sessions taught or agents proposed
///
/// Lessons and patterns come from tool output, and agents see them as data. Those with a prompt
/// injection are quarantined and not shown at all. Approval lifts the quarantine and shows the
/// record. A rule that an agent proposed is a candidate: approval adds it to prompts, with a
/// guardrail and a test, and lets it act on the calls that it is seen by. Corrections by a person need
/// no approval.
///
/// ```console
/// $ memctl approve PROC-001
/// $ memctl approve REFL-004
/// $ memctl approve REFL-004 --action ask
/// $ memctl approve PROC-001 PROC-002 --json
/// ```
#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// Ids, or the beginnings of them
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Answer to a call that breaks the rule. Default: that of the rule, which is a note
    #[arg(long, value_name = "ACTION", value_enum)]
    action: Option<CallAction>,
}

pub(crate) fn approve(context: &Context, args: &ApproveArgs) -> Done<Approval> {
    let of_user = |id: &String| split_origin(id).1 == Some(USER_STORE);
    let is_of_user = args.ids.iter().all(of_user);
    // Of two stores, one wrong id would not keep the others from being approved.
    if !is_of_user && args.ids.iter().any(of_user) {
        return Err(UserError::usage(
            "records of this project and of the user store are approved one after the other",
            "memctl approve ID…, memctl approve ID@user…",
        ));
    }
    let records = if is_of_user {
        let ids: Vec<String> = args
            .ids
            .iter()
            .map(|id| split_origin(id).0.to_owned())
            .collect();
        let store = context.of_user_store()?.workspace(None)?;
        let mut records = review::approve(&store, &ids, args.action, None)?;
        for record in &mut records {
            record.id = with_origin(&record.id, USER_STORE);
        }
        context.note_change_of_user_store();
        records
    } else {
        let project = context.git_project();
        let here = context.here(project.as_ref());
        review::approve(
            &context.workspace(None)?,
            &args.ids,
            args.action,
            Some(&here),
        )?
    };
    Ok(Approval {
        record: match records.as_slice() {
            [record] => Some(record.clone()),
            _ => None,
        },
        records,
    })
}

/// Approved records.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Approval {
    /// Fields of the record, if it is the only one.
    #[serde(flatten)]
    record: Option<Approved>,
    /// All records, in the order of the arguments.
    records: Vec<Approved>,
}

impl Report for Approval {
    fn page(&self, page: &mut Page) {
        for (i, record) in self.records.iter().enumerate() {
            // The fields of the only record are at the top of the document.
            if self.record.is_none() {
                page.warnings.extend_from_slice(&record.warnings);
            }
            if i > 0 {
                page.line("");
            }
            parts(page, &record.parts);
            let now = match record.before {
                "user" => " written by a person; needs no approval".to_owned(),
                "approved" => " already approved".to_owned(),
                before => format!(" {before} → approved"),
            };
            page.styled(&[(Style::Strong, &record.id), (Style::Good, &now)]);
            let at_calls = record.at_calls.map(|action| match action {
                CallAction::Off => "acts on none",
                CallAction::Note => "agents are told it where they break it",
                CallAction::Ask => "the host asks you where an agent breaks it",
                CallAction::Deny => "the host refuses calls that break it",
            });
            page.some("at calls", at_calls);
            if record.is_silent_at_calls {
                page.dim(at_calls_too(&record.id));
            }
            page.list("guardrail", &record.guardrails);
            page.list("tests", &record.tests);
            let is_everywhere =
                |part: &&Part| (part.name, part.text.as_str()) == ("scope", "everywhere");
            if record.parts.iter().any(|part| is_everywhere(&part)) {
                page.dim(in_other_projects(&record.id));
            }
        }
    }
}

/// Copy a rule or a lesson to the user store, for all of your projects
///
/// The user store is in your data directory. The first `promote` creates it, after a question; from
/// then on its rules start sessions and its lessons are told in every project that has a memory. Its
/// records have ids such as `REFL-001@user`: `memctl show`, `approve`, `edit` and `forget` take
/// them. The setting `memory.user_store` switches it off.
///
/// ```console
/// $ memctl memory promote REFL-003
/// $ memctl list --user-store
/// $ memctl forget REFL-001@user
/// ```
#[derive(Debug, Args)]
pub(crate) struct PromoteArgs {
    /// Id of a rule or a lesson, or a prefix of one
    id: String,
    /// Create the user store without a question
    #[arg(long)]
    yes: bool,
}

pub(crate) fn promote(context: &Context, args: &PromoteArgs) -> Done<Promoted> {
    let of_user = context.of_user_store()?;
    let workspace = context.workspace(None)?;
    let directory = &of_user.places.memory;
    if *directory == context.places.memory {
        return Err(UserError::usage(
            "this memory is the user store",
            "memctl list",
        ));
    }
    // Without a terminal, the command itself is the decision.
    if !of_user.has_memory() && !args.yes && context.is_interactive() {
        context.printer.note(&format!(
            "The user store is new: {}\nIts rules and lessons reach agents in all of your projects.",
            directory.display()
        ));
        if !confirms("Create it?", false)? {
            return Err(UserError::usage(
                "the user store was not created",
                "memctl memory promote ID --yes",
            ));
        }
    }
    Ok(review::promote(
        &workspace,
        &of_user.workspace(None)?,
        &args.id,
    )?)
}

impl Report for Promoted {
    fn page(&self, page: &mut Page) {
        let done = if self.created {
            "promoted"
        } else {
            "known already"
        };
        page.good(done, format!(" {} → {}", self.id, self.user_id));
        page.field(self.kind.noun(), &self.summary);
    }
}

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
            let facts: Vec<String> = facts.collect();
            // A message has no id.
            let is_bare = link.id.is_empty() && facts.is_empty();
            let relation = if is_bare {
                relation.trim_end()
            } else {
                &relation
            };
            let gap = if is_bare { "" } else { "  " };
            let facts = gap.to_owned() + &facts.join("  ");
            page.styled(&[
                (Style::Dim, &[indent.as_str(), relation].concat()),
                (Style::Strong, &link.id),
                (Style::Dim, &facts),
            ]);
            // Without the words of a link above it.
            let above = self.chain[..at].iter().map(|above| &above.summary);
            let above = above.filter(|above| above.len() >= SAID);
            let text = above.fold(link.summary.clone(), |text, above| text.replace(above, "…"));
            if !["", "…"].contains(&text.as_str()) {
                let text = end(&text, page.width * ROWS);
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
