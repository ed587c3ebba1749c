//! Finds episodes in the steps of a session: a step that failed, and the later step that achieved
//! what it tried. What lies between, retries and repairs, belongs to the episode.
//!
//! Precision comes first: of every hundred things that go wrong in a session, most are looked at,
//! expected, given up, or somebody else's fault, and a memory that learns from those is worse than
//! none. So a success must have the same goal, the surer the farther it is away, and an error that
//! the agent or the user calls expected is none.

use crate::model::{Remark, Step};

use super::error_key::normalised;
use super::error_line::error_line;
use super::goal::Goal;
use super::outcome::{Outcome, outcome};
use super::same::{Match, same_goal};

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

fn says_missing(error: &str) -> bool {
    let lower: String = error
        .chars()
        .take(2_000)
        .collect::<String>()
        .to_ascii_lowercase();
    [
        "no such file", "does not exist", "not found", "no matches found", "cannot open",
        "cannot access",
    ]
    .iter()
    .any(|words| lower.contains(words))
}

/// Whether a step makes what another was looking for.
fn makes(now: &Known<'_>, failed: &Known<'_>) -> bool {
    let wanted = failed.goal.looked_for();
    let written = now.goal.written();
    let made = now.step.command().map(|command| {
        super::shell::commands(&command)
            .into_iter()
            .filter(|simple| {
                let program = simple.words.first().map_or("", String::as_str);
                matches!(program, "mkdir" | "touch" | "cp" | "mv" | "ln" | "git")
            })
            .flat_map(|simple| simple.words)
            .collect::<Vec<String>>()
    });
    let made = made.unwrap_or_default();
    wanted.iter().any(|wanted| {
        let wanted = wanted.trim_start_matches("./").trim_end_matches('/');
        wanted.len() > 2
            && written
                .iter()
                .copied()
                .chain(made.iter().map(String::as_str))
                .any(|path| path.trim_start_matches("./").contains(wanted))
    })
}

/// Whether somebody said right before or after the step that it was to fail.
fn is_expected(failed: &Known<'_>, remarks: &[Remark]) -> bool {
    let index = failed.step.index;
    let about = remarks
        .iter()
        .filter(|remark| remark.before == index || remark.before == index + 1);
    let phrases = [
        "should fail", "expected to fail", "fails as expected", "failed as expected",
        "this is expected", "that's expected", "expected failure", "is expected to",
        "expected error", "confirm it fails", "confirm the failure", "verify it fails",
        "verify that it fails", "see it fail", "watch it fail", "expect this to fail",
        "expected, since", "pre-existing",
    ];
    about.into_iter().any(|remark| {
        let said = remark.text.to_ascii_lowercase();
        phrases.iter().any(|phrase| said.contains(phrase))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::Speaker;

    /// A host that flags errors, as most do.
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

    /// Commands of a host that flags errors.
    fn shell(calls: &[(&str, &str, bool)]) -> Vec<Step> {
        let calls: Vec<_> = calls
            .iter()
            .map(|(command, output, failed)| {
                ("Bash", json!({ "command": command }), *output, *failed)
            })
            .collect();
        flagged(&calls)
    }

    /// The same without flags.
    fn unflagged(mut steps: Vec<Step>) -> Vec<Step> {
        for step in &mut steps {
            step.is_error = None;
        }
        steps
    }

    /// `(fail, success, also)` of every episode.
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
        for said in [
            "<tool_use_error>Sibling tool call errored</tool_use_error>",
            "The user doesn't want to proceed with this tool use. The tool use was rejected.",
            "[Request interrupted by user for tool use]",
        ] {
            let steps = shell(&[("make", said, true), ("make", "ok", false)]);
            assert_eq!(analyse(&steps, &[]), Analysis::default(), "{said}");
        }
        let mut steps = shell(&[("make", "", true), ("make", "ok", false)]);
        steps[0].answered = false;
        assert_eq!(analyse(&steps, &[]), Analysis::default());
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
    fn what_is_made_later_was_not_to_be_found() {
        let steps = flagged(&[
            (
                "Bash",
                json!({"command": "ls ./app/new"}),
                "ls: ./app/new: No such file or directory",
                true,
            ),
            ("Bash", json!({"command": "mkdir -p ./app/new"}), "", false),
            ("Bash", json!({"command": "ls ./app/new"}), "", false),
            (
                "Read",
                json!({"file_path": "/w/x.md"}),
                "File does not exist.",
                true,
            ),
            (
                "Write",
                json!({"file_path": "/w/x.md", "content": "a"}),
                "ok",
                false,
            ),
            ("Read", json!({"file_path": "/w/x.md"}), "a", false),
        ]);
        assert_eq!(pairs(&steps), []);
    }

    #[test]
    fn a_failure_that_is_expected_is_none() {
        let steps = shell(&[
            (
                "cargo test new_rule",
                "Exit code 101\nerror: test failed",
                true,
            ),
            ("cargo test new_rule", "ok", false),
        ]);
        let said = |text: &str| {
            vec![Remark {
                before: 0,
                by: Speaker::Agent,
                text: text.to_owned(),
            }]
        };
        assert_eq!(
            pairs_with(&steps, &said("The new test should fail now.")),
            []
        );
        assert_eq!(pairs_with(&steps, &said("Let me run it.")).len(), 1);
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
        ]));
        assert_eq!(pairs(&steps), [(0, 3, vec![]), (1, 2, vec![])]);
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
        // Without a search it is another file.
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
                "find_user_by_email",
                json!({"email": "a@b.c"}),
                "Error: user not found",
                false,
            ),
            ("find_user_by_name", json!({"name": "A B"}), "u1", false),
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
        assert_eq!(pairs(&steps), [(0, 1, vec![]), (2, 3, vec![])]);
    }

    #[test]
    fn another_tool_may_achieve_the_same() {
        let url = "https://example.org/a/b";
        let steps = flagged(&[
            (
                "WebFetch",
                json!({"url": url, "prompt": "p"}),
                "Request failed with status code 403",
                true,
            ),
            (
                "Bash",
                json!({"command": format!("curl -s {url}")}),
                "<html>",
                false,
            ),
            (
                "Bash",
                json!({"command": "cat docs/guide.md"}),
                "cat: docs/guide.md: No such file or directory",
                true,
            ),
            (
                "Glob",
                json!({"pattern": "**/guide.md"}),
                "/w/site/guide.md",
                false,
            ),
            (
                "Read",
                json!({"file_path": "/w/site/guide.md"}),
                "# Guide",
                false,
            ),
            (
                "Read",
                json!({"file_path": "/w/big.json"}),
                "File content exceeds maximum allowed tokens",
                true,
            ),
            (
                "Grep",
                json!({"pattern": "total", "path": "/w/big.json"}),
                "12: total",
                false,
            ),
        ]);
        assert_eq!(
            pairs(&steps),
            [(0, 1, vec![]), (2, 4, vec![]), (5, 6, vec![])]
        );
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
}
