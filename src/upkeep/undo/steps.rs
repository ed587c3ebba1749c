//! Steps of a revert. Removals of one kind, and restored records of one kind, are one write.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::model::Kind;
use crate::store::workspace::records::document;
use crate::store::workspace::{Error, Workspace, stamp};
use crate::store::{Entry, RemovalMode, Returning, Reverted, Scoped, Writer};
use crate::upkeep::undo::files::{file_before, revert_file};
use crate::upkeep::undo::plan::{Change, RevertStep};
use crate::upkeep::undo::{Undone, short};

/// Groups steps into runs that are done at once: removals of one kind, or restored records of one
/// kind.
pub(super) fn runs(planned: &[RevertStep]) -> impl Iterator<Item = &[RevertStep]> {
    planned.chunk_by(|a, b| match (a, b) {
        (RevertStep::Remove { kind: a, .. }, RevertStep::Remove { kind: b, .. })
        | (RevertStep::Restore { kind: a, .. }, RevertStep::Restore { kind: b, .. }) => a == b,
        _ => false,
    })
}

/// Performs one run of steps.
pub(super) fn perform(
    workspace: &Workspace,
    writer: &mut Writer,
    run: &[RevertStep],
    dry_run: bool,
) -> Result<Vec<Undone>, Error> {
    let run = &current(writer.store(), run)?;
    let Some(undo) = run.first() else {
        return Ok(Vec::new());
    };
    let one = match undo {
        RevertStep::Remove { kind, .. } => {
            return remove_run(workspace.now, writer, *kind, run, dry_run);
        }
        RevertStep::Restore { kind, .. } => {
            return restore_run(workspace.now, writer, *kind, run, dry_run);
        }
        RevertStep::Fields { kind, id, fields } => {
            let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            let did = match writer.revert_fields(*kind, id, fields, dry_run)? {
                Reverted::Done => "reverted",
                _ => "unchanged",
            };
            undone(did, id, names.join(", "))
        }
        RevertStep::Move { kind, id, to_local } => {
            let is_moved = dry_run || writer.move_back(*kind, id, *to_local)?;
            let did = if is_moved { "moved back" } else { "unchanged" };
            undone(did, id, String::new())
        }
        RevertStep::Lines { id, go, lines } => {
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
        RevertStep::File { path, splices } => {
            let did = revert_file(workspace, writer, path, splices, dry_run)?;
            undone(did, path, String::new())
        }
    };
    Ok(vec![one])
}

/// Returns the steps with the ids that their records have now.
fn current(store: &Scoped, run: &[RevertStep]) -> Result<Vec<RevertStep>, Error> {
    let mut run = run.to_vec();
    for step in &mut run {
        if let RevertStep::Remove { kind, id }
        | RevertStep::Fields { kind, id, .. }
        | RevertStep::Move { kind, id, .. } = step
        {
            *id = store.current_id(*kind, id)?;
        }
    }
    Ok(run)
}

/// Removes records of a kind that the change added.
fn remove_run(
    now: DateTime<Utc>,
    writer: &mut Writer,
    kind: Kind,
    run: &[RevertStep],
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
        // Procedures would be learned again, so their tombstone holds the content. A
        // person may add any other reverted record again.
        let content = match kind {
            Kind::Procedure => content,
            _ => None,
        };
        contents.push((id, content.unwrap_or_else(|| format!("taken back: {id}"))));
    }
    if !dry_run {
        let removals: Vec<_> = contents.iter().map(|(id, c)| (*id, c.as_str())).collect();
        writer.remove_several(kind, &removals, now, RemovalMode::Undoable)?;
    }
    Ok(steps)
}

/// Restores records of a kind that the change removed.
fn restore_run(
    now: DateTime<Utc>,
    writer: &mut Writer,
    kind: Kind,
    run: &[RevertStep],
    dry_run: bool,
) -> Result<Vec<Undone>, Error> {
    let mut there = HashSet::new();
    writer.store().each_of(kind, &ids_of(run), &mut |entry| {
        there.insert(entry.id);
    })?;
    let mut steps = Vec::new();
    let mut returning = Vec::new();
    for undo in run {
        let RevertStep::Restore {
            id, is_local, text, ..
        } = undo
        else {
            continue;
        };
        let is_there = there.contains(id.as_str());
        let did = if is_there { "unchanged" } else { "restored" };
        let text = text.as_deref().unwrap_or_default();
        let document = document(&Entry {
            kind,
            id: id.clone(),
            text: text.as_bytes().to_vec(),
            offset: 0,
        });
        let summary = document.map(|document| document.summary);
        steps.push(undone(did, id, summary.unwrap_or_default()));
        returning.push(Returning {
            id,
            is_local: *is_local,
            text,
        });
    }
    if !dry_run {
        writer.put_back(kind, &returning, &stamp(now))?;
    }
    Ok(steps)
}

fn id_of(undo: &RevertStep) -> Option<&str> {
    match undo {
        RevertStep::Remove { id, .. } | RevertStep::Restore { id, .. } => Some(id),
        _ => None,
    }
}

fn ids_of(run: &[RevertStep]) -> HashSet<&str> {
    run.iter().filter_map(id_of).collect()
}

fn undone(did: &'static str, target: &str, what: String) -> Undone {
    Undone {
        did,
        target: target.to_owned(),
        what,
    }
}

/// Returns the reasons why a change cannot be reverted.
pub(crate) fn obstacles(
    workspace: &Workspace,
    writer: &mut Writer,
    changes: &[Change<'_>],
    place: usize,
    planned: &[RevertStep],
) -> Result<Vec<String>, Error> {
    let mut reasons = Vec::new();
    let removed = planned.iter().filter_map(|undo| match undo {
        RevertStep::Remove { id, .. } => Some(id.as_str()),
        _ => None,
    });
    let mut resting = resting(writer, &changes[place + 1..], &removed.collect())?;
    for undo in planned {
        reasons.extend(match undo {
            RevertStep::Remove { id, .. } => resting.remove(id.as_str()),
            RevertStep::Restore { id, text: None, .. } => {
                Some(format!("the text of `{id}` was no UTF-8 and was not kept"))
            }
            RevertStep::Restore { .. } | RevertStep::Move { .. } | RevertStep::Lines { .. } => None,
            RevertStep::Fields { kind, id, fields } => {
                match writer.revert_fields(*kind, id, fields, true)? {
                    Reverted::ChangedSince(field) => {
                        Some(format!("`{field}` of `{id}` has been changed since"))
                    }
                    // A record removed by the same change is restored first.
                    Reverted::Gone if comes_back(planned, id) => None,
                    Reverted::Gone => Some(format!("`{id}` is not there any more")),
                    Reverted::Done | Reverted::Already => None,
                }
            }
            RevertStep::File { path, splices } => file_before(workspace, path, splices)
                .err()
                .map(|reason| format!("`{path}`: {reason}")),
        });
    }
    Ok(reasons)
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
                    "`{target}` depends on `{id}`: revert `{}` first ({})",
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

fn comes_back(planned: &[RevertStep], wanted: &str) -> bool {
    planned
        .iter()
        .any(|undo| matches!(undo, RevertStep::Restore { id, .. } if id == wanted))
}
