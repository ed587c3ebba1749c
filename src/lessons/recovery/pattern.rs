//! The pattern of a recovery: its evidence, and the conditions for telling it at the same failure although
//! nobody has worded it.
//!
//! The working call must be the failing one with one small change (`change`), and nothing else may have changed
//! in between. An uncertain recovery is no pattern: a wrong one costs more than a missing one.
//!
//! Deliberately absent: words about the change, and any score.

use super::difference::Change;
use super::difference::difference;
use super::hazard::{are_accepted, is_hazard, says_cure};
use crate::lessons::call::{self, Call};
use crate::lessons::failure::error_line::{is_stated, lacks};
use crate::lessons::failure::{clean, error_key, redacted, without_people};
use crate::lessons::recovery::episodes::Episode;
use crate::lessons::recovery::goal::{Goal, GoalKind, only_observes};
use crate::lessons::recovery::outcome::{
    hides_its_code, holds_verdict, is_shell_error, reports_failure,
};
use crate::lessons::vocabulary::WORDS;
use crate::model::Pattern;
use crate::model::text::one_line;
use memctl_sessions::Step;

/// Maximum length of an output in a pattern, in bytes.
const MAX_OUTPUT: usize = 600;
/// Number of steps before and after a recovery in which the same calls must have the same outcome.
const NEAR: usize = 30;

/// Recovery that is no pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoPattern {
    /// - `no_error`: the failing call printed none.
    /// - `retry`: an equal call had the other outcome, or another small change did as well.
    /// - `still_fails`: the later call reports an error, ran nothing, or hides its exit code.
    /// - `dangerous`: the later call removes a safeguard or destroys something.
    /// - `one_off`: more than a small change that the error asks for.
    pub reason: &'static str,
    /// The reason in words.
    pub why: &'static str,
}

const fn none(reason: &'static str, why: &'static str) -> NoPattern {
    NoPattern { reason, why }
}

const fn one_off(why: &'static str) -> NoPattern {
    none("one_off", why)
}

/// Returns the pattern of an episode, redacted. `steps` are those around it.
pub fn of_episode(episode: &Episode, steps: &[Step]) -> Result<Pattern, NoPattern> {
    const NO_ERROR: NoPattern = none("no_error", "no error was printed");
    const TOO_LONG: NoPattern = one_off("the calls are too long to be compared");
    let step = |index: usize| {
        let at = steps.binary_search_by_key(&index, |step| step.index);
        at.ok().map(|at| &steps[at]).ok_or(NO_ERROR)
    };
    let (failed, worked) = (step(episode.fail_step)?, step(episode.success_step)?);
    if episode.error_key.is_empty() {
        return Err(NO_ERROR);
    }
    let line = one_line(&redacted(&episode.error_line));
    let has_error = |step: &Step| one_line(&step.output).contains(&line);
    let hides = |line: String| hides_its_code(&line);
    if worked.command().is_some_and(hides) {
        return Err(none(
            "still_fails",
            "the exit code of the later call is hidden",
        ));
    }
    let is_search = Goal::of(worked).is_search();
    if has_error(worked) || !is_search && reports_failure(&worked.output) {
        let why = "the output of the later call has an error, or nothing ran";
        return Err(none("still_fails", why));
    }
    if !is_goal(failed) || !is_goal(worked) {
        return Err(one_off("what a tool for files does holds for one file"));
    }
    let [failing, working] =
        [failed, worked].map(|step| redacted(&without_people(&call::code(step))));
    let before = Call::of(&failing, Some(&failed.tool)).ok_or(TOO_LONG)?;
    let after = Call::of(&working, Some(&worked.tool)).ok_or(TOO_LONG)?;
    let change = difference(&before, &after, &line);
    if before == after && change.is_none() {
        return Err(none("retry", "the same call worked later"));
    }
    let near = episode.fail_step.saturating_sub(NEAR)..=episode.success_step.saturating_add(NEAR);
    let near = steps.iter().filter(|step| near.contains(&step.index));
    if before != after && is_undecided(episode, near, [&before, &after], change.as_ref(), &line) {
        let why = "the same call had another outcome, or another change did as well";
        return Err(none("retry", why));
    }
    if episode.is_spoken {
        return Err(one_off("the person said something in between"));
    }
    let mut changes = episode.changes.iter().filter_map(|at| step(*at).ok());
    if changes.any(|step| !only_observes(step)) {
        return Err(one_off("something else was done in between"));
    }
    let moved = failed.cwd.is_some() && worked.cwd.is_some() && failed.cwd != worked.cwd;
    if moved {
        return Err(one_off("it worked in another directory"));
    }
    if is_verdict(failed, &line) {
        return Err(one_off("the error is what a check has found"));
    }
    let Some(change) = change else {
        return Err(one_off("more than one small addition made it work"));
    };
    if is_hazard(&change.added, &failing, &failed.output) {
        return Err(none("dangerous", "it goes around a safeguard"));
    }
    if !says_cure(&change, &line) {
        return Err(one_off("the error does not ask for the addition"));
    }
    if is_help(&worked.output) {
        return Err(one_off("the later call shows a page of help"));
    }
    // Output of a search is content of one place.
    let printed = if is_search { "" } else { worked.output.trim() };
    if !are_accepted(&change, &line) {
        return Err(one_off("the added value may hold only once, or for a part"));
    }
    Ok(Pattern {
        error_key: redacted(&episode.error_key),
        error_line: redacted(&without_people(&episode.error_line)),
        failing_code: failing,
        working_code: working,
        success_output: clean(printed).cut(MAX_OUTPUT),
        tool: redacted(&episode.goal),
    })
}

