//! Outcome of a step.
//!
//! The host's flag and the exit code take precedence over text. Without them, or if a pipe hides
//! the relevant code, the text decides. It is matched by the formats of failure messages, not by
//! words: a search may well find the word `error`.
//!
//! The proof of a success is stricter: what may be told unasked must have worked beyond doubt. A runner that ran
//! nothing, and a rehearsal, reached nothing.

use super::goal::{Goal, GoalKind, only_observes};
use crate::lessons::call::{self, Run, Simple};
use crate::lessons::failure::error_line::{is_stated, plain, unframed};
use crate::lessons::vocabulary::WORDS;
use memctl_sessions::Step;
use memctl_shell::basename;
use serde_json::Value;

/// Outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    /// Succeeded, as far as visible.
    Done,
    /// Failed.
    Failed,
    /// No information: cancelled, refused by the user, interrupted, or never answered.
    Void,
    /// A failure that is an answer: a search without a hit, a probe that says no.
    Answered,
}

/// Classifies a step.
pub(crate) fn outcome(step: &Step, goal: &Goal) -> CallOutcome {
    if !step.answered || step.running || is_void(step) {
        return CallOutcome::Void;
    }
    // The host refused the call, regardless of its flag.
    if step.output.trim_start().starts_with("<tool_use_error>") {
        return CallOutcome::Failed;
    }
    // If the host sets a flag, the command itself printed this text.
    let code = match step.is_error {
        None => step.exit_code.or_else(|| code_at_the_end(&step.output)),
        Some(_) => step.exit_code,
    };
    let flagged = match (step.is_error, code) {
        (Some(true), _) => Some(true),
        (_, Some(code)) => Some(code != 0),
        (flag, None) => flag,
    };
    match flagged {
        Some(true) if is_answer(step, goal, code) => CallOutcome::Answered,
        Some(true) => CallOutcome::Failed,
        Some(false) => {
            // Only a command can hide its failure behind another's success.
            let hidden = goal.hides_its_code && reads_as_failed(&step.output);
            if hidden || only_a_shell_error(step, goal) {
                CallOutcome::Failed
            } else {
                CallOutcome::Done
            }
        }
        None if says_failed(step, goal) => CallOutcome::Failed,
        None => CallOutcome::Done,
    }
}

/// Returns `true` if an output says that its call failed, where the host does not.
pub(crate) fn is_failure(tool: &str, call: &str, output: &str) -> bool {
    let step = Step {
        output: output.to_owned(),
        answered: true,
        ..Step::of_call(tool, call)
    };
    outcome(&step, &Goal::of(&step)) == CallOutcome::Failed
}

fn is_void(step: &Step) -> bool {
    let start: String = step.output.chars().take(300).collect();
    let start = start.trim_start().to_ascii_lowercase();
    // Later in the text, the words can be content; of a success, all but its beginning.
    let within = if step.is_error == Some(false) {
        16
    } else {
        120
    };
    let mut places = WORDS.void.iter().filter_map(|words| start.find(words));
    places.any(|at| at < within)
}

/// Returns true if a non-zero code is the answer to a question.
fn is_answer(step: &Step, goal: &Goal, code: Option<i32>) -> bool {
    let GoalKind::Shell(runs) = &goal.kind else {
        return false;
    };
    if !matches!(code, Some(1) | None) || step.output.trim().is_empty() && code.is_none() {
        return false;
    }
    let lines = step.output.lines().map(str::trim);
    let lines =
        lines.filter(|line| !line.is_empty() && !line.starts_with("Exit code") && *line != "---");
    let lines: Vec<&str> = lines.collect();
    let mut all = runs.iter().chain(&goal.filters);
    let probes = all.any(|run| WORDS.probes.contains(&run.name));
    probes && (lines.is_empty() || goal.ends_in_probe() && !lines.iter().any(|l| is_shell_error(l)))
}

/// Exit code that some hosts append to an output.
pub(super) fn code_at_the_end(output: &str) -> Option<i32> {
    let from = output.ceil_char_boundary(output.len().saturating_sub(200));
    let tail = output[from..].to_ascii_lowercase();
    let marks = WORDS.exit_marks.iter();
    let (at, mark) = marks
        .filter_map(|mark| Some((tail.rfind(mark)?, mark)))
        .max()?;
    let rest = &tail[at + mark.len()..];
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    // Only punctuation may follow; otherwise it is part of a sentence or a log.
    let after = rest[digits.len()..].trim_matches([']', '.', ')', '>', ' ', '\n', '}', '"']);
    if !after.is_empty() {
        return None;
    }
    digits.parse().ok()
}

