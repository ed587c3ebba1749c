//! The pattern of a recovery: its evidence, and the conditions for telling it at the same failure although
//! nobody has worded it.
//!
//! The working call must be the failing one with one small change (`change`), and nothing else may have changed
//! in between. An uncertain recovery is no pattern: a wrong one costs more than a missing one.
//!
//! Deliberately absent: words about the change, and any score.

use super::difference::difference;
use super::hazard::{is_hazard, says_cure};
use super::success::{hides_its_code, reports_failure};
use super::value::are_accepted;
use crate::lessons::call::commands;
use crate::lessons::call::{self, Call, Run, Simple};
use crate::lessons::failure::error_line::{is_stated, lacks};
use crate::lessons::failure::{error_key, without_people};
use crate::lessons::recovery::episodes::{Episode, writes};
use crate::lessons::recovery::goal::{Goal, GoalKind};
use crate::lessons::recovery::outcome::{holds_verdict, is_shell_error};
use crate::lessons::vocabulary::WORDS;
use crate::model::Pattern;
use crate::model::text::one_line;
use memctl_redact::Clean;
use memctl_sessions::Step;

/// Maximum length of an output in a pattern, in bytes.
const MAX_OUTPUT: usize = 600;
/// Number of steps before and after a recovery in which the same calls must have the same outcome.
const NEAR: usize = 30;
/// Returns the pattern of an episode. `steps` are those around it; every stored text goes through
/// `keep` first.
///
/// # Errors
///
/// The reason why the recovery is no pattern:
/// - `no_error`: the failing call printed none.
/// - `retry`: an equal call had the other outcome, or another small change did as well.
/// - `still_fails`: the later call reports an error, ran nothing, or hides its exit code.
/// - `dangerous`: the later call removes a safeguard or destroys something.
/// - `one_off`: more than a small change, an edit or a message of the user in between, or an error that names
///   nothing missing.
pub fn of_episode(
    episode: &Episode,
    steps: &[Step],
    keep: &dyn Fn(&str) -> Clean<'static>,
) -> Result<Pattern, &'static str> {
    let step = |index: usize| {
        let at = steps.binary_search_by_key(&index, |step| step.index);
        at.ok().map(|at| &steps[at]).ok_or("no_error")
    };
    let (failed, worked) = (step(episode.fail_step)?, step(episode.success_step)?);
    if episode.error_key.is_empty() {
        return Err("no_error");
    }
    let line = one_line(&keep(&episode.error_line).into_string());
    let has_error = |step: &Step| one_line(&step.output).contains(&line);
    let is_unproven = |step: &Step| {
        let hides = |line: String| hides_its_code(&line);
        step.command().is_some_and(hides)
            || !Goal::of(step).is_search() && reports_failure(&step.output)
    };
    if has_error(worked) || is_unproven(worked) {
        return Err("still_fails");
    }
    let is_goal = |step: &Step| match Goal::of(step).kind {
        _ if of_files(&step.tool) => false,
        GoalKind::Edit(..) | GoalKind::Read(_) => false,
        GoalKind::Tool(_) => !Goal::of(step).is_search(),
        GoalKind::Shell(_) => true,
    };
    if !is_goal(failed) || !is_goal(worked) {
        return Err("one_off");
    }
    let [failing, working] = [failed, worked].map(|step| {
        let text = without_people(&call::code(step));
        keep(&text).into_string()
    });
    let before = Call::of(&failing, Some(&failed.tool)).ok_or("one_off")?;
    let after = Call::of(&working, Some(&worked.tool)).ok_or("one_off")?;
    let moved = failed.cwd.is_some() && worked.cwd.is_some() && failed.cwd != worked.cwd;
    let change = difference(&before, &after, &line);
    if before == after && change.is_none() {
        return Err("retry");
    }
    let is_same_error = |step: &Step| {
        has_error(step) || error_key(&step.output).as_ref() == Some(&episode.error_key)
    };
    // An equal call with another outcome: the state decided, and not the words of the call. Later, the call may
    // fail for another reason, as a test does.
    let is_flaky = |step: &Step| {
        let outcome = step.is_error.map(|failed| !failed);
        let Some(succeeded) = outcome.or(step.exit_code.map(|code| code == 0)) else {
            return false;
        };
        let is_later = step.index > episode.success_step;
        match Call::of_step(step) {
            Some(call) if call == before => succeeded,
            Some(call) if call == after => !succeeded && (!is_later || is_same_error(step)),
            // Another change did as well: nobody knows which one is right.
            Some(call) if is_later && succeeded => {
                let other = difference(&before, &call, &line);
                let other = other.filter(|other| !other.is_of_text());
                other.zip(change.as_ref()).is_some_and(|(other, change)| {
                    change.added.iter().any(|word| !other.added.contains(word))
                })
            }
            _ => false,
        }
    };
    let near = episode.fail_step.saturating_sub(NEAR)..=episode.success_step.saturating_add(NEAR);
    let mut near = steps.iter().filter(|step| near.contains(&step.index));
    if before != after && near.any(is_flaky) {
        return Err("retry");
    }
    if episode.is_spoken {
        return Err("one_off");
    }
    let mut changes = episode.changes.iter().filter_map(|at| step(*at).ok());
    let is_changed = changes.any(|step| !only_observes(step));
    let change = change.filter(|_| !is_changed && !moved && !is_verdict(failed, &line));
    let change = change.ok_or("one_off")?;
    if is_hazard(&change.added, &failing, &failed.output) {
        return Err("dangerous");
    }
    if !says_cure(&change, &line) || !are_accepted(&change, &line) || is_help(&worked.output) {
        return Err("one_off");
    }
    // Output of a search is content of one place.
    let printed = if Goal::of(worked).is_search() {
        ""
    } else {
        worked.output.trim()
    };
    Ok(Pattern {
        error_key: keep(&episode.error_key).into_string(),
        error_line: keep(&without_people(&episode.error_line)).into_string(),
        failing_code: failing,
        working_code: working,
        success_output: keep(printed).cut(MAX_OUTPUT),
        tool: keep(&episode.goal).into_string(),
    })
}

