//! Finds episodes in the steps of a session: a failed step, the later step that reached its goal, and the retries
//! and changes between them.
//!
//! Precision comes first. Most errors in a session are expected, given up or external, and learning
//! from those is worse than not learning. A success must have the same goal, with more certainty
//! the farther away it is.

use memctl_sessions::{Remark, Speaker, Step};

use super::goal::{Goal, GoalKind, writes};
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
            Match::Near => {
                since <= NEAR_WITHIN && (searched || !matches!(failed.goal.kind, GoalKind::Read(_)))
            }
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Steps of a host that flags errors.
    fn flagged(calls: &[(&str, Value, &str, bool)]) -> Vec<Step> {
        let step =
            |(index, (tool, input, output, failed)): (usize, &(&str, Value, &str, bool))| Step {
                index,
                tool: (*tool).to_owned(),
                input: input.clone(),
                output: (*output).to_owned(),
                is_error: Some(*failed),
                answered: true,
                ..Step::default()
            };
        calls.iter().enumerate().map(step).collect()
    }

    /// Shell steps of a host that flags errors.
    fn shell(calls: &[(&str, &str, bool)]) -> Vec<Step> {
        let calls: Vec<_> = calls
            .iter()
            .map(|(command, output, failed)| {
                ("Bash", json!({ "command": command }), *output, *failed)
            })
            .collect();
        flagged(&calls)
    }

    /// Steps without flags.
    fn unflagged(mut steps: Vec<Step>) -> Vec<Step> {
        for step in &mut steps {
            step.is_error = None;
        }
        steps
    }

    /// `(fail, success, also)` of each episode.
    fn pairs(steps: &[Step]) -> Vec<(usize, usize, Vec<usize>)> {
        pairs_with(steps, &[])
    }

    fn pairs_with(steps: &[Step], remarks: &[Remark]) -> Vec<(usize, usize, Vec<usize>)> {
        let found = analyse(steps, remarks).episodes;
        found
            .into_iter()
            .map(|e| (e.fail_step, e.success_step, e.also_fail_steps))
            .collect()
    }

    fn edit(path: &str, old: &str, new: &str) -> Value {
        json!({ "file_path": path, "old_string": old, "new_string": new })
    }

    #[test]
    fn retries_belong_to_one_episode() {
        let steps = shell(&[
            (
                "npm run build && npm test",
                "Exit code 1\n[test] 2 failed",
                true,
            ),
            ("ls src", "a.ts", false),
            ("npm test", "Exit code 1\n[test] 1 failed", true),
            ("npm run lint", "ok", false),
            ("npm test -- --watch=false", "[test] ok", false),
            ("npm test", "[test] ok", false),
        ]);
        assert_eq!(pairs(&steps), [(0, 4, vec![2])]);
    }

    #[test]
    fn an_agent_that_was_stuck_for_long_has_one_episode() {
        let mut calls: Vec<(String, &str, bool)> = Vec::new();
        for n in 0..400 {
            let flag = if n % 2 == 0 {
                "-q".to_owned()
            } else {
                format!("-j{n}")
            };
            calls.push((format!("make {flag} install"), "make: *** no rule", true));
        }
        calls.push(("make -q install".to_owned(), "installed", false));
        let calls: Vec<(&str, &str, bool)> = calls
            .iter()
            .map(|(command, output, failed)| (command.as_str(), *output, *failed))
            .collect();
        let found = pairs(&shell(&calls));
        assert_eq!(found, [(0, 400, (1..400).collect())]);
    }

    #[test]
    fn the_same_line_inside_a_longer_one_is_the_same_goal() {
        let steps = shell(&[
            (
                "python3 tools/gen.py --all",
                "Exit code 1\nKeyError: 'a'",
                true,
            ),
            ("cd tools && git pull", "", false),
            (
                "cd /w && A=1 timeout 60 python tools/gen.py --all 2>&1 | tail -5; echo done",
                "ok",
                false,
            ),
        ]);
        assert_eq!(pairs(&steps), [(0, 2, vec![])]);
    }

    #[test]
    fn a_script_is_the_same_however_it_is_started() {
        let steps = shell(&[
            (
                "./tools/gen.py build",
                "(eval):1: permission denied: ./tools/gen.py",
                true,
            ),
            ("python3 -u tools/gen.py build", "ok", false),
        ]);
        assert_eq!(pairs(&steps), [(0, 1, vec![])]);
    }

    #[test]
    fn another_message_is_another_commit() {
        let mut calls = vec![(
            "git commit -m 'Add the tax to all totals'",
            "nothing to commit",
            true,
        )];
        calls.extend([("cargo fmt", "", false); 8]);
        calls.push((
            "git commit -m 'Read rows from a file'",
            "1 file changed",
            false,
        ));
        assert_eq!(pairs(&shell(&calls)), []);
        calls.push((
            "git commit -m 'Add the tax to all totals.'",
            "1 file changed",
            false,
        ));
        assert_eq!(pairs(&shell(&calls)), [(0, 10, vec![])]);
    }

    #[test]
    fn a_success_at_something_else_is_none() {
        let steps = shell(&[
            (
                "git rebase main",
                "Exit code 1\nCONFLICT (content): a",
                true,
            ),
            ("git status", "clean", false),
            ("git add a", "", false),
            ("cargo test", "ok", false),
        ]);
        assert_eq!(pairs(&steps), []);
        let steps = shell(&[
            ("python a.py", "Exit code 1\nValueError: x", true),
            ("python b.py", "fine", false),
            ("cat b/x.toml", "fine", false),
        ]);
        assert_eq!(pairs(&steps), []);
    }

    #[test]
    fn cancelled_refused_and_interrupted_calls_are_no_failures() {
        for output in [
            "<tool_use_error>Sibling tool call errored</tool_use_error>",
            "The user doesn't want to proceed with this tool use. The tool use was rejected.",
            "Tool permission request failed: Error: Stream closed",
            "Command running in background with ID: bash_1",
            "[Request interrupted by user for tool use]",
        ] {
            let steps = shell(&[("make", output, true), ("make", "ok", false)]);
            assert_eq!(analyse(&steps, &[]), Analysis::default(), "{output}");
        }
        let mut steps = shell(&[("make", "", true), ("make", "ok", false)]);
        steps[0].answered = false;
        assert_eq!(analyse(&steps, &[]), Analysis::default());
    }

    #[test]
    fn a_failing_test_of_a_runner_of_scripts_is_no_answer() {
        for code in ["bun test a.test.ts", "deno test", "bun run check"] {
            let mut steps = shell(&[(code, "3 pass\n28 fail", true)]);
            steps[0].exit_code = Some(1);
            assert_eq!(analyse(&steps, &[]).failures, [0], "{code}");
        }
    }

    #[test]
    fn an_empty_search_is_an_answer() {
        let steps = shell(&[
            ("grep -rn foo src", "Exit code 1", true),
            ("grep -rn foo src tests", "tests/a: foo", false),
            (
                "git config user.name; echo ---; git config user.email",
                "Exit code 1\n---",
                true,
            ),
            ("git config user.name", "x", false),
            ("which jq", "Exit code 1", true),
        ]);
        let mut steps = steps;
        for step in &mut steps {
            step.exit_code = step.is_error.filter(|failed| *failed).map(|_| 1);
        }
        assert_eq!(analyse(&steps, &[]), Analysis::default());
    }

    #[test]
    fn failures_that_are_given_up_are_none() {
        let steps = shell(&[
            ("deploy.sh staging", "Exit code 1\nno rights", true),
            ("deploy.sh staging", "Exit code 1\nno rights", true),
            ("git log --oneline", "a", false),
        ]);
        let found = analyse(&steps, &[]);
        assert_eq!((found.failures, found.episodes.len()), (vec![0, 1], 0));
        let steps = unflagged(flagged(&[
            (
                "book",
                json!({"flight": "A1", "seat": 3}),
                "Error: total is 48, but paid 16",
                false,
            ),
            (
                "book",
                json!({"flight": "A1", "seat": 3}),
                "Error: total is 48, but paid 16",
                false,
            ),
            (
                "hand_over",
                json!({"why": "book flight A1 seat 3"}),
                "done",
                false,
            ),
        ]));
        assert_eq!(pairs(&steps), []);
    }

    #[test]
    fn words_of_failure_in_good_output_are_none() {
        let steps = shell(&[
            (
                "grep -n error src/a.rs",
                "3: error: no such file or directory",
                false,
            ),
            (
                "cat log.txt | head",
                "Traceback (most recent call last)\nKeyError: 'x'",
                false,
            ),
            (
                "./tool frob; echo \"Exit code: $?\"",
                "Unknown command\nExit code: 1",
                false,
            ),
        ]);
        assert_eq!(analyse(&steps, &[]), Analysis::default());
        let found = analyse(&unflagged(steps[..2].to_vec()), &[]);
        assert_eq!(found, Analysis::default());
    }

    #[test]
    fn a_code_that_a_pipe_hides_is_read_from_the_text() {
        let steps = shell(&[
            (
                "cargo test 2>&1 | tail -3",
                "test result: FAILED. 1 passed; 1 failed",
                false,
            ),
            (
                "cargo test 2>&1 | tail -3",
                "test result: ok. 2 passed; 0 failed",
                false,
            ),
        ]);
        assert_eq!(pairs(&steps), [(0, 1, vec![])]);
    }

    #[test]
    fn without_flags_the_form_of_the_text_decides() {
        let steps = unflagged(shell(&[
            (
                "python repro.py",
                "Traceback (most recent call last):\n  File\nTypeError: x",
                false,
            ),
            (
                "edit 3:3\n    return f(x) + 1\nend_of_edit",
                "Your proposed edit has introduced new syntax error(s).",
                false,
            ),
            (
                "edit 3:3\n    return f(x) - 1\nend_of_edit",
                "[File: a.py (9 lines total)]",
                false,
            ),
            ("python repro.py", "344", false),
            ("cat a.py", "raise ValueError('error: failed')", false),
            ("submit", "", false),
            (
                "ship deploy --prod",
                "Ship 48.2\nRetrieving the project\nError: The path “web/web” does not exist.",
                false,
            ),
            // A log may end with the error of what it tells of.
            ("ship logs app", "started\nError: no route", false),
            (
                "cd .. && ship deploy --prod",
                "Ship 48.2\nhttps://shop.example",
                false,
            ),
        ]));
        assert_eq!(
            pairs(&steps),
            [(0, 3, vec![]), (1, 2, vec![]), (6, 8, vec![])]
        );
    }

    #[test]
    fn edits_are_for_their_file_and_their_text() {
        let steps = flagged(&[
            (
                "Edit",
                edit(
                    "/w/a.rs",
                    "let total = sum(rows);",
                    "let total = sum(&rows);",
                ),
                "String to replace not found",
                true,
            ),
            ("Edit", edit("/w/b.rs", "x", "y"), "ok", false),
            (
                "Edit",
                edit("/w/a.rs", "use std::io;", "use std::fs;"),
                "ok",
                false,
            ),
            (
                "Edit",
                edit(
                    "/w/a.rs",
                    "let total: u8 = sum(rows);",
                    "let total: u8 = sum(&rows);",
                ),
                "ok",
                false,
            ),
        ]);
        assert_eq!(pairs(&steps), [(0, 3, vec![])]);
    }

    #[test]
    fn a_guessed_name_is_found_by_searching() {
        let read = |path: &str| json!({ "file_path": path });
        let missing = "File does not exist.";
        let steps = flagged(&[
            ("Read", read("/w/net/client.go"), missing, true),
            ("Glob", json!({"pattern": "net/*.go"}), "net/http.go", false),
            ("Read", read("/w/net/http.go"), "package net", false),
        ]);
        assert_eq!(pairs(&steps), [(0, 2, vec![])]);
        // Without a search it is a different file.
        let unsearched = [
            steps[0].clone(),
            Step {
                index: 1,
                ..steps[2].clone()
            },
        ];
        assert_eq!(pairs(&unsearched), []);
    }

    #[test]
    fn tools_are_for_their_arguments() {
        let steps = unflagged(flagged(&[
            (
                "update",
                json!({"order": "W1", "pay": "card"}),
                "Error: not allowed",
                false,
            ),
            (
                "update",
                json!({"order": "W1", "pay": "gift"}),
                "{\"status\": \"done\"}",
                false,
            ),
            (
                "update",
                json!({"order": "W8", "pay": "card"}),
                "{\"error\": \"closed\"}",
                false,
            ),
            ("cancel", json!({"order": "W8"}), "done", false),
        ]));
        assert_eq!(pairs(&steps), [(0, 1, vec![])]);
    }

    #[test]
    fn subagents_do_not_overcome_what_the_agent_failed_at() {
        let mut steps = shell(&[
            ("make x", "Error: a", true),
            ("make x", "ok", false),
            ("make x", "ok", false),
        ]);
        steps[1].side = true;
        assert_eq!(pairs(&steps), [(0, 2, vec![])]);
    }

    #[test]
    fn a_call_whose_input_is_unknown_is_no_part_of_an_episode() {
        let edited = edit("/w/a.rs", "x", "y");
        let check = |first: Value, then: Value, expected: usize| {
            let steps = flagged(&[
                (
                    "Edit",
                    first,
                    "<tool_use_error>not found</tool_use_error>",
                    true,
                ),
                ("Edit", then, "The file has been updated.", false),
            ]);
            let found = analyse(&steps, &[]);
            assert_eq!(found.failures, [0]);
            assert_eq!(found.episodes.len(), expected);
        };
        check(Value::Null, Value::Null, 0);
        check(edited.clone(), Value::Null, 0);
        check(Value::Null, edited, 0);
    }

    #[test]
    fn refused_call_is_no_success() {
        for refused in [
            "User denied execution.",
            "The user declined to run this command",
            "[Operation Cancelled] Reason: denied by the user",
            "Rejected by user",
        ] {
            let calls = [
                ("make all", "make: *** boom", true),
                ("make all", refused, false),
            ];
            assert_eq!(pairs(&unflagged(shell(&calls))), [], "{refused}");
            assert_eq!(
                pairs(&shell(&calls)).len(),
                usize::from(refused.starts_with('['))
            );
        }
        // A database speaks of its users too.
        let calls = [
            (
                "psql app",
                "psql: FATAL: access denied for user \"app\"",
                true,
            ),
            ("psql app", "3 rows", false),
        ];
        assert_eq!(pairs(&shell(&calls)).len(), 1);
    }
}