/// Returns true if an output has the form of a failure. Used for commands with a hidden or unknown
/// exit code.
pub(crate) fn reads_as_failed(output: &str) -> bool {
    let output = plain(output);
    let lines = output.lines().rev().map(str::trim);
    let mut near_the_end = lines.filter(|line| !line.is_empty()).take(60);
    near_the_end.any(|line| {
        WORDS.failed_lines.begin(line)
            || is_shell_error(line)
            || line.contains(" panicked at ")
            || (line.contains(": error TS") || line.contains("): error TS"))
            || counts(line, &["failed", "failing", "failures", "errors", "error"])
    })
}

/// Returns `true` if an output has a line in which a test runner or a checker says what it found.
pub(crate) fn holds_verdict(output: &str) -> bool {
    let output = plain(output);
    output.lines().map(unframed).any(|line| {
        WORDS.verdicts.begin(line)
            || WORDS.verdicts_within.occur_in(line)
            || counts(line, &["failed", "failing", "failures"]) && !is_stated(line)
            || line.starts_with("Found ") && counts(line, &["error", "errors"])
    })
}

/// `=== 2 failed, 3 passed in 1s ===`, `Tests: 1 failed`, `3 failing`, `Found 2 errors`. The count of `passed 2, failed 0`
/// is behind its name.
fn counts(line: &str, names: &[&str]) -> bool {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '=' | ':' | '(' | ')');
    let mut parts = line.split([',', ';']);
    line.len() < 120
        && parts.any(|part| {
            let words: Vec<&str> = part.split(is_end).filter(|word| !word.is_empty()).collect();
            words.windows(2).any(|pair| {
                pair[0].parse::<u64>().is_ok_and(|count| count > 0) && names.contains(&pair[1])
            })
        })
}

/// Error messages of shells and small programs.
pub(crate) fn is_shell_error(line: &str) -> bool {
    let line = line.trim();
    let lower = line.to_ascii_lowercase();
    let first = lower.split(':').next().unwrap_or_default();
    // `cat: a: No such file or directory`; a sentence with these words has no such prefix.
    let said_by_program = first.len() < 40 && !first.contains(' ') && lower.contains(": ");
    (said_by_program && WORDS.complaints.occur_in(&lower))
        || (WORDS.shells.contains(first) && lower.contains(": ") && line.len() < 300)
}

/// Returns true if a command printed nothing but one error message, regardless of its exit code.
fn only_a_shell_error(step: &Step, goal: &Goal) -> bool {
    let GoalKind::Shell(runs) = &goal.kind else {
        return false;
    };
    let mut lines = step.output.lines().map(str::trim).filter(|l| !l.is_empty());
    let (first, second) = (lines.next(), lines.next());
    second.is_none() && first.is_some_and(|line| complains(line, runs))
}

/// Returns true if a line is an error message of a shell or of one of these programs.
fn complains(line: &str, runs: &[Run]) -> bool {
    let by = line.trim().split(':').next().unwrap_or_default();
    let shell = WORDS.shells.contains(basename(by));
    let mut programs = runs.iter().map(|run| run.name.split(' ').next());
    let program = programs.any(|name| name == Some(basename(by)));
    (shell || program) && is_shell_error(line)
}

/// Returns true if an output reports a failure, in the absence of flag and code.
fn says_failed(step: &Step, goal: &Goal) -> bool {
    let output = plain(&step.output);
    let text = output.trim();
    if text.is_empty() {
        return false;
    }
    if let GoalKind::Shell(runs) = &goal.kind {
        if refuses_an_edit(text) {
            return true;
        }
        let prints_content = |run: &Run| WORDS.prints_content.contains(&run.name);
        if runs.last().is_some_and(prints_content) {
            return text.lines().all(|line| complains(line, runs));
        }
        let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        let short = lines <= 4 && text.len() < 600 && short_refusal(text);
        let last = text.lines().next_back().unwrap_or_default();
        let ends_in_error = last.to_ascii_lowercase().starts_with("error: ");
        // The output of a search can contain anything, and a log the end of another program.
        return short
            || !runs.last().is_some_and(|run| run.looks) && reads_as_failed(text)
            || ends_in_error && !only_observes(step);
    }
    refused_in_json(text) || refuses_an_edit(text) || (text.len() < 2_000 && short_refusal(text))
}

/// Error messages of agents' edit tools.
fn refuses_an_edit(text: &str) -> bool {
    let start: String = text.chars().take(400).collect();
    let start = start.to_ascii_lowercase();
    WORDS.refused_edits.occur_in(&start)
}