/// Returns `true` for tools that read, search or change files.
pub(crate) fn of_files(tool: &str) -> bool {
    let tool = tool.to_ascii_lowercase();
    !call::is_shell(&tool) && WORDS.file_tools.occur_in(&tool)
}

/// Returns `true` for a call that changes nothing: every command of it asks for information.
fn only_observes(step: &Step) -> bool {
    if !matches!(Goal::of(step).kind, GoalKind::Shell(_)) || writes(step) {
        return false;
    }
    let is_observation = |word: &str| {
        let listed = |first| ["describe", "get", "list", "show"].contains(&first);
        WORDS.observations.contains(word)
            || word.split_once('-').is_some_and(|(first, _)| listed(first))
    };
    // `-h` before a value is the host of a database.
    let asks = |words: &[String]| {
        let is_long = |word: &String| matches!(word.as_str(), "--help" | "--version" | "-version");
        let last = words.last().map_or("", String::as_str);
        words.iter().any(is_long) || matches!(last, "-h" | "-V")
    };
    let asks_database = |words: &[String]| {
        let mut statements = words
            .iter()
            .skip(1)
            .filter(|word| is_statement(word))
            .peekable();
        statements.peek().is_some() && statements.all(|text| reads(text))
    };
    let observes = |simple: &Simple| {
        let run = Run::of(simple);
        let bare = simple.words.iter().skip(1);
        let mut bare = bare.take_while(|word| !word.starts_with('-'));
        // `poetry env info`, `aws configure list-profiles`.
        let first = bare.next().is_some_and(|word| !acts(word));
        let second = bare.next().is_some_and(|word| is_observation(word));
        let last = run.name.rsplit(' ').next().unwrap_or_default();
        run.looks
            || WORDS.around.contains(&run.name) && !acts(&run.name)
            || is_observation(last)
            || first && second
            || asks(&simple.words)
            || asks_database(&simple.words)
    };
    let line = step.command().unwrap_or_default();
    let commands = commands(&line);
    !commands.is_empty() && commands.iter().all(observes)
}

/// Returns `true` for a word that makes, runs, sets, ends or destroys something, or lets time pass.
fn acts(word: &str) -> bool {
    WORDS.acts.contains(word) || WORDS.destroys.contains(word)
}

/// Returns `true` for text that asks a database, and changes nothing in it: `select …`, `\d orders`.
fn reads(text: &str) -> bool {
    let mut statements = text.split(';').map(str::trim).filter(|one| !one.is_empty());
    let begins = |one: &str| {
        let first = one.split_whitespace().next().unwrap_or_default();
        WORDS
            .reading_statements
            .contains(&first.to_ascii_lowercase())
    };
    statements.all(begins)
}

/// Returns `true` for text that may be a statement for a database.
fn is_statement(text: &str) -> bool {
    text.contains(char::is_whitespace) || text.starts_with('\\')
}

/// Returns `true` if a test runner or a checker ran and reports a finding, which another option does not solve. Its
/// report on its own call, such as an unknown option or a missing module, is no finding.
fn is_verdict(step: &Step, line: &str) -> bool {
    let goal = Goal::of(step);
    let name = goal.name();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let is_checker = words.any(|word| WORDS.verdict_programs.contains(word));
    let is_of_call = || {
        let lower = line.to_ascii_lowercase();
        let is_by_program = line.split(':').next() == name.split(' ').next();
        let mut named = line.split_whitespace();
        let names_option = named.any(|word| {
            word.trim_start_matches(['`', '\'', '"', '('])
                .starts_with("--")
        });
        is_by_program
            || names_option
            || is_stated(line)
            || is_shell_error(line)
            || WORDS.missing_programs.occur_in(&lower)
    };
    let is_finding = || holds_verdict(&step.output) || is_checker && !is_of_call();
    !goal.is_search() && !is_of_surroundings(line) && is_finding()
}

/// Returns `true` if an error says that a variable, a module or a program is missing around the call, which a test
/// runner may report as a failure of a test.
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
        of_episode(&analysis.episodes[0], &steps, &|text| {
            Clean::of_owned(text.to_owned())
        })
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
    fn a_question_to_a_database_changes_nothing() {
        let check = |command: &str, expected: bool| {
            let observes = only_observes(&Step::of_call("Bash", command));
            assert_eq!(observes, expected, "{command}");
        };
        check(r"psql -d app -c '\d users'", true);
        check("psql -c 'SELECT count(*) FROM carts; select 1'", true);
        check("mysql shop -e 'show tables'", true);
        check("psql -c 'select 1; delete from carts'", false);
        check("psql -c 'insert into carts values (1)'", false);
        check("psql -f select", false);
        check("psql -h localhost -c 'insert into carts values (1)'", false);
        check("psql -h localhost -c 'select 1'", true);
        check("psql -c 'select 1' -c 'delete from carts'", false);
        check("shop -h", true);
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
