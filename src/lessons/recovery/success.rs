//! Proof of a success: the exit code of a call is its own, and its output reports no failure.
//!
//! Stricter than `outcome`: what may be told unasked must have worked beyond doubt. A runner that ran nothing, and
//! a rehearsal, reached nothing.

use super::outcome::{code_at_the_end, holds_verdict, reads_as_failed};
use crate::lessons::call::{self, Run, Simple};
use crate::lessons::failure::error_line::{is_stated, plain};
use crate::lessons::vocabulary::WORDS;

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
