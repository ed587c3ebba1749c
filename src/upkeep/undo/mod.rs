//! Reverts a change: the last one, or a named one.
//!
//! A change is all that one command wrote: records, fields of records, guardrails, tests. All of it
//! is checked before any write. If a part has been changed since, or a later record depends on it,
//! nothing is reverted and the reasons are reported. A revert is a change too, and can be reverted
//! by its name.
//!
//! Out of scope: logs, which describe past events, and files outside of `skills/`. The undo journal of a
//! foreign checkout must not be able to name such files.

mod plan;
mod steps;

use serde::Serialize;

use crate::lessons::telling::table::prepare;
use crate::model::{Kind, USER_STORE, with_origin};
use crate::notes::indexing::Index;
use crate::store::workspace::{Error, Workspace, repair_warnings};
use crate::store::{ChangeLine, Scoped};
use crate::upkeep::undo::plan::{Change, Effect, changes_of, revert_steps};
use crate::upkeep::undo::steps::{obstacles, perform};

/// Change in a list.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ChangeReport {
    /// Name of the change, shortened to 8 characters.
    pub change: String,
    /// Whole name of the change.
    #[serde(skip)]
    pub name: String,
    /// Time of the change: RFC 3339, UTC.
    pub at: String,
    /// Author of the change.
    pub who: String,
    /// Command that made the change.
    pub why: String,
    /// Ids of the records and paths of the files that it touched.
    pub touched: Vec<String>,
    /// `true` if it is reverted now.
    pub undone: bool,
}

/// Outcome of [`revert()`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct UndoReport {
    /// Reverted change.
    #[serde(flatten)]
    pub change: ChangeReport,
    /// Steps of the revert, in order.
    pub steps: Vec<Undone>,
    /// Name of the revert as a change; `None` if nothing was written.
    pub undo: Option<String>,
    /// `true` if nothing was written.
    pub dry_run: bool,
    /// `true` if the change was made in the user store alone.
    #[serde(skip)]
    pub of_user_store: bool,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Step of a revert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Undone {
    /// `removed`, `restored`, `reverted`, `moved back` to the file that git ignores or from it, or
    /// `unchanged` if it was as before already.
    pub did: &'static str,
    /// Id of a record, or path of a file.
    pub target: String,
    /// Reverted content: field names, the summary of a record, or a number of actions.
    pub what: String,
}

/// Returns the newest changes, newest first.
pub fn changes(store: &Scoped, limit: usize) -> Result<Vec<ChangeReport>, Error> {
    let lines = store.changes()?;
    let changes = changes_of(&lines);
    Ok(changes.iter().rev().take(limit).map(report).collect())
}

/// Reverts the change whose name starts with `name`, else the last one that a command of this user
/// made: on a server's store others write too. With `dry_run`, nothing is written.
pub fn revert(
    workspace: &Workspace,
    name: Option<&str>,
    dry_run: bool,
) -> Result<UndoReport, Error> {
    let mut writer = workspace.writer()?;
    let lines = writer.store().changes()?;
    let changes = changes_of(&lines);
    let who = &workspace.store.audit_context().who;
    let place = pick(&changes, name, who)?;
    let change = &changes[place];
    let planned = revert_steps(change);
    let reasons = obstacles(workspace, &mut writer, &changes, place, &planned)?;
    if !reasons.is_empty() {
        return Err(not_undoable(short(change.name), &reasons.join("; ")));
    }
    let mut done = UndoReport {
        change: ChangeReport {
            undone: !dry_run,
            ..report(change)
        },
        steps: Vec::new(),
        undo: None,
        dry_run,
        of_user_store: false,
        warnings: Vec::new(),
    };
    if !dry_run {
        // Note the revert first. After a crash, a partial revert is then a known change that
        // can itself be reverted by its name.
        writer.note_undone(change.name)?;
        done.undo = Some(short(&workspace.store.audit_context().change).to_owned());
    }
    done.steps = perform(workspace, &mut writer, &planned, dry_run)?;
    let touches_lessons = planned
        .iter()
        .any(|step| step.kind == Some(Kind::Procedure));
    if !dry_run && touches_lessons {
        prepare(writer.store())?;
    }
    done.warnings.extend(repair_warnings(writer.take_repairs()));
    drop(writer);
    if !dry_run && planned.iter().any(|step| step.effect == Effect::Remove) {
        Index::drop_gone(&workspace.store)?;
    }
    Ok(done)
}

/// Reverts a change in a workspace, and its other part if it wrote to the user store too. Both are
/// checked before the first write.
pub fn revert_with_user_store(
    workspace: &Workspace,
    user: &Workspace,
    name: Option<&str>,
    dry_run: bool,
) -> Result<UndoReport, Error> {
    let mut done = revert(workspace, name, true)?;
    let lines = user.store.changes()?;
    let is_there = |change: &Change<'_>| change.name == done.change.name && !change.is_undone;
    let other = changes_of(&lines).iter().any(is_there);
    let name = done.change.name.clone();
    let of_user = |dry_run| -> Result<Vec<Undone>, Error> {
        let steps = if other {
            revert(user, Some(&name), dry_run)?.steps
        } else {
            Vec::new()
        };
        let named = steps.into_iter().map(|step| Undone {
            target: with_origin(&step.target, USER_STORE),
            ..step
        });
        Ok(named.collect())
    };
    let mut steps = of_user(true)?;
    if !dry_run {
        done = revert(workspace, Some(&name), false)?;
        steps = of_user(false)?;
    }
    done.steps.extend(steps);
    Ok(done)
}

/// Command that lists the changes.
pub(crate) const LIST: &str = "memctl undo --list";

fn not_undoable(change: &str, reason: &str) -> Error {
    Error::input(format!("`{change}` was not reverted: {reason}"), LIST)
}

/// Returns the index of the requested change.
fn pick(changes: &[Change<'_>], name: Option<&str>, who: &str) -> Result<usize, Error> {
    let Some(name) = name else {
        let is_own = |change: &Change<'_>| change.is_by(who) && !change.is_of_a_hook();
        let last = changes
            .iter()
            .rposition(|c| !c.is_undone && c.undoes().is_none() && is_own(c));
        let message = "the undo journal has no change of this user to revert";
        return last.ok_or_else(|| Error::missing(message, LIST));
    };
    let wanted = name.to_ascii_lowercase();
    let mut found = (0..changes.len()).filter(|n| changes[*n].name.starts_with(&wanted));
    let (Some(place), None) = (found.next(), found.next()) else {
        let name = name.escape_debug();
        let message = format!("`{name}` matches no change, or more than one");
        return Err(Error::missing(message, LIST));
    };
    if changes[place].is_undone {
        let change = short(changes[place].name);
        return Err(not_undoable(change, "it is reverted already"));
    }
    Ok(place)
}

fn report(change: &Change<'_>) -> ChangeReport {
    let first: Option<&&ChangeLine> = change.lines.first();
    let text = |of: fn(&ChangeLine) -> &String| first.map(|line| of(line).clone());
    let mut touched: Vec<String> = change.targets().into_iter().map(str::to_owned).collect();
    touched.sort_unstable();
    ChangeReport {
        change: short(change.name).to_owned(),
        name: change.name.to_owned(),
        at: text(|line| &line.at).unwrap_or_default(),
        who: text(|line| &line.who).unwrap_or_default(),
        why: text(|line| &line.why).unwrap_or_default(),
        touched,
        undone: change.is_undone,
    }
}

/// First 8 characters of a name, enough for people to type.
fn short(name: &str) -> &str {
    name.get(..8).unwrap_or(name)
}
