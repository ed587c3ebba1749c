//! Reverts a change: the last one, or a named one.
//!
//! A change is all that one command wrote: records, fields of records, guardrails, tests. All of it
//! is checked before any write. If a part has been changed since, or a later record depends on it,
//! nothing is reverted and the reasons are reported. A revert is a change too, and can be reverted
//! by its name.
//!
//! Out of scope: logs, which describe past events, and files outside of `skills/`, except for the
//! block with rules in a file of the workspace. The undo journal of a foreign checkout must not be
//! able to name such files.

mod files;
mod plan;

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::model::{Kind, USER_STORE, abroad};
use crate::store::{ChangeLine, Returning, Reverted, Scoped, Writer};

use crate::hints::fixes::prepare;
use crate::indexing::Index;
use crate::workspace::Error;
use crate::workspace::document::document;
use crate::workspace::{Workspace, repair_warnings, stamp};

use files::{file_before, revert_file};
use plan::{Back, Change, back, changes_of};

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

/// Reverts the change whose name starts with `name`, else the last one that a user's command
/// made. With `dry_run`, nothing is written.
pub fn revert(
    workspace: &Workspace,
    name: Option<&str>,
    dry_run: bool,
) -> Result<UndoReport, Error> {
    let mut writer = workspace.writer()?;
    let lines = writer.store().changes()?;
    let changes = changes_of(&lines);
    let place = pick(&changes, name)?;
    let change = &changes[place];
    let backs = back(change);
    let reasons = against(workspace, &mut writer, &changes, place, &backs)?;
    if !reasons.is_empty() {
        return Err(Error::NotUndoable {
            change: short(change.name).to_owned(),
            reasons,
        });
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
    for run in runs(&backs) {
        done.steps
            .extend(take_back(workspace, &mut writer, run, dry_run)?);
    }
    let touches = |kind| backs.iter().any(|back| kind_of(back) == Some(kind));
    if !dry_run && touches(Kind::Fix) {
        prepare(writer.store())?;
    }
    done.warnings.extend(repair_warnings(writer.take_repairs()));
    drop(writer);
    if !dry_run && backs.iter().any(|back| matches!(back, Back::Remove { .. })) {
        // A text can be guessed from its words and its vector, so these go too.
        Index::open(&workspace.store)?.drop_gone(&mut |_, _| {})?;
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
            target: abroad(&step.target, USER_STORE),
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

/// Returns the reasons why a change cannot be reverted.
fn against(
    workspace: &Workspace,
    writer: &mut Writer,
    changes: &[Change<'_>],
    place: usize,
    backs: &[Back],
) -> Result<Vec<String>, Error> {
    let mut reasons = Vec::new();
    let removed = backs.iter().filter_map(|back| match back {
        Back::Remove { id, .. } => Some(id.as_str()),
        _ => None,
    });
    let mut resting = resting(writer, &changes[place + 1..], &removed.collect())?;
    for back in backs {
        reasons.extend(match back {
            Back::Remove { id, .. } => resting.remove(id.as_str()),
            Back::Restore { id, text: None, .. } => {
                Some(format!("the text of `{id}` was no UTF-8 and was not kept"))
            }
            Back::Restore { .. } | Back::Move { .. } | Back::Lines { .. } => None,
            Back::Fields { kind, id, fields } => {
                match writer.revert_fields(*kind, id, fields, true)? {
                    Reverted::ChangedSince(field) => {
                        Some(format!("`{field}` of `{id}` has been changed since"))
                    }
                    // A record removed by the same change is restored first.
                    Reverted::Gone if comes_back(backs, id) => None,
                    Reverted::Gone => Some(format!("`{id}` is not there any more")),
                    Reverted::Done | Reverted::Already => None,
                }
            }
            Back::File { path, splices } => file_before(workspace, path, splices)
                .err()
                .map(|reason| format!("`{path}`: {reason}")),
        });
    }
    Ok(reasons)
}

/// Removes records of a kind that the change added.
fn remove_run(
    now: DateTime<Utc>,
    writer: &mut Writer,
    kind: Kind,
    run: &[Back],
    dry_run: bool,
) -> Result<Vec<Undone>, Error> {
    let mut there = HashMap::new();
    writer.store().each_of(kind, &ids_of(run), &mut |entry| {
        let document = document(&entry);
        there.insert(entry.id, document.map(|d| (d.summary, d.content)));
    })?;
    let mut steps = Vec::new();
    let mut contents = Vec::new();
    for id in run.iter().filter_map(id_of) {
        let Some(document) = there.remove(id) else {
            steps.push(undone("unchanged", id, String::new()));
            continue;
        };
        let (summary, content) = document.unzip();
        steps.push(undone("removed", id, summary.unwrap_or_default()));
        // Fixes and procedures would be learned again, so their tombstone holds the content. A
        // person may add any other reverted record again.
        let content = match kind {
            Kind::Fix | Kind::Procedure => content,
            _ => None,
        };
        contents.push((id, content.unwrap_or_else(|| format!("taken back: {id}"))));
    }
    if !dry_run {
        let removals: Vec<_> = contents.iter().map(|(id, c)| (*id, c.as_str())).collect();
        writer.remove_several(kind, &removals, now)?;
    }
    Ok(steps)
}

/// Restores records of a kind that the change removed, each after its predecessor.
fn restore_run(
    now: DateTime<Utc>,
    writer: &mut Writer,
    kind: Kind,
    run: &[Back],
    dry_run: bool,
) -> Result<Vec<Undone>, Error> {
    let mut there = HashSet::new();
    writer.store().each_of(kind, &ids_of(run), &mut |entry| {
        there.insert(entry.id);
    })?;
    let mut steps = Vec::new();
    let mut returning = Vec::new();
    for back in run {
        let Back::Restore {
            id,
            after,
            is_local,
            text,
            ..
        } = back
        else {
            continue;
        };
        let is_there = there.contains(id.as_str());
        let did = if is_there { "unchanged" } else { "restored" };
        steps.push(undone(did, id, String::new()));
        returning.push(Returning {
            id,
            after: after.as_deref(),
            is_local: *is_local,
            text: text.as_deref().unwrap_or_default(),
        });
    }
    if !dry_run {
        writer.put_back(kind, &returning, &stamp(now))?;
    }
    Ok(steps)
}

/// Performs one run of steps.
fn take_back(
    workspace: &Workspace,
    writer: &mut Writer,
    run: &[Back],
    dry_run: bool,
) -> Result<Vec<Undone>, Error> {
    let Some(back) = run.first() else {
        return Ok(Vec::new());
    };
    let one = match back {
        Back::Remove { kind, .. } => return remove_run(workspace.now, writer, *kind, run, dry_run),
        Back::Restore { kind, .. } => {
            return restore_run(workspace.now, writer, *kind, run, dry_run);
        }
        Back::Fields { kind, id, fields } => {
            let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            let did = match writer.revert_fields(*kind, id, fields, dry_run)? {
                Reverted::Done => "reverted",
                _ => "unchanged",
            };
            undone(did, id, names.join(", "))
        }
        Back::Move { kind, id, to_local } => {
            let is_moved = dry_run || writer.move_back(*kind, id, *to_local)?;
            let did = if is_moved { "moved back" } else { "unchanged" };
            undone(did, id, String::new())
        }
        Back::Lines { id, go, lines } => {
            let count = if dry_run {
                lines.len()
            } else if *go {
                writer.take_out_lines(id, lines)?
            } else {
                writer.put_lines_back(id, lines)?
            };
            let did = match (count, go) {
                (0, _) => "unchanged",
                (_, true) => "removed",
                (_, false) => "restored",
            };
            undone(did, id, format!("{count} actions"))
        }
        Back::File { path, splices } => {
            let did = revert_file(workspace, writer, path, splices, dry_run)?;
            undone(did, path, String::new())
        }
    };
    Ok(vec![one])
}

/// Groups steps into runs that are done at once: removals of one kind, or restored neighbours of
/// one kind.
fn runs(backs: &[Back]) -> impl Iterator<Item = &[Back]> {
    backs.chunk_by(|a, b| match (a, b) {
        (Back::Remove { kind: a, .. }, Back::Remove { kind: b, .. }) => a == b,
        (
            Back::Restore { kind: a, id, .. },
            Back::Restore {
                kind: b,
                after: Some(after),
                ..
            },
        ) => a == b && id == after,
        _ => false,
    })
}

fn id_of(back: &Back) -> Option<&str> {
    match back {
        Back::Remove { id, .. } | Back::Restore { id, .. } => Some(id),
        _ => None,
    }
}

fn ids_of(run: &[Back]) -> HashSet<&str> {
    run.iter().filter_map(id_of).collect()
}

fn undone(did: &'static str, target: &str, what: String) -> Undone {
    Undone {
        did,
        target: target.to_owned(),
        what,
    }
}

/// Returns the index of the requested change.
fn pick(changes: &[Change<'_>], name: Option<&str>) -> Result<usize, Error> {
    let Some(name) = name else {
        let last = changes
            .iter()
            .rposition(|c| !c.is_undone && c.undoes().is_none() && !c.is_of_a_hook());
        return last.ok_or(Error::NothingToUndo);
    };
    let wanted = name.to_ascii_lowercase();
    let mut found = (0..changes.len()).filter(|n| changes[*n].name.starts_with(&wanted));
    let (Some(place), None) = (found.next(), found.next()) else {
        return Err(Error::NoChange(name.to_owned()));
    };
    if changes[place].is_undone {
        return Err(Error::NotUndoable {
            change: short(changes[place].name).to_owned(),
            reasons: vec!["it has been taken back already".to_owned()],
        });
    }
    Ok(place)
}

/// For each record to remove, names the first later record that refers to it.
fn resting<'a>(
    writer: &Writer,
    later: &[Change<'_>],
    removed: &HashSet<&'a str>,
) -> Result<HashMap<&'a str, String>, Error> {
    let mut reasons = HashMap::new();
    let later: Vec<_> = later.iter().filter(|change| !change.is_undone).collect();
    if removed.is_empty() || later.is_empty() {
        return Ok(reasons);
    }
    let lines = || {
        later
            .iter()
            .flat_map(|change| change.lines.iter().map(move |line| (change, line)))
    };
    // Each record is read once, regardless of how often it was changed and how many ids it names.
    let mut named: HashMap<(Kind, String), Vec<&'a str>> = HashMap::new();
    for kind in Kind::ALL {
        let of_kind = lines().filter(|(_, line)| line.step.kind() == Some(kind));
        let targets = of_kind.filter_map(|(_, line)| line.step.target()).collect();
        writer.store().each_of(kind, &targets, &mut |entry| {
            let ids = ids_in(&entry.text, removed);
            named.insert((kind, entry.id), ids);
        })?;
    }
    for (change, line) in lines() {
        let (Some(kind), Some(target)) = (line.step.kind(), line.step.target()) else {
            continue;
        };
        let ids = named.get(&(kind, target.to_owned()));
        for id in ids.into_iter().flatten().filter(|id| **id != target) {
            reasons.entry(*id).or_insert_with(|| {
                format!(
                    "`{target}` rests on `{id}`: take `{}` back first ({})",
                    short(change.name),
                    line.why
                )
            });
        }
    }
    Ok(reasons)
}

/// Returns the ids that occur in quotes in the text of a record.
fn ids_in<'a>(text: &[u8], ids: &HashSet<&'a str>) -> Vec<&'a str> {
    let pieces = text.split(|byte| *byte == b'"').skip(1);
    let pieces = pieces.filter_map(|piece| std::str::from_utf8(piece).ok());
    pieces.filter_map(|piece| ids.get(piece).copied()).collect()
}

fn comes_back(backs: &[Back], wanted: &str) -> bool {
    backs
        .iter()
        .any(|back| matches!(back, Back::Restore { id, .. } if id == wanted))
}

fn kind_of(back: &Back) -> Option<Kind> {
    match back {
        Back::Remove { kind, .. }
        | Back::Restore { kind, .. }
        | Back::Move { kind, .. }
        | Back::Fields { kind, .. } => Some(*kind),
        Back::Lines { .. } => Some(Kind::Session),
        Back::File { .. } => None,
    }
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
