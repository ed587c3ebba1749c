//! Failures and detours of one session.
//!
//! A failure is met again if a call stops with the same deciding line, numbers aside; one after which another
//! form of the call soon worked, if the same program stops with the same error, names aside. A detour is met
//! again if the same programs first work with the same options and variables after several looks around.
//!
//! Not counted: a failure that an edit follows, which is work on the project. A failed search or a failed tool for
//! files, which is an answer. A script for one call, which belongs to one session.

use std::collections::HashSet;

use memctl_sessions::{Session, Step};

use super::{Repeat, RepeatKind};

use crate::lessons::asking::found_out::{detours, subject};
use crate::lessons::asking::session_calls::SessionCall;
use crate::lessons::failure::error_line::error_line;
use crate::lessons::failure::normalised;
use crate::lessons::past::session_files::is_in;
use crate::lessons::recovery::goal::{Goal, Kind};
use crate::lessons::recovery::outcome::is_shell_error;
use crate::lessons::recovery::pattern::of_files;
use crate::lessons::recovery::recover::{Episode, analyse};
use crate::review::replay;

/// Maximum number of steps of a session that are looked at, the last ones.
const STEPS: usize = 2_000;
/// Number of calls after a failure in which an edit makes it work on the project, and that it can cost.
const SOON: usize = 8;
/// Maximum length of a text, in bytes.
const LONGEST: usize = 400;

/// Failures and detours of one session, with its counts.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) calls: usize,
    pub(super) failed: usize,
    /// What was met, with a text that is equal for what is the same.
    pub(super) met: Vec<(String, Repeat)>,
    /// Calls that another session file has too: positions in the session.
    pub(super) copies: HashSet<usize>,
}

/// Finds failures and detours of a session. `seen` holds the ids of calls of other sessions: a session that
/// was resumed repeats those of the one before.
pub(super) fn found(session: &Session, project: Option<&str>, seen: &mut HashSet<String>) -> Found {
    let steps = &session.steps[session.steps.len().saturating_sub(STEPS)..];
    let mut found = Found::default();
    let mut counts = vec![false; steps.len()];
    for (step, counts) in steps.iter().zip(&mut counts) {
        let id = step.native_id.clone();
        let is_new = id.is_none_or(|id| seen.insert(id));
        *counts = is_new && is_in(step, project);
        if !is_new {
            found.copies.insert(step.index);
        }
    }
    let goals: Vec<Goal> = steps.iter().map(Goal::of).collect();
    let analysis = analyse(steps, &session.remarks);
    found.calls = counts.iter().filter(|counts| **counts).count();
    let mut tried_again: HashSet<usize> = HashSet::new();
    for index in &analysis.failures {
        let Some(at) = steps.iter().position(|step| step.index == *index) else {
            continue;
        };
        if !counts[at] {
            continue;
        }
        found.failed += 1;
        let episode = analysis.episodes.iter().find(|one| one.fail_step == *index);
        tried_again.extend(episode.iter().flat_map(|one| &one.also_fail_steps));
        if !tried_again.contains(index) {
            found.met.extend(failure(steps, &goals, at, episode));
        }
    }
    let calls: Vec<SessionCall> = steps
        .iter()
        .map(|step| {
            let failed = analysis.failures.binary_search(&step.index).is_ok();
            let tool = Some(step.tool.as_str());
            SessionCall::new(tool, &step.call_text(), &step.output, failed)
        })
        .collect();
    for detour in detours(&calls) {
        let command = calls[detour.worked].command().unwrap_or_default();
        let key = subject(command).filter(|_| counts[detour.worked]);
        let steps = &steps[detour.since..detour.worked];
        let once = || Repeat::once(RepeatKind::Detour, shown(command), steps);
        found.met.extend(key.map(|key| (key, once())));
    }
    found
}

/// A failure of the call at a position; `None` if it is nothing that another session would meet.
fn failure(
    steps: &[Step],
    goals: &[Goal],
    at: usize,
    episode: Option<&Episode>,
) -> Option<(String, Repeat)> {
    let (step, goal) = (&steps[at], &goals[at]);
    let is_edit = |goal: &Goal| matches!(goal.kind, Kind::Edit(..));
    let is_of_files = of_files(&step.tool) || matches!(goal.kind, Kind::Read(_)) || is_edit(goal);
    if is_of_files || !step.has_input() || is_script(step) {
        return None;
    }
    let line = error_line(&step.output)?;
    // The output of a search can be any text, except errors of the shell.
    if goal.is_search() && (!is_shell_error(&line) || names_program(&line, goal)) {
        return None;
    }
    let place = |index: usize| steps.iter().position(|step| step.index == index);
    let worked = episode.and_then(|episode| place(episode.success_step));
    let end = worked.unwrap_or(at + SOON).min(steps.len() - 1);
    if goals[at..=end.min(at + SOON)].iter().any(is_edit) || goals[at..=end].iter().any(is_edit) {
        return None;
    }
    let line = shown(&line);
    let call = shown(&step.call_text());
    // The call that worked; where it is the failing one, what was done in between.
    let then = worked
        .map(|at| shown(&steps[at].call_text()))
        .filter(|then| *then != call);
    let between = || {
        let changed = *episode?.changes.last()?;
        Some(shown(&steps[place(changed)?].call_text()))
    };
    let is_near = worked.is_some_and(|worked| worked - at <= SOON);
    let key = match &then {
        Some(_) if is_near => format!("{}\n{}", goal.name(), normalised(&line)),
        _ => without_numbers(&line),
    };
    let cost = if is_near { at..end } else { at..at + 1 };
    let once = Repeat {
        error: line,
        worked: then.or_else(between).unwrap_or_default(),
        ..Repeat::once(RepeatKind::Failure, call, &steps[cost])
    };
    Some((key, once))
}

/// Returns `true` for a script that was written for this call.
fn is_script(step: &Step) -> bool {
    let command = step.command().unwrap_or_default();
    let given = [" -c ", " -e ", " -p ", "<<"];
    command.trim().contains('\n') || given.iter().any(|mark| command.contains(mark))
}

/// Returns `true` if a line is said by a program of the call.
fn names_program(line: &str, goal: &Goal) -> bool {
    let by = line.split(':').next().unwrap_or_default();
    let Kind::Shell(runs) = &goal.kind else {
        return false;
    };
    let mut runs = runs.iter().chain(&goal.filters);
    runs.any(|run| run.name.split(' ').next() == Some(by))
}

fn shown(text: &str) -> String {
    replay::shown(text, LONGEST)
}

fn without_numbers(line: &str) -> String {
    let mut plain = String::new();
    for c in line.chars() {
        if !c.is_ascii_digit() {
            plain.push(c);
        } else if !plain.ends_with('#') {
            plain.push('#');
        }
    }
    plain
}
