//! Steps of a revert. Removals of one kind, and restored records of one kind, are one write.
//!
//! Of files, only those that corrections write are touched: guardrails and generated tests of skills. The
//! undo journal names them and may be forged, so each path is checked as untrusted input.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use crate::model::Kind;
use crate::model::error::message as chain;
use crate::store::skill::Skills;
use crate::store::workspace::{Error, Workspace, document, document_of, redacting_writer, stamp};
use crate::store::{RawEntry, RemovalMode, Reverted, Splice, Writer};
use crate::upkeep::undo::{Change, Effect, RevertStep, Undone, short};

/// Performs the steps; a dry run writes nothing. Removals of one kind, and restored records of one kind, are done at once.
/// Also returns the reasons why steps cannot be performed.
pub(super) fn perform(
    workspace: &Workspace,
    writer: &mut Writer,
    planned: &[RevertStep],
    dry_run: bool,
) -> Result<(Vec<Undone>, Vec<String>), Error> {
    let is_of_run = |a: &RevertStep, b: &RevertStep| {
        let is_same = std::mem::discriminant(&a.effect) == std::mem::discriminant(&b.effect);
        is_same && a.kind == b.kind && matches!(a.effect, Effect::Remove | Effect::Restore { .. })
    };
    let (mut done, mut reasons) = (Vec::new(), Vec::new());
    for run in planned.chunk_by(is_of_run) {
        let RevertStep {
            target,
            kind,
            effect,
        } = &run[0];
        let one = match (effect, *kind) {
            (Effect::Remove, Some(kind)) => {
                done.extend(remove_run(workspace.now, writer, kind, run, dry_run)?);
                continue;
            }
            (Effect::Restore { .. }, Some(kind)) => {
                let is_lost =
                    |step: &&RevertStep| matches!(step.effect, Effect::Restore { text: None, .. });
                let lost = run.iter().filter(is_lost).map(|step| &step.target);
                reasons.extend(
                    lost.map(|id| format!("the text of `{id}` was no UTF-8 and was not kept")),
                );
                done.extend(restore_run(workspace.now, writer, kind, run, dry_run)?);
                continue;
            }
            (Effect::Fields(fields), Some(kind)) => {
                let id = writer.store().current_id(kind, target)?;
                let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                let reverted = writer.revert_fields(kind, &id, fields, dry_run)?;
                reasons.extend(obstacle(&reverted, planned, target));
                let is_done = matches!(reverted, Reverted::Done);
                let did = if is_done { "reverted" } else { "unchanged" };
                undone(did, &id, names.join(", "))
            }
            (Effect::Move { to_local }, Some(kind)) => {
                let id = writer.store().current_id(kind, target)?;
                let is_moved = dry_run || writer.move_back(kind, &id, *to_local)?;
                let did = if is_moved { "moved back" } else { "unchanged" };
                let whose = if *to_local { "ignores" } else { "keeps" };
                let mut what = format!("to the file that git {whose}");
                if *to_local && id != *target {
                    what.extend([", as ", target]);
                }
                undone(did, &id, what)
            }
            (
                Effect::Approval {
                    digests,
                    is_approved,
                },
                Some(kind),
            ) => {
                let id = writer.store().current_id(kind, target)?;
                if !dry_run {
                    writer.set_approved(kind, &id, digests, *is_approved)?;
                }
                undone("reverted", &id, "approval".to_owned())
            }
            (Effect::File(splices), _) => match RevertedFile::of(workspace, target, splices) {
                Ok(file) => {
                    if !dry_run {
                        file.write(writer)?;
                    }
                    undone(file.did(), target, String::new())
                }
                Err(reason) => {
                    reasons.push(format!("`{target}`: {reason}"));
                    continue;
                }
            },
            // Only files have no kind.
            (_, None) => continue,
        };
        done.push(one);
    }
    Ok((done, reasons))
}

/// Returns the reason why fields of a record cannot be reverted.
fn obstacle(reverted: &Reverted, planned: &[RevertStep], target: &str) -> Option<String> {
    let comes = |step: &RevertStep| matches!(step.effect, Effect::Restore { .. });
    let mut steps = planned.iter();
    match reverted {
        Reverted::ChangedSince(field) => {
            Some(format!("`{field}` of `{target}` has been changed since"))
        }
        // A record removed by the same change is restored first.
        Reverted::Gone if !steps.any(|step| step.target == target && comes(step)) => {
            Some(format!("`{target}` is not there any more"))
        }
        _ => None,
    }
}