/// `Error: …`, `Wrong flag!`, `usage: …`: a short text that begins with a refusal.
fn short_refusal(text: &str) -> bool {
    let first = text.trim_start().lines().next().unwrap_or_default();
    let lower = first.trim().to_ascii_lowercase();
    // `errors: 0`, `error_count: 0` and `failed: 0` report success.
    let counts_none =
        lower.ends_with(": 0") || lower.starts_with("error_") || lower.starts_with("errors");
    let named = lower.split([':', ' ']).next().unwrap_or_default();
    let exception = (named.ends_with("error") || named.ends_with("exception"))
        && lower[named.len()..].starts_with(':');
    !counts_none
        && (WORDS.refusals.begin(&lower)
            || exception
            || is_shell_error(first)
            || (lower.starts_with("file ") && lower.contains(" not found"))
            || (lower.contains(" does not exist") && lower.len() < 200))
}

/// `{"error": "…"}`, `{"success": false}`, `{"ok": false}`.
fn refused_in_json(text: &str) -> bool {
    let is_object = text.starts_with('{');
    let read = is_object.then(|| serde_json::from_str::<Value>(text).ok());
    let value = read.flatten().unwrap_or_default();
    let is_said = |name: &str| match &value[name] {
        Value::Bool(error) => *error,
        Value::String(error) => !error.is_empty(),
        Value::Array(errors) => !errors.is_empty(),
        Value::Object(error) => !error.is_empty(),
        _ => false,
    };
    is_said("error") || is_said("errors") || value["success"] == false || value["ok"] == false
}

/// Number of lines near the end of an output that are searched for an error.
const NEAR_THE_END: usize = 60;

/// Returns `true` if the exit code of a shell line may be another one than that of a command that matters:
/// `x || true`, `x; echo done`, `x | tail`, `x &`.
pub(super) fn hides_its_code(line: &str) -> bool {
    let all = memctl_shell::commands(line);
    let last = all.last().map(|simple| simple.chain);
    let matters = |simple: &memctl_shell::Simple| {
        let run = Run::of(&Simple {
            words: simple.words.clone(),
            ..Simple::default()
        });
        !run.looks && !WORDS.around.contains(&run.name)
    };
    let is_hidden = |simple: &memctl_shell::Simple| simple.may_fail || Some(simple.chain) != last;
    let ignores = |simple: &Simple| simple.words.starts_with(&["set", "+e"].map(String::from));
    let end = line.trim_end();
    end.ends_with('&')
        || all
            .iter()
            .any(|simple| matters(simple) && is_hidden(simple))
        || call::commands(line).iter().any(ignores)
}

/// Returns `true` if the output of a call that worked, by its code, says that something failed, or that nothing
/// ran.
pub(super) fn reports_failure(output: &str) -> bool {
    let text = plain(output);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    holds_verdict(output)
        || reads_as_failed(output)
        || code_at_the_end(output).is_some_and(|code| code != 0)
        || lines().any(reports)
        || lines().rev().take(NEAR_THE_END).any(is_stated)
        || ran_nothing(&text)
}

/// Returns `true` for a line with a mark or a count of a failure: `✖ totals`, `fail 3`, `Failures: 1`, `2 tests
/// failed`, `BUILD FAILURE`.
fn reports(line: &str) -> bool {
    let is_reported = |words: Vec<&str>| {
        words.iter().enumerate().any(|(at, word)| {
            let name = word.trim_end_matches([':', '=']);
            let is_shouted = ["FAILED", "FAILURE"].contains(&name);
            let is_name = WORDS.failure_counts.contains(&name.to_ascii_lowercase());
            match count_at(&words, at) {
                Some(count) => (is_name || is_shouted) && count > 0 && line.len() < 200,
                None => is_shouted,
            }
        })
    };
    WORDS.failure_marks.begin(line) || parts(line).any(is_reported)
}

/// Returns `true` if an output says that nothing was tested or done, and no line of it counts something that
/// passed.
fn ran_nothing(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let passes = |line: &str| {
        let all = most(
            line,
            &[
                "tests", "test", "examples", "specs", "assertions", "run", "runs",
            ],
        );
        let passed = most(line, &["passed", "passing", "pass"]);
        let is_ok = line.starts_with("ok ") && !line.contains("[no tests");
        is_ok || passed > Some(0) || all.unwrap_or(0) > skipped(line).unwrap_or(0)
    };
    let has_none = |line: &str| {
        let names = [
            "passed", "passing", "tests", "examples", "specs", "assertions", "items",
        ];
        most(line, &names) == Some(0) || skipped(line) > Some(0)
    };
    WORDS.rehearsals.occur_in(&lower)
        || (WORDS.nothing_ran.occur_in(&lower) || lower.lines().any(has_none))
            && !lower.lines().any(passes)
}

