//! Reverts a change: the last one, or a named one.
//!
//! A change is everything that one command wrote: records, fields of records, guardrails, tests. All of it
//! is checked before any write. If a part has been changed since, or a later record depends on it,
//! nothing is reverted and the reasons are reported. A revert is a change too, and can be reverted
//! by its name.
//!
//! Pure functions plan a revert. They group the lines of the undo journal into changes, mark the reverted ones,
//! and fold the lines of a change into one effect per target: its state before the first line, and after the
//! last one. `steps` performs the plan.
//!
//! Out of scope: logs, which describe past events, and files outside of `skills/`. The undo journal of a
//! foreign checkout must not be able to name such files.

mod steps;

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Serialize;

use crate::lessons::storage::table::prepare;
use crate::model::{Kind, USER_STORE, with_origin};
use crate::notes::indexing::Index;
use crate::store::workspace::{Error, Workspace, repair_warnings};
use crate::store::{ChangeLine, Field, Scoped, Splice, Step};
use crate::upkeep::undo::steps::{dependents, perform};

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
    /// `true` if the user who asks made it.
    #[serde(skip)]
    pub is_own: bool,
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
    /// Reverted content: field names, the summary of a record, or the file that a record moved to.
    pub what: String,
}

/// Returns the newest changes, newest first.
pub fn changes(store: &Scoped, limit: usize) -> Result<Vec<ChangeReport>, Error> {
    let lines = store.changes()?;
    let changes = changes_of(&lines).into_iter().rev().take(limit);
    let who = &store.audit_context().who;
    Ok(changes.map(|change| report(&change, who)).collect())
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
    let mut reasons = dependents(&writer, &changes[place + 1..], &planned)?;
    let (steps, more) = perform(workspace, &mut writer, &planned, true)?;
    reasons.extend(more);
    if !reasons.is_empty() {
        return Err(not_undoable(short(change.name), &reasons.join("; ")));
    }
    let mut done = UndoReport {
        change: ChangeReport {
            undone: !dry_run,
            ..report(change, who)
        },
        steps,
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
        (done.steps, done.warnings) = perform(workspace, &mut writer, &planned, false)?;
        let mut kinds = planned.iter().map(|step| step.kind);
        if kinds.any(|kind| kind == Some(Kind::Procedure)) {
            prepare(writer.store())?;
        }
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
    let name = done.change.name.clone();
    let lines = user.store.changes()?;
    let is_it = |change: &Change<'_>| change.name == name && !change.is_undone;
    let is_there = changes_of(&lines).iter().any(is_it);
    let of_user = |dry_run| -> Result<Vec<Undone>, Error> {
        if !is_there {
            return Ok(Vec::new());
        }
        Ok(revert(user, Some(&name), dry_run)?.steps)
    };
    let mut steps = of_user(true)?;
    if !dry_run {
        done = revert(workspace, Some(&name), false)?;
        steps = of_user(false)?;
    }
    done.steps.extend(steps.into_iter().map(|step| Undone {
        target: with_origin(&step.target, USER_STORE),
        ..step
    }));
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

fn report(change: &Change<'_>, who: &str) -> ChangeReport {
    let first: Option<&&ChangeLine> = change.lines.first();
    let text = |of: fn(&ChangeLine) -> &String| first.map(|line| of(line).clone());
    let targets = change.lines.iter().filter_map(|line| line.step.target());
    let targets: BTreeSet<&str> = targets.collect();
    ChangeReport {
        change: short(change.name).to_owned(),
        name: change.name.to_owned(),
        at: text(|line| &line.at).unwrap_or_default(),
        who: text(|line| &line.who).unwrap_or_default(),
        why: text(|line| &line.why).unwrap_or_default(),
        touched: targets.into_iter().map(str::to_owned).collect(),
        undone: change.is_undone,
        is_own: change.is_by(who),
    }
}

/// First 8 characters of a name, enough for people to type.
fn short(name: &str) -> &str {
    name.get(..8).unwrap_or(name)
}

/// One change: all that one command wrote.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    /// Name of the change.
    pub(crate) name: &'a str,
    /// Lines of the undo journal, oldest first.
    pub(crate) lines: Vec<&'a ChangeLine>,
    /// `true` if a later change reverted it.
    pub(crate) is_undone: bool,
}

impl Change<'_> {
    /// Returns the change that this one reverted; `None` if it is no revert.
    pub(crate) fn undoes(&self) -> Option<&str> {
        self.lines.iter().find_map(|line| match &line.step {
            Step::Undone { of } => Some(of.as_str()),
            _ => None,
        })
    }

    /// Returns `true` if a hook of an agent host made the change, not a typed command.
    pub(crate) fn is_of_a_hook(&self) -> bool {
        self.lines
            .first()
            .is_some_and(|line| line.why == "hook" || line.why.starts_with("hook "))
    }

    /// Returns `true` if this user made the change, or the journal names nobody.
    pub(crate) fn is_by(&self, who: &str) -> bool {
        let is_by = |line: &&ChangeLine| line.who.is_empty() || line.who == who;
        self.lines.iter().all(is_by)
    }
}