/// Returns `true` if a call near a recovery shows that not the change has made it work: an equal call had another
/// outcome, so that the state decided, or another change did as well, and nobody knows which one is right.
fn is_undecided<'s>(
    episode: &Episode,
    mut near: impl Iterator<Item = &'s Step>,
    [before, after]: [&Call; 2],
    change: Option<&Change>,
    line: &str,
) -> bool {
    // Later, the call may fail for another reason, as a test does.
    let is_same_error = |step: &Step| {
        one_line(&step.output).contains(line)
            || error_key(&step.output).as_ref() == Some(&episode.error_key)
    };
    near.any(|step| {
        let outcome = step.is_error.map(|failed| !failed);
        let Some(succeeded) = outcome.or(step.exit_code.map(|code| code == 0)) else {
            return false;
        };
        let is_later = step.index > episode.success_step;
        match Call::of_step(step) {
            Some(call) if call == *before => succeeded,
            Some(call) if call == *after => !succeeded && (!is_later || is_same_error(step)),
            Some(call) if is_later && succeeded => {
                let other = difference(before, &call, line);
                let other = other.filter(|other| !other.is_of_text());
                other.zip(change).is_some_and(|(other, change)| {
                    change.added.iter().any(|word| !other.added.contains(word))
                })
            }
            _ => false,
        }
    })
}

/// Returns `true` for a call that has a goal beyond one file, and beyond a look.
fn is_goal(step: &Step) -> bool {
    let goal = Goal::of(step);
    match goal.kind {
        _ if of_files(&step.tool) => false,
        GoalKind::Edit(..) | GoalKind::Read(_) => false,
        GoalKind::Tool(_) => !goal.is_search(),
        GoalKind::Shell(_) => true,
    }
}

/// Returns `true` for tools that read, search or change files.
pub(crate) fn of_files(tool: &str) -> bool {
    let tool = tool.to_ascii_lowercase();
    !call::is_shell(&tool) && WORDS.file_tools.occur_in(&tool)
}

/// Returns `true` if a test runner or a checker ran and reports a finding, which another option does not solve.
fn is_verdict(step: &Step, line: &str) -> bool {
    let goal = Goal::of(step);
    let is_checker = WORDS.verdict_programs.has_word_of(&goal.name());
    // A report on the call itself, such as a missing module, is no finding.
    let is_of_call = || lacks(line) || is_stated(line) || is_shell_error(line);
    let is_finding = || holds_verdict(&step.output) || is_checker && !is_of_call();
    !goal.is_search() && !is_of_surroundings(line) && is_finding()
}

/// Returns `true` if an error says that a variable, a module or a program is missing around the call. A test runner
/// may report that as a failure of a test.
fn is_of_surroundings(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    let is_variable = |word: &str| {
        let is_part = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
        word.len() > 3 && word.bytes().all(is_part) && word.contains(char::is_alphabetic)
    };
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    lacks(line) && (words.any(is_variable) || WORDS.missing_surroundings.occur_in(&lower))
}