/// Removes records of a kind that the change added.
fn remove_run(
    now: DateTime<Utc>,
    writer: &mut Writer,
    kind: Kind,
    run: &[RevertStep],
    dry_run: bool,
) -> Result<Vec<Undone>, Error> {
    let store = writer.store();
    let ids = run.iter().map(|step| store.current_id(kind, &step.target));
    let ids: Vec<String> = ids.collect::<Result<_, _>>()?;
    let wanted = ids.iter().map(String::as_str).collect();
    let mut there = HashMap::new();
    writer.store().each_of(kind, &wanted, &mut |entry| {
        let document = document(&entry);
        there.insert(entry.id, document.map(|d| (d.summary, d.content)));
    })?;
    let mut steps = Vec::new();
    let mut contents = Vec::new();
    for id in &ids {
        let Some(document) = there.remove(id) else {
            steps.push(undone("unchanged", id, String::new()));
            continue;
        };
        let (summary, content) = document.unzip();
        steps.push(undone("removed", id, summary.unwrap_or_default()));
        // Procedures would be learned again, so their tombstone holds the content. A
        // person may add any other reverted record again.
        let content = content.filter(|_| kind == Kind::Procedure);
        contents.push((id, content.unwrap_or_else(|| format!("taken back: {id}"))));
    }
    if !dry_run {
        let removals = contents
            .iter()
            .map(|(id, text)| (id.as_str(), text.as_str()));
        let removals: Vec<_> = removals.collect();
        writer.remove(kind, &removals, now, RemovalMode::Reverted)?;
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
    let wanted = run.iter().map(|step| step.target.as_str()).collect();
    let mut there = HashSet::new();
    writer.store().each_of(kind, &wanted, &mut |entry| {
        there.insert(entry.id);
    })?;
    let mut steps = Vec::new();
    let mut returning = Vec::new();
    for RevertStep {
        target: id, effect, ..
    } in run
    {
        let Effect::Restore { is_local, text } = effect else {
            continue;
        };
        let is_there = there.contains(id.as_str());
        let did = if is_there { "unchanged" } else { "restored" };
        let text = text.clone().unwrap_or_default();
        let summary = document_of(kind, text.as_bytes()).map(|document| document.summary);
        steps.push(undone(did, id, summary.unwrap_or_default()));
        returning.push(RawEntry {
            id: id.clone(),
            is_local: *is_local,
            text,
        });
    }
    if !dry_run {
        writer.restore(kind, &returning, Some(&stamp(now)))?;
    }
    Ok(steps)
}

fn undone(did: &'static str, target: &str, what: String) -> Undone {
    Undone {
        did,
        target: target.to_owned(),
        what,
    }
}

/// Names, for each record to remove, the first later record that refers to it.
pub(super) fn dependents(
    writer: &Writer,
    later: &[Change<'_>],
    planned: &[RevertStep],
) -> Result<Vec<String>, Error> {
    let removed = planned.iter().filter(|step| step.effect == Effect::Remove);
    let removed: HashSet<&str> = removed.map(|step| step.target.as_str()).collect();
    let later: Vec<_> = later.iter().filter(|change| !change.is_undone).collect();
    if removed.is_empty() || later.is_empty() {
        return Ok(Vec::new());
    }
    let lines = || {
        later
            .iter()
            .flat_map(|change| change.lines.iter().map(move |line| (change, line)))
    };
    // Each record is read once, regardless of how often it was changed and how many ids it names.
    let mut named: HashMap<(Kind, String), Vec<&str>> = HashMap::new();
    for kind in Kind::ALL {
        let of_kind = lines().filter(|(_, line)| line.step.kind() == Some(kind));
        let targets = of_kind.filter_map(|(_, line)| line.step.target()).collect();
        writer.store().each_of(kind, &targets, &mut |entry| {
            let ids = ids_in(&entry.text, &removed);
            named.insert((kind, entry.id), ids);
        })?;
    }
    let (mut reasons, mut seen) = (Vec::new(), HashSet::new());
    for (change, line) in lines() {
        let (Some(kind), Some(target)) = (line.step.kind(), line.step.target()) else {
            continue;
        };
        let ids = named.get(&(kind, target.to_owned()));
        for id in ids.into_iter().flatten().filter(|id| **id != target) {
            if seen.insert(*id) {
                let change = short(change.name);
                let why = &line.why;
                reasons.push(format!(
                    "`{target}` depends on `{id}`: revert `{change}` first ({why})"
                ));
            }
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

/// File of a skill, with its text now and its text before; `None` for a missing file.
struct RevertedFile {
    skills: Skills,
    path: PathBuf,
    now: Option<String>,
    before: Option<String>,
}

impl RevertedFile {
    /// Returns a file with these splices reverted, the last one first.
    fn of(workspace: &Workspace, named: &str, splices: &[Splice]) -> Result<Self, String> {
        let skills = workspace.skills().map_err(|error| chain(&error))?;
        let path = place(&skills, named).map_err(|error| chain(&error))?;
        let path = path.ok_or("it is no file that corrections write")?;
        let now = skills.generated(&path).map_err(|error| chain(&error))?;
        let mut text = now.clone();
        for splice in splices {
            text = match (text, &splice.before, &splice.after) {
                // The file is as before already.
                (None, None, _) => None,
                (Some(text), None, Some(after)) if text == *after => None,
                (None, Some(before), None) => Some(before.clone()),
                (Some(text), Some(_), Some(_)) => Some(splice.revert(&text)?),
                (None, _, _) => return Err("it is not there any more".to_owned()),
                (Some(_), _, _) => return Err("it has been changed since".to_owned()),
            };
        }
        let before = text;
        Ok(Self {
            skills,
            path,
            now,
            before,
        })
    }

    /// Returns the word for what a revert does.
    fn did(&self) -> &'static str {
        match &self.before {
            before if *before == self.now => "unchanged",
            Some(_) => "reverted",
            None => "removed",
        }
    }

    fn write(&self, writer: &mut Writer) -> Result<(), Error> {
        if self.now == self.before {
            return Ok(());
        }
        let (now, before) = (self.now.as_deref(), self.before.as_deref());
        redacting_writer::change_of_skill(Some(writer), &self.skills, &self.path, now, before)
            .map(drop)
    }
}

/// Resolves a path of the undo journal; `None` if corrections write no such file.
fn place(skills: &Skills, path: &str) -> Result<Option<PathBuf>, Error> {
    let parts = Path::new(path).components();
    let parts: Option<Vec<&str>> = parts.map(|part| part.as_os_str().to_str()).collect();
    match parts.unwrap_or_default().as_slice() {
        [_, "GUARDRAILS.md"] | [_, _, "GUARDRAILS.md"] | [_, _, "tests", "generated", _] => {
            skills.place(Path::new(path)).map(Some)
        }
        _ => Ok(None),
    }
}