/// Groups the lines of an undo journal into changes, oldest first.
pub(crate) fn changes_of(lines: &[ChangeLine]) -> Vec<Change<'_>> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut changes: Vec<Change<'_>> = Vec::new();
    for line in lines {
        let place = *places.entry(&line.change).or_insert(changes.len());
        if place == changes.len() {
            changes.push(Change {
                name: &line.change,
                lines: Vec::new(),
                is_undone: false,
            });
        }
        changes[place].lines.push(line);
    }
    // A revert that was itself reverted has no effect any more.
    let mut undone: HashSet<String> = HashSet::new();
    for change in changes.iter_mut().rev() {
        change.is_undone = undone.contains(change.name);
        if !change.is_undone
            && let Some(of) = change.undoes()
        {
            undone.insert(of.to_owned());
        }
    }
    changes
}

/// Step of a revert, which brings one target back to its earlier state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RevertStep {
    /// Id of the record, or path of the file.
    pub(crate) target: String,
    /// Kind of the record; `None` for a file.
    pub(crate) kind: Option<Kind>,
    pub(crate) effect: Effect,
}

/// Effect on a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Removes the record.
    Remove,
    /// Restores the record.
    Restore {
        /// `true` if it was in the local file of its kind.
        is_local: bool,
        /// JSON text of the record; `None` if it is lost.
        text: Option<String>,
    },
    /// Reverts fields of the record, with the values before the first and after the last line.
    Fields(Vec<Field>),
    /// Moves the record to the file of its kind that it was in.
    Move {
        /// `true` to move it to the local file.
        to_local: bool,
    },
    /// Approves texts of the record, or revokes their approval.
    Approval {
        digests: Vec<String>,
        is_approved: bool,
    },
    /// Reverts splices of the file, last one first.
    File(Vec<Splice>),
}

/// Returns the steps that revert a change, last one first.
pub(crate) fn revert_steps(change: &Change<'_>) -> Vec<RevertStep> {
    let mut planned: Vec<RevertStep> = Vec::new();
    let lines: Vec<&Step> = change.lines.iter().rev().map(|line| &line.step).collect();
    // A record that moved has two ids. The plan names the one that it has in the local file.
    let pairs = lines.iter().filter_map(|step| step.both_ids());
    let local: HashMap<&str, &str> = pairs.map(|(local, shared)| (shared, local)).collect();
    let named = lines.iter().filter_map(|step| {
        let target = step.target()?;
        Some((local.get(target).copied().unwrap_or(target), *step))
    });
    let named: Vec<(&str, &Step)> = named.collect();
    let mut seen: HashSet<&str> = HashSet::new();
    for (of, first) in named.iter().filter(|(of, _)| seen.insert(of)) {
        let of_target = named.iter().filter(|(target, _)| target == of);
        let effects = fold(of_target.map(|(_, step)| *step));
        planned.extend(effects.into_iter().map(|effect| RevertStep {
            target: (*of).to_owned(),
            kind: first.kind(),
            effect,
        }));
    }
    planned
}