/// Returns `true` for a page of help.
fn is_help(output: &str) -> bool {
    let lower: String = output.trim_start().chars().take(400).collect();
    let lower = lower.to_ascii_lowercase();
    lower.starts_with("usage") || lower.contains("\nusage:") || lower.contains("\noptions:")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lessons::failure::error_line::error_line;
    use crate::lessons::recovery::episodes::analyse;

    /// Pattern of the first recovery of shell calls, each with its output and its outcome.
    fn learned(calls: &[(&str, &str, bool)]) -> Result<Pattern, &'static str> {
        let step = |(index, (command, output, is_error)): (usize, &(&str, &str, bool))| Step {
            index,
            output: (*output).to_owned(),
            is_error: Some(*is_error),
            answered: true,
            ..Step::of_call("Bash", command)
        };
        let steps: Vec<Step> = calls.iter().enumerate().map(step).collect();
        let analysis = analyse(&steps, &[]);
        of_episode(&analysis.episodes[0], &steps).map_err(|none| none.reason)
    }

    #[test]
    fn later_run_that_fails_for_another_reason_leaves_the_pattern() {
        let error = "ModuleNotFoundError: No module named 'shop'";
        let failing = ("python tools/pack.py", error, true);
        let cured = ("PYTHONPATH=src python tools/pack.py", "packed 7", false);
        let later = |output: &'static str| {
            let again = ("PYTHONPATH=src python tools/pack.py", output, true);
            learned(&[failing, cured, ("cat a.txt", "a", false), again]).map(|_| ())
        };
        assert_eq!(later("AssertionError: 3 is not 4"), Ok(()));
        assert_eq!(later(error), Err("retry"));
        let before = ("PYTHONPATH=src python tools/pack.py", "KeyError: 'a'", true);
        assert_eq!(learned(&[failing, before, cured]).map(|_| ()), Err("retry"));
        let other = ("uv run python tools/pack.py", "packed 7", false);
        assert_eq!(learned(&[failing, cured, other]).map(|_| ()), Err("retry"));
    }

    #[test]
    fn call_that_hides_its_code_or_reports_a_failure_is_no_cure() {
        let failing = ("shop test", "shop: SHOP_HOME is not set", true);
        let after = |command: &'static str, output: &'static str| {
            learned(&[failing, (command, output, false)]).map(|_| ())
        };
        assert_eq!(after("SHOP_HOME=lib shop test", "7 passed"), Ok(()));
        let unproven = Err("still_fails");
        assert_eq!(
            after("SHOP_HOME=lib shop test || true", "7 passed"),
            unproven
        );
        assert_eq!(
            after("SHOP_HOME=lib shop test", "6 passed, 1 failed"),
            unproven
        );
        assert_eq!(after("SHOP_HOME=lib shop test", "7 skipped"), unproven);
    }

    #[test]
    fn finding_of_a_checker_is_not_solved_by_an_option() {
        let check = |command: &str, output: &str, expected: bool| {
            let step = Step {
                output: output.to_owned(),
                ..Step::of_call("Bash", command)
            };
            let line = error_line(output).unwrap();
            assert_eq!(is_verdict(&step, &line), expected, "{command} | {output}");
        };
        check(
            "go test ./cart",
            "--- FAIL: TestTotal (0.00s)\nerror: sum is 3",
            true,
        );
        check(
            "bin/suite",
            "FAILED tests/test_cart.py::test_total - sum is 3",
            true,
        );
        check(
            "node cart.js",
            "AssertionError [ERR_ASSERTION]: 3 == 4",
            true,
        );
        check(
            "cargo run",
            "thread 'main' panicked at src/main.rs:9:5:\nno rows",
            true,
        );
        check("make check", "the totals differ", true);
        check(
            "pytest tests",
            "E   ModuleNotFoundError: No module named 'shop'",
            false,
        );
        check("./check.sh", "check.sh: no target is set", false);
        check("make check", "no target: set --target=web", false);
        check("npm run lint", "npm error Missing script: \"lint\"", false);
        check(
            "pytest --all",
            "pytest: error: unrecognized arguments: --all",
            false,
        );
        check("tools/pack app", "pack: no such profile `std`", false);
        check(
            "psql shop",
            "psql: error: server at port 5432 failed: Connection refused",
            false,
        );
        check("curl localhost", "127.0.0.1:80: connection refused", false);
        check("./run.sh", "./run.sh:3: command not found: shop", false);
        check(
            "make test",
            " FAIL  a.test\nError: SHOP_HOME is not set",
            false,
        );
        check(
            "go test ./cart",
            "--- FAIL: TestTotal (0.00s)\n    a_test.go:3: no such module: zlib",
            false,
        );
        check("make test", " FAIL  a.test\nError: no total is set", true);
    }
}
