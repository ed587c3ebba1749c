//! Finds episodes in the steps of a session: a failed step, the later step that reached its goal, and the retries
//! and changes between them.
//!
//! Precision comes first. Most errors in a session are expected, given up or external, and learning
//! from those is worse than not learning. A success must have the same goal, with more certainty
//! the farther away it is.

use memctl_sessions::{Remark, Speaker, Step};

use super::goal::{Goal, GoalKind};
use super::goal_match::{Match, same_goal};
use super::outcome::{CallOutcome, outcome};
use crate::lessons::failure::error_line::error_line;
use crate::lessons::failure::normalised;

/// Failure with its recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Episode {
    /// Index of the first failed step.
    pub fail_step: usize,
    /// Index of the successful step.
    pub success_step: usize,
    /// Indices of the steps between them that failed at the same goal.
    pub also_fail_steps: Vec<usize>,
    /// Indices of the steps between them that changed something.
    pub changes: Vec<usize>,
    /// Error line of the first failure.
    pub error_line: String,
    /// Error key; empty if there is no error line.
    pub error_key: String,
    /// Name of the goal: `cargo test`, `Edit`.
    pub goal: String,
    /// Only its nearness makes the success plausible: one of the next steps may be the real one.
    pub is_near: bool,
    /// The user said something in between, which may be what helped.
    pub is_spoken: bool,
}

/// Failures and episodes of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Analysis {
    /// Indices of failed steps, without cancelled and refused ones and answers of "no".
    pub failures: Vec<usize>,
    /// Failures with a recovery.
    pub episodes: Vec<Episode>,
}

/// Maximum distance of a similar success, in steps.
const SIMILAR_WITHIN: usize = 60;
/// Maximum distance of a success for a search.
const SEARCH_WITHIN: usize = 12;
/// Maximum distance of a success that is part of the failed step.
const PART_WITHIN: usize = 30;
/// Maximum distance of a success that only its nearness makes plausible.
pub(crate) const NEAR_WITHIN: usize = 6;

/// Number of steps in which a recovery is looked for, so that a long session takes no longer a step.
const FAR: usize = 2_000;

/// Finds the failures and episodes of one session. Steps and remarks must be in order.
pub fn analyse(steps: &[Step], remarks: &[Remark]) -> Analysis {
    let judged: Vec<Judged<'_>> = steps.iter().map(Judged::of).collect();
    let mut analysis = Analysis::default();
    let mut used = vec![false; judged.len()];
    for at in 0..judged.len() {
        if judged[at].outcome != CallOutcome::Failed {
            continue;
        }
        analysis.failures.push(judged[at].step.index);
        if used[at] || !judged[at].step.has_input() {
            continue;
        }
        if let Some((tried, success, found)) = overcome(&judged, at) {
            for tried in &tried {
                used[*tried] = true;
            }
            let is_near = found == Match::Near;
            let between = judged[at].step.index + 1..=judged[success].step.index;
            let is_between = |remark: &Remark| between.contains(&remark.before);
            let mut of_user = remarks.iter().filter(|remark| remark.by == Speaker::User);
            analysis.episodes.push(Episode {
                is_near,
                is_spoken: of_user.any(is_between),
                ..episode(&judged, &tried, success)
            });
        }
    }
    analysis
}

/// Finds the step that reached the goal of the one at `at`. Returns the positions of the failures at this goal,
/// and of the success, and how certain it is.
fn overcome(judged: &[Judged<'_>], at: usize) -> Option<(Vec<usize>, usize, Match)> {
    let failed = &judged[at];
    let search = failed.goal.is_search();
    let mut tried = vec![at];
    // Uncertain success, and the last position up to which a more certain one is preferred.
    let mut unsure: Option<(Match, usize, usize)> = None;
    let mut searched = false;
    for (later, now) in judged.iter().enumerate().skip(at + 1).take(FAR) {
        if unsure.is_some_and(|(_, _, until)| later > until) {
            break;
        }
        // A call whose input the file does not hold may have done anything.
        if now.step.side != failed.step.side || !now.step.has_input() {
            continue;
        }
        // A page of help and a look around reach no goal.
        if now.outcome == CallOutcome::Done
            && (now.goal.is_search() && !search || now.goal.asks_only() && !failed.goal.asks_only())
        {
            searched |= now.goal.is_search();
            continue;
        }
        let found = same_goal(&failed.goal, &now.goal, &failed.step.output);
        let since = later - tried.last().copied().unwrap_or(at);
        let within = match found {
            Match::No => false,
            Match::Near => since <= NEAR_WITHIN && (searched || !failed.goal.is_file()),
            _ if search && found < Match::Same => since <= SEARCH_WITHIN,
            Match::Part => since <= PART_WITHIN,
            Match::Similar => since <= SIMILAR_WITHIN,
            Match::Same => true,
        };
        match now.outcome {
            CallOutcome::Failed if within && found >= Match::Part => tried.push(later),
            CallOutcome::Done if within && found >= Match::Similar => {
                return Some((tried, later, found));
            }
            CallOutcome::Done if within && unsure.is_none_or(|(so_far, ..)| found > so_far) => {
                let is_part = found == Match::Part;
                let wait = [NEAR_WITHIN, PART_WITHIN][usize::from(is_part)];
                unsure = Some((found, later, later + wait));
            }
            _ => {}
        }
        searched |= now.goal.is_search() && now.outcome == CallOutcome::Done;
    }
    let (found, success, _) = unsure?;
    tried.retain(|tried| *tried < success);
    Some((tried, success, found))
}

fn episode(judged: &[Judged<'_>], tried: &[usize], success: usize) -> Episode {
    let failed = &judged[tried[0]];
    let line = error_line(&failed.step.output).unwrap_or_default();
    let between = judged[tried[0] + 1..success].iter();
    let changes = between.filter(|now| now.outcome == CallOutcome::Done && changes(now));
    Episode {
        fail_step: failed.step.index,
        success_step: judged[success].step.index,
        also_fail_steps: tried[1..].iter().map(|t| judged[*t].step.index).collect(),
        changes: changes.map(|now| now.step.index).collect(),
        error_key: normalised(&line),
        error_line: line,
        goal: failed.goal.name(),
        is_near: false,
        is_spoken: false,
    }
}

/// Returns true if a step can change something.
fn changes(now: &Judged<'_>) -> bool {
    match now.goal.kind {
        GoalKind::Edit(..) => true,
        GoalKind::Shell(_) => !now.goal.is_search() || writes(now.step),
        GoalKind::Tool(_) => !now.goal.is_search(),
        GoalKind::Read(_) => false,
    }
}

/// Returns `true` for a shell line that writes a file by a redirection.
pub(crate) fn writes(step: &Step) -> bool {
    let commands = step.command().map(|line| memctl_shell::commands(&line));
    let mut commands = commands.iter().flatten();
    commands.any(|simple| simple.targets.iter().any(|target| target != "/dev/null"))
}

#[cfg(test)]
mod tests;

/// Step with its goal and outcome.
pub(crate) struct Judged<'a> {
    pub(crate) step: &'a Step,
    pub(crate) goal: Goal,
    pub(crate) outcome: CallOutcome,
}

impl<'a> Judged<'a> {
    fn of(step: &'a Step) -> Self {
        let goal = Goal::of(step);
        Self {
            step,
            outcome: outcome(step, &goal),
            goal,
        }
    }
}