/// Folds the steps on one target, last one first, into effects.
fn fold<'a>(steps: impl Iterator<Item = &'a Step>) -> Vec<Effect> {
    let mut effects: Vec<Effect> = Vec::new();
    for step in steps {
        match (step, effects.last_mut()) {
            // This change added the record, so all its later steps go with it. If the change also
            // removed the record, nothing is left to do.
            (Step::Added { .. }, _) => {
                let is_restored = |effect: &Effect| matches!(effect, Effect::Restore { .. });
                let went = effects.iter().any(is_restored);
                effects.clear();
                effects.extend((!went).then_some(Effect::Remove));
            }
            (Step::Edited { fields, .. }, Some(Effect::Fields(earlier))) => {
                for field in fields {
                    match earlier.iter_mut().find(|other| other.name == field.name) {
                        Some(later) => later.before.clone_from(&field.before),
                        None => earlier.push(field.clone()),
                    }
                }
            }
            (Step::Edited { fields, .. }, _) => effects.push(Effect::Fields(fields.clone())),
            (Step::Removed { local, text, .. }, _) => effects.push(Effect::Restore {
                is_local: *local,
                text: text.clone(),
            }),
            (Step::File { splice, .. }, Some(Effect::File(splices))) => {
                splices.push(splice.clone());
            }
            (Step::File { splice, .. }, _) => effects.push(Effect::File(vec![splice.clone()])),
            (Step::Moved { local, .. }, last) => {
                // Fields of steps before and after the move are one effect.
                let is_behind = matches!(last, Some(Effect::Fields(_)));
                effects.retain(|effect| !matches!(effect, Effect::Move { .. }));
                let at = effects.len() - usize::from(is_behind);
                effects.insert(at, Effect::Move { to_local: !local });
            }
            // First in the list, so that the steps around it stay neighbours.
            (
                Step::Approval {
                    digest, revoked, ..
                },
                _,
            ) => match effects.first_mut() {
                Some(Effect::Approval { digests, .. }) => digests.push(digest.clone()),
                _ => effects.insert(
                    0,
                    Effect::Approval {
                        digests: vec![digest.clone()],
                        is_approved: *revoked,
                    },
                ),
            },
            (Step::Undone { .. }, _) => {}
        }
    }
    effects
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(change: &str, step: Step) -> ChangeLine {
        ChangeLine {
            change: change.to_owned(),
            at: String::new(),
            who: String::new(),
            why: String::new(),
            step,
            mac: None,
        }
    }

    fn added(id: &str) -> Step {
        Step::Added {
            kind: Kind::Memory,
            id: id.to_owned(),
        }
    }

    fn edited(id: &str, before: &str, after: &str) -> Step {
        Step::Edited {
            kind: Kind::Memory,
            id: id.to_owned(),
            fields: vec![Field {
                name: "content".to_owned(),
                before: Some(before.to_owned()),
                after: Some(after.to_owned()),
            }],
        }
    }

    fn undone(of: &str) -> Step {
        Step::Undone { of: of.to_owned() }
    }

    #[test]
    fn an_undoing_that_was_undone_undoes_nothing() {
        let check = |steps: &[(&str, Step)], expected: &[(&str, bool)]| {
            let lines: Vec<_> = steps.iter().map(|(c, s)| line(c, s.clone())).collect();
            let changes = changes_of(&lines);
            let found: Vec<_> = changes.iter().map(|c| (c.name, c.is_undone)).collect();
            assert_eq!(found, expected);
        };
        let (a, b) = (("a", added("1")), ("b", undone("a")));
        check(std::slice::from_ref(&a), &[("a", false)]);
        check(&[a.clone(), b.clone()], &[("a", true), ("b", false)]);
        let c = ("c", undone("b"));
        let all = [("a", false), ("b", true), ("c", false)];
        check(&[a.clone(), b.clone(), c], &all);
        // Two processes at once interleave their lines.
        let mixed = [a.clone(), ("x", added("2")), ("a", added("3"))];
        check(&mixed, &[("a", false), ("x", false)]);
    }

    #[test]
    fn the_lines_on_a_target_become_one_effect() {
        let check = |steps: &[Step], expected: &[Effect]| {
            let lines: Vec<_> = steps.iter().map(|step| line("a", step.clone())).collect();
            let planned = revert_steps(&changes_of(&lines)[0]);
            assert!(planned.iter().all(|step| step.target == "1"), "{planned:?}");
            let effects: Vec<Effect> = planned.into_iter().map(|step| step.effect).collect();
            assert_eq!(effects, expected);
        };
        let (kind, id) = (Kind::Memory, "1".to_owned());
        check(&[added("1")], &[Effect::Remove]);
        check(&[added("1"), edited("1", "a", "b")], &[Effect::Remove]);
        let Step::Edited { fields, .. } = edited("1", "a", "c") else {
            unreachable!()
        };
        let fields = Effect::Fields(fields);
        check(
            &[edited("1", "a", "b"), edited("1", "b", "c")],
            std::slice::from_ref(&fields),
        );
        let text = Some("{}".to_owned());
        let removed = Step::Removed {
            kind,
            id: id.clone(),
            local: true,
            text: text.clone(),
        };
        let moved = |local| Step::Moved {
            kind,
            id: id.clone(),
            from: None,
            local,
        };
        let back_to_local = Effect::Move { to_local: true };
        // Approved, approved again after an undo, and shown in between.
        let steps = [edited("1", "a", "b"), moved(false), edited("1", "b", "c")];
        check(&steps, &[back_to_local.clone(), fields.clone()]);
        check(
            &[moved(false), moved(true), moved(false)],
            std::slice::from_ref(&back_to_local),
        );
        // With another id in the shared file.
        let renamed = Step::Moved {
            kind,
            id: "2".to_owned(),
            from: Some(id.clone()),
            local: false,
        };
        let steps = [edited("1", "a", "b"), renamed, edited("2", "b", "c")];
        check(&steps, &[back_to_local, fields.clone()]);
        let is_local = true;
        let restore = Effect::Restore { is_local, text };
        check(
            &[edited("1", "a", "c"), removed.clone()],
            &[restore, fields],
        );
        check(&[added("1"), removed], &[]);
    }
}
