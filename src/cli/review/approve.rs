//! `approve`, `memory promote`: decisions of a person about records.

use clap::Args;
use serde::Serialize;

use crate::cli::ask::confirms;
use crate::cli::context::Context;
use crate::cli::learn::lesson::in_other_projects;
use crate::cli::output::{Done, Page, Report, Style};
use crate::cli::review::parts;
use crate::cli::skills::correct::at_calls_too;
use crate::model::error::UserError;
use crate::model::{CallAction, USER_STORE, split_origin, with_origin};
use crate::review;
use crate::review::queue::Part;
use crate::review::{Approved, Promoted};

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
    let mut records = if is_of_user {
        let ids: Vec<String> = args
            .ids
            .iter()
            .map(|id| split_origin(id).0.to_owned())
            .collect();
        let store = context.of_user_store()?.workspace(None)?;
        review::approve(&store, &ids, args.action, None)?
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
    if is_of_user {
        let named = records.iter_mut();
        named.for_each(|record| record.id = with_origin(&record.id, USER_STORE));
        context.note_change_of_user_store();
    }
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
                page.warnings(&record.warnings);
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
