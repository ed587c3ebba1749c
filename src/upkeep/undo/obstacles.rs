//! Reasons against a revert: parts that were changed since, and later records that name a record to remove.

use std::collections::{HashMap, HashSet};

use super::files::file_before;
use super::plan::{Change, RevertStep};
use super::short;
use crate::model::Kind;
use crate::store::workspace::{Error, Workspace};
use crate::store::{Reverted, Writer};

/// Returns the reasons why a change cannot be reverted.
pub(super) fn obstacles(
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
