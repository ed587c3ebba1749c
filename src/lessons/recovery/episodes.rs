//! Finds episodes in the steps of a session, also while it runs: a failed step, the later step that reached
//! its goal, and the retries and changes between them.
//!
//! Precision comes first. Most errors in a session are expected, given up or external, and learning
//! from those is worse than not learning. A success must have the same goal, with more certainty
//! the farther away it is. Errors that the agent or the user calls expected are ignored.
//!
//! The trace of a running session is short: most failures have no recovery, and each step costs a write.

use memctl_sessions::{Remark, Speaker, Step};
use serde::{Deserialize, Serialize};

use super::goal::{Goal, Kind};
use super::goal_match::{Match, same_goal};
use super::outcome::{Outcome, outcome};
use super::pattern;
use crate::lessons::call::{Simple, commands};
use crate::lessons::failure::error_line::error_line;
use crate::lessons::failure::normalised;
use crate::lessons::session::calls::SessionCall;
use crate::lessons::session::clean;
use crate::lessons::vocabulary::WORDS;
use crate::model::Pattern;

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
const NEAR_WITHIN: usize = 6;

/// Number of steps in which a recovery is looked for, so that a long session takes no longer a step.
const FAR: usize = 2_000;

/// Finds the failures and episodes of one session. Steps and remarks must be in order.
pub fn analyse(steps: &[Step], remarks: &[Remark]) -> Analysis {
    let judged: Vec<Judged<'_>> = steps.iter().map(Judged::of).collect();
    let mut analysis = Analysis::default();
    let mut used = vec![false; judged.len()];
    for at in 0..judged.len() {
        if judged[at].outcome != Outcome::Failed {
            continue;
        }
        analysis.failures.push(judged[at].step.index);
        if used[at] || !judged[at].step.has_input() || is_expected(&judged[at], remarks) {
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
    let missing = search && says_missing(&failed.step.output);
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
        // A missing thing that is created later does not count as recovered.
        if missing && now.outcome == Outcome::Done && makes(now, failed) {
            return None;
        }
        // A page of help and a look around reach no goal.
        if now.outcome == Outcome::Done
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
            Outcome::Failed if within && found >= Match::Part => tried.push(later),
            Outcome::Done if within && found >= Match::Similar => {
                return Some((tried, later, found));
            }
            Outcome::Done if within && unsure.is_none_or(|(so_far, ..)| found > so_far) => {
                let is_part = found == Match::Part;
                let wait = [NEAR_WITHIN, PART_WITHIN][usize::from(is_part)];
                unsure = Some((found, later, later + wait));
            }
            _ => {}
        }
        searched |= now.goal.is_search() && now.outcome == Outcome::Done;
    }
    let (found, success, _) = unsure?;
    tried.retain(|tried| *tried < success);
    Some((tried, success, found))
}

fn episode(judged: &[Judged<'_>], tried: &[usize], success: usize) -> Episode {
    let failed = &judged[tried[0]];
    let line = error_line(&failed.step.output).unwrap_or_default();
    let between = judged[tried[0] + 1..success].iter();
    let changes = between.filter(|now| now.outcome == Outcome::Done && changes(now));
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
        Kind::Edit(..) => true,
        Kind::Shell(_) => !now.goal.is_search() || writes(now.step),
        Kind::Tool(_) => !now.goal.is_search(),
        Kind::Read(_) => false,
    }
}

/// Returns `true` for a shell line that writes a file by a redirection.
pub(crate) fn writes(step: &Step) -> bool {
    let commands = step.command().map(|line| memctl_shell::commands(&line));
    let mut commands = commands.iter().flatten();
    commands.any(|simple| simple.targets.iter().any(|target| target != "/dev/null"))
}

/// Maximum number of steps; a failure that is older is given up.
const MOST: usize = 16;
/// Maximum length of a stored call, in bytes.
const LONGEST: usize = 4_000;

/// Recent steps of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Trace(Vec<SessionCall>);

impl Trace {
    /// Returns `true` if no failure waits for its recovery.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a failed call.
    pub(crate) fn failed(&mut self, tool: Option<&str>, call: &str, output: &str) {
        self.push(tool, call, output, true);
    }

    /// Failures without a recovery, oldest first.
    pub(crate) fn failures(&self) -> impl DoubleEndedIterator<Item = &SessionCall> {
        self.0.iter().filter(|call| call.failed)
    }

    /// Forgets all steps.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a successful call. Returns the patterns of the failures that it recovered.
    pub(crate) fn succeeded(
        &mut self,
        tool: Option<&str>,
        call: &str,
        output: &str,
    ) -> Vec<Pattern> {
        let mut patterns = Vec::new();
        if self.is_idle() {
            return patterns;
        }
        self.push(tool, call, output, false);
        let steps = self.0.iter().enumerate();
        let steps: Vec<Step> = steps.map(|(at, step)| step.step(at)).collect();
        let last = steps.len().saturating_sub(1);
        let analysis = analyse(&steps, &[]);
        // A look at the failed object may come between a failure and its recovery.
        let is_over = |episode: &&Episode| {
            let wait = if episode.is_near { NEAR_WITHIN } else { 0 };
            episode.success_step + wait == last
        };
        let over = analysis.episodes.iter().filter(is_over);
        let mut recovered: Vec<usize> = Vec::new();
        for episode in over {
            recovered.push(episode.fail_step);
            recovered.extend(&episode.also_fail_steps);
            patterns.extend(pattern::of_episode(episode, &steps, &clean));
        }
        let mut places = 0..;
        self.0
            .retain(|_| !places.next().is_some_and(|at| recovered.contains(&at)));
        self.shorten();
        patterns
    }

