//! Finds episodes in the steps of a session: a step that failed, and the later step that achieved
//! what it tried. What lies between, retries and repairs, belongs to the episode.
//!
//! Precision comes first: of every hundred things that go wrong in a session, most are looked at,
//! expected, given up, or somebody else's fault, and a memory that learns from those is worse than
//! none. So a success must have the same goal, the surer the farther it is away, and an error that
//! the agent or the user calls expected is none.

mod excuse;

use crate::model::{Remark, Step};

use super::error_key::normalised;
use super::error_line::error_line;
use super::goal::Goal;
use super::outcome::{Outcome, outcome};
use super::same::{Match, same_goal};
use excuse::{is_expected, makes, says_missing};

/// A failure that was overcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Episode {
    /// The ordinal of the step that failed first.
    pub fail_step: usize,
    /// The ordinal of the step that succeeded.
    pub success_step: usize,
    /// The steps between them that failed at the same.
    pub also_fail_steps: Vec<usize>,
    /// The steps between them that changed something.
    pub changes: Vec<usize>,
    /// The line that said what went wrong.
    pub error_line: String,
    /// Its key; empty where the failure said nothing.
    pub error_key: String,
    /// What was tried, by name: `cargo test`, `Edit`.
    pub goal: String,
}

/// What a session holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Analysis {
    /// The ordinals of the steps that failed; cancelled and refused ones, and answers of "no", are
    /// none.
    pub failures: Vec<usize>,
    /// Failures that were overcome.
    pub episodes: Vec<Episode>,
}

/// How far away a success may be that is only similar, in steps.
const SIMILAR_WITHIN: usize = 60;
/// How far away a success may be of something that was only looked for.
const SEARCH_WITHIN: usize = 12;
/// How far away a success may be that is a part of what failed.
const PART_WITHIN: usize = 30;
/// How far away a success may be that only its nearness makes believable.
const NEAR_WITHIN: usize = 6;

/// How many different attempts at one thing a later step is compared with: the first, and the last ones.
/// An agent that is stuck tries hundreds of times.
const ATTEMPTS: usize = 16;

/// A step with what is known about it.
struct Known<'a> {
    step: &'a Step,
    goal: Goal,
    outcome: Outcome,
}

/// Finds what was overcome. Steps and remarks are those of one session, in order.
pub fn analyse(steps: &[Step], remarks: &[Remark]) -> Analysis {
    let known: Vec<Known<'_>> = steps
        .iter()
        .map(|step| {
            let goal = Goal::of(step);
            let outcome = outcome(step, &goal);
            Known {
                step,
                goal,
                outcome,
            }
        })
        .collect();
    let mut analysis = Analysis::default();
    let mut used = vec![false; known.len()];
    for at in 0..known.len() {
        if known[at].outcome != Outcome::Failed {
            continue;
        }
        analysis.failures.push(known[at].step.index);
        if used[at] || is_expected(&known[at], remarks) {
            continue;
        }
        if let Some(found) = overcome(&known, at) {
            used[at] = true;
            for also in &found.also {
                used[*also] = true;
            }
            analysis.episodes.push(episode(&known, at, &found));
        }
    }
    analysis
}

/// A success, and the failures on the way to it, as positions.
struct Found {
    success: usize,
    also: Vec<usize>,
}

/// Finds the step that achieved what the one at `at` tried.
fn overcome(known: &[Known<'_>], at: usize) -> Option<Found> {
    let failed = &known[at];
    let search = failed.goal.is_search();
    let missing = search && says_missing(&failed.step.output);
    let mut tried = vec![at];
    let mut attempts = vec![at];
    // A success that is not sure, and until where a surer one is waited for.
    let mut unsure: Option<(Match, usize, usize)> = None;
    let mut searched = false;
    for (later, now) in known.iter().enumerate().skip(at + 1) {
        if unsure.is_some_and(|(_, _, until)| later > until) {
            break;
        }
        if now.step.side != failed.step.side {
            continue;
        }
        // What is made after it was found missing was never to be found.
        if missing && now.outcome == Outcome::Done && makes(now, failed) {
            return None;
        }
        let found = matched(known, &attempts, later);
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
            Outcome::Failed if within && found >= Match::Part => {
                tried.push(later);
                note_attempt(known, &mut attempts, later);
            }
            Outcome::Done if within && found >= Match::Similar => {
                return Some(found_at(later, tried));
            }
            Outcome::Done if within && unsure.is_none_or(|(so_far, ..)| found > so_far) => {
                let wait = if found == Match::Part {
                    PART_WITHIN
                } else {
                    NEAR_WITHIN
                };
                unsure = Some((found, later, later + wait));
            }
            _ => {}
        }
        searched |= now.goal.is_search() && now.outcome == Outcome::Done;
    }
    unsure.map(|(_, success, _)| found_at(success, tried))
}

/// Adds an attempt to those that are compared, unless it is one of them word for word.
fn note_attempt(known: &[Known<'_>], attempts: &mut Vec<usize>, later: usize) {
    let now = known[later].step;
    let repeats = attempts.iter().any(|at| {
        let before = known[*at].step;
        (&before.tool, &before.input, &before.output) == (&now.tool, &now.input, &now.output)
    });
    if !repeats {
        if attempts.len() == ATTEMPTS {
            attempts.remove(1);
        }
        attempts.push(later);
    }
}

/// How surely a step is for what was tried: at first, or in a later attempt at it. An attempt may
/// do more than was tried at first, and that more is no part of the goal.
fn matched(known: &[Known<'_>], attempts: &[usize], later: usize) -> Match {
    let of = |t: usize| same_goal(&known[t].goal, &known[later].goal, &known[t].step.output);
    let first = attempts.first().map_or(Match::No, |t| of(*t));
    if first == Match::No {
        return Match::No;
    }
    attempts.iter().map(|t| of(*t)).max().unwrap_or(first)
}

fn found_at(success: usize, tried: Vec<usize>) -> Found {
    let also = tried.into_iter().skip(1).filter(|t| *t < success).collect();
    Found { success, also }
}

fn episode(known: &[Known<'_>], at: usize, found: &Found) -> Episode {
    let failed = &known[at];
    let line = error_line(&failed.step.output).unwrap_or_default();
    let changes = known[at + 1..found.success]
        .iter()
        .filter(|now| now.outcome == Outcome::Done && changes(&now.goal))
        .map(|now| now.step.index)
        .collect();
    Episode {
        fail_step: failed.step.index,
        success_step: known[found.success].step.index,
        also_fail_steps: found.also.iter().map(|t| known[*t].step.index).collect(),
        changes,
        error_key: normalised(&line),
        error_line: line,
        goal: failed.goal.name(),
    }
}

/// Whether a step changes anything: everything that does not only look may.
fn changes(goal: &Goal) -> bool {
    use super::goal::Kind;
    match goal.kind {
        Kind::Edit(..) => true,
        Kind::Shell(_) => !goal.is_search(),
        Kind::Read(_) | Kind::Tool(_) => false,
    }
}

#[cfg(test)]
mod tests;
