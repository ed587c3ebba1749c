//! Decisions carried out by the verbs of the commands. Each is a change of its own in the undo journal.

use crate::cli::context::Context;
use crate::cli::memory;
use crate::cli::output::Style;
use crate::model::error::UserError;
use crate::review::queue::{Queue, Waiting};
use crate::upkeep::{self, merge, undo as journal};
use crate::{review, rules};
use memctl_files::Directory;

use super::state::{Decision, State};

type Read<'a> = &'a dyn Fn() -> Result<Queue, UserError>;

/// Decides about the selected entry. After an error, nothing has changed.
pub(super) fn decide(
    context: &Context,
    decision: Decision,
    state: &mut State,
    read: Read<'_>,
) -> Result<(), UserError> {
    let Some(waiting) = state.selected().cloned() else {
        return Ok(());
    };
    let context = context.for_next_change();
    let workspace = context.workspace(None)?;
    let change = workspace.store.audit_context().change.clone();
    // Of a pair, the newer rule.
    let newer = waiting.other.as_ref().unwrap_or(&waiting.id).clone();
    let (did, gone, warnings) = match decision {
        Decision::Approve(action) => {
            let action = (!waiting.patterns.is_empty()).then_some(action);
            let done = review::approve(&workspace, std::slice::from_ref(&waiting.id), action)?;
            let warnings = done.into_iter().flat_map(|one| one.warnings).collect();
            (format!("approved {}", waiting.id), None, warnings)
        }
        Decision::Edit => {
            let draft = review::draft(&workspace, &newer)?;
            let done = memory::edit_in_editor(&context, &workspace, &draft)?;
            if done.changed.is_empty() {
                state.status = (Style::Dim, format!("{newer} is unchanged"));
                return Ok(());
            }
            state.decided(change, |_| false);
            state.replace(read()?.waiting);
            report(state, &format!("edited {newer}"), &done.warnings);
            return Ok(());
        }
        Decision::Reject { reason } => {
            let done = review::reject(&workspace, &waiting.id, &reason)?;
            (format!("rejected {}", done.id), None, done.warnings)
        }
        Decision::Forget => {
            let done = upkeep::forget(&workspace, &newer, false)?;
            (format!("forgot {newer}"), Some(newer), done.warnings)
        }
        Decision::Merge { keep, other } => {
            let done = rules::merge(&workspace, &keep, &other)?;
            (
                format!("merged {other} into {keep}"),
                Some(other),
                done.warnings,
            )
        }
        Decision::KeepBoth => {
            rules::keep_both(&workspace, &waiting.id, &newer)?;
            (format!("kept {} and {newer}", waiting.id), None, Vec::new())
        }
        Decision::Pin => {
            let done = rules::pin(&workspace, &waiting.id, true)?;
            (format!("pinned {}", waiting.id), None, done.warnings)
        }
        Decision::Resolve(side) => {
            let done = merge::resolve(&workspace, &waiting.id, side, None)?;
            (format!("resolved {}", waiting.id), None, done.warnings)
        }
    };
    state.decided(change, |one| {
        is_same(one, &waiting) || gone.as_ref().is_some_and(|id| one.names(id))
    });
    report(state, &did, &warnings);
    Ok(())
}

/// Reverts a decision of this view.
pub(super) fn undo(
    context: &Context,
    change: &str,
    state: &mut State,
    read: Read<'_>,
) -> Result<(), UserError> {
    let context = context.for_next_change();
    let workspace = context.workspace(None)?;
    let user = context.of_user_store().ok();
    let user = user.filter(|user| Directory::at(&user.places.memory).is_there());
    let done = match user {
        Some(user) => {
            let user = user.workspace(None)?;
            journal::revert_with_user_store(&workspace, &user, Some(change), false)?
        }
        None => journal::revert(&workspace, Some(change), false)?,
    };
    if !state.undone() {
        state.replace(read()?.waiting);
    }
    report(state, "undone", &done.warnings);
    Ok(())
}

fn is_same(a: &Waiting, b: &Waiting) -> bool {
    a.kind == b.kind && a.id == b.id && a.other == b.other
}

fn report(state: &mut State, did: &str, warnings: &[String]) {
    state.status = match warnings.first() {
        None => (Style::Good, did.to_owned()),
        Some(warning) => (Style::Warn, format!("{did}; {warning}")),
    };
}