    fn push(&mut self, tool: Option<&str>, call: &str, output: &str, failed: bool) {
        self.0.push(SessionCall {
            call: call[..call.floor_char_boundary(LONGEST)].to_owned(),
            ..SessionCall::new(tool, "", output, failed)
        });
        self.0.drain(..self.0.len().saturating_sub(MOST));
        self.shorten();
    }

    /// Drops the steps before the first failure.
    fn shorten(&mut self) {
        let first = self.0.iter().position(|step| step.failed);
        self.0.drain(..first.unwrap_or(self.0.len()));
    }
}

#[cfg(test)]
mod tests;

/// Step with its goal and outcome.
pub(crate) struct Judged<'a> {
    pub(crate) step: &'a Step,
    pub(crate) goal: Goal,
    pub(crate) outcome: Outcome,
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

/// Returns true if an error reports a missing thing.
pub(crate) fn says_missing(error: &str) -> bool {
    let lower = error[..error.floor_char_boundary(2_000)].to_ascii_lowercase();
    WORDS.missing_things.occur_in(&lower)
}

/// Returns true if a step creates what another was looking for.
pub(crate) fn makes(now: &Judged<'_>, failed: &Judged<'_>) -> bool {
    let creates = |simple: &Simple| {
        matches!(
            simple.program(),
            "mkdir" | "touch" | "cp" | "mv" | "ln" | "git"
        )
    };
    let line = now.step.command().unwrap_or_default();
    let simples = commands(&line).into_iter().filter(creates);
    let mut made: Vec<String> = simples.flat_map(|simple| simple.words).collect();
    if let Kind::Edit(paths, _) = &now.goal.kind {
        made.clone_from(paths);
    }
    failed.goal.looked_for().iter().any(|wanted| {
        let wanted = wanted.trim_start_matches("./").trim_end_matches('/');
        wanted.len() > 2 && made.iter().any(|path| path.contains(wanted))
    })
}

/// Returns true if a remark right before or after the step says that it should fail.
pub(crate) fn is_expected(failed: &Judged<'_>, remarks: &[Remark]) -> bool {
    let index = failed.step.index;
    let about = remarks
        .iter()
        .filter(|remark| remark.before == index || remark.before == index + 1);
    let is_announced = |remark: &Remark| {
        WORDS
            .expected_failures
            .occur_in(&remark.text.to_ascii_lowercase())
    };
    about.into_iter().any(is_announced)
}

#[cfg(test)]
mod tests_of_traces {
    use super::*;

    const BASH: Option<&str> = Some("Bash");

    #[test]
    fn a_recovery_is_seen_at_its_success() {
        let mut trace = Trace::default();
        assert!(trace.succeeded(BASH, "ls", "").is_empty() && trace.is_idle());
        trace.failed(BASH, "rtk bun run test", "rtk: unknown command bun");
        assert!(trace.succeeded(BASH, "ls -l", "go.sh").is_empty());
        let patterns = trace.succeeded(BASH, "bun run test", "ok");
        assert_eq!(patterns.len(), 1);
        assert_eq!(patterns[0].working_code, "bun run test");
        assert!(trace.is_idle(), "{trace:?}");
    }

    #[test]
    fn a_look_between_failure_and_cure_is_no_success() {
        let mut trace = Trace::default();
        let error = "ERROR:  syntax error at or near \";\"";
        trace.failed(
            BASH,
            "psql -d app -c 'ALTER TABLE users ADD COLUMN age;'",
            error,
        );
        for look in [r"psql -d app -c '\d users'", "psql -d app -c 'select 1'"] {
            assert!(trace.succeeded(BASH, look, "age | text").is_empty());
        }
        let recovery = "psql -d app -c 'ALTER TABLE users ADD COLUMN age INTEGER;'";
        let patterns = trace.succeeded(BASH, recovery, "ALTER TABLE");
        assert_eq!(patterns.len(), 1);
        assert_eq!(patterns[0].working_code, recovery);
        // Without a better recovery, the nearest success counts.
        trace.failed(
            BASH,
            "shop send --text 'please bring more green apples'",
            "error: no such field",
        );
        assert!(
            trace
                .succeeded(
                    BASH,
                    "shop send --text 'orders leave early every monday'",
                    "sent"
                )
                .is_empty()
        );
        for n in 1..=NEAR_WITHIN {
            assert!(!trace.is_idle());
            trace.succeeded(BASH, &format!("sleep {n}"), "");
        }
        assert!(trace.is_idle());
    }

    #[test]
    fn a_change_in_between_is_no_pattern_and_old_failures_are_given_up() {
        let mut trace = Trace::default();
        trace.failed(BASH, "./go.sh", "bash: ./go.sh: Permission denied");
        assert!(trace.succeeded(BASH, "chmod +x go.sh", "").is_empty());
        assert!(trace.succeeded(BASH, "./go.sh", "hi").is_empty());
        trace.failed(BASH, "make", "make: *** no rule");
        for n in 0..MOST {
            trace.succeeded(BASH, &format!("echo {n}"), "");
        }
        assert!(trace.is_idle());
    }
}