/// Number of tests that a line says to be left out.
fn skipped(line: &str) -> Option<u64> {
    most(line, &["skipped", "pending"])
}

/// Highest count that a line has of one of these names.
fn most(line: &str, names: &[&str]) -> Option<u64> {
    let counts = parts(line).flat_map(|words| {
        let is_name = |at: &usize| names.contains(&words[*at].trim_end_matches([':', '=']));
        let places = (0..words.len()).filter(is_name);
        places
            .filter_map(|at| count_at(&words, at))
            .collect::<Vec<_>>()
    });
    counts.max()
}

/// Count of the name at a place: `2 failed`, `2 tests failed`, `failed 2`, `failed: 2`.
fn count_at(words: &[&str], at: usize) -> Option<u64> {
    let number = |at: usize| {
        let word = words.get(at)?;
        word.trim_end_matches('%').parse::<u64>().ok()
    };
    let before = |count: usize| at.checked_sub(count).and_then(number);
    if words[at].ends_with([':', '=']) {
        return number(at + 1);
    }
    before(1).or_else(|| before(2)).or_else(|| number(at + 1))
}

/// Words and numbers of each part of a line, without the marks of a table or a sentence. A sign before a value stays.
fn parts(line: &str) -> impl Iterator<Item = Vec<&str>> {
    line.split([',', ';', '|']).map(|part| {
        let words = part.split(|c: char| c.is_whitespace() || "()[]".contains(c));
        let words = words.flat_map(|word| word.split_inclusive('='));
        words.filter(|word| !word.is_empty()).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_a_command_that_something_follows_proves_nothing() {
        let check = |line: &str, expected: bool| {
            assert_eq!(hides_its_code(line), expected, "{line}");
        };
        check("TOOL_HOME=lib shop pack", false);
        check("cd web && shop pack && echo packed", false);
        check("source .venv/bin/activate; shop pack", false);
        check("cat rows.csv | shop pack", false);
        check("set -o pipefail; shop pack | tail -2", false);
        check("timeout 9 shop pack > log.txt 2>&1", false);
        for line in [
            "shop pack || true",
            "shop pack || :",
            "shop pack || exit 0",
            "shop pack || echo broken",
            "shop pack; true",
            "shop pack | tail -2",
            "shop pack 2>&1 | grep -v warn",
            "set +e; shop pack",
            "! shop pack",
            "shop pack &",
            "bash -c 'shop pack || true'",
        ] {
            check(line, true);
        }
    }

    #[test]
    fn output_with_a_failure_or_without_a_run_proves_nothing() {
        let check = |output: &str, expected: bool| {
            assert_eq!(reports_failure(output), expected, "{output}");
        };
        for output in [
            "",
            "packed 7 boxes",
            "7 passed, 2 skipped in 0.1s",
            "test result: ok. 8 passed; 0 failed; 0 ignored\n\nrunning 0 tests\ntest result: ok. 0 passed; 0 failed",
            "5 examples, 0 failures, 1 pending",
            "Tests run: 30, Failures: 0, Errors: 0, Skipped: 1",
            "Passed!  - Failed:     0, Passed:    12, Skipped:     0",
            "100% tests passed, 0 tests failed out of 9",
            "ok  \tshop/cart\t0.1s\n?   \tshop/cmd\t[no test files]",
            "ok  \tshop/cart\t0.1s\nok  \tshop/a\t0.1s [no tests to run]",
            "errors: 0",
            "Tests: passed 12, failed 0",
            "BUILD SUCCESSFUL in 4s",
            "0 issues.",
        ] {
            check(output, false);
        }
        for output in [
            "ℹ pass 40\nℹ fail 2",
            "✖ adds the tax",
            "Failures: 2",
            "Tests run: 9, Failures: 1, Errors: 0",
            "3 tests failed",
            "Tests: passed 12, failed 1",
            "12 offenses detected",
            "[INFO] BUILD FAILURE",
            "done\nError: no stock",
            "thread 'a' panicked at src/a.rs:1:2:\nno stock",
            "shop: exit status 1",
            "9 skipped in 0.2s",
            "Tests: 9 skipped, 9 total",
            "no tests ran in 0.01s",
            "Ran 0 tests in 0.000s",
            "collected 0 items",
            "ok  \tshop/cart\t0.1s [no tests to run]",
            "make: Nothing to be done for 'pack'.",
            "dry run: 4 rows",
        ] {
            check(output, true);
        }
    }
}
