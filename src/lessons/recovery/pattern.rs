//! The pattern of a recovery: when it is evidence, and when the same failure may be told it without
//! anybody having worded it.
//!
//! The working call must be the failing one with one small change (`change`), with nothing changed in
//! between. Everything that is not certain is no pattern: a wrong one costs more than a missing one.
//!
//! Deliberately absent: words about the change, and any score.

use super::call::{self, Call};
use super::change::change;
use crate::lessons::failure::error_line::is_stated;
use crate::lessons::failure::without_people;
use crate::lessons::recovery::call::commands;
use crate::lessons::recovery::goal::{Goal, Kind};
use crate::lessons::recovery::outcome::{holds_verdict, is_shell_error};
use crate::lessons::recovery::recover::Episode;
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
/// The reason why the recovery is no pattern: `no_error` if the failing call printed none, `retry` if an equal
/// call worked later, `still_fails` if the later call reports the same error, `dangerous` if it takes a
/// safeguard away or destroys something, `one_off` for more than a small change, for an edit in between, or for what
/// a test or a checker found.
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
    if one_line(&worked.output).contains(&line) {
        return Err("still_fails");
    }
    let is_goal = |step: &Step| match Goal::of(step).kind {
        _ if of_files(&step.tool) => false,
        Kind::Edit(..) | Kind::Read(_) => false,
        Kind::Tool(_) => !Goal::of(step).is_search(),
        Kind::Shell(_) => true,
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
    let change = change(&before, &after, &line);
    if before == after && change.is_none() {
        return Err("retry");
    }
    // An equal call with another outcome: the state decided, and not the words of the call.
    let is_flaky = |step: &Step| {
        let outcome = step.is_error.map(|failed| !failed);
        let outcome = outcome.or(step.exit_code.map(|code| code == 0));
        let expected = match Call::of_step(step) {
            Some(call) if call == before => false,
            Some(call) if call == after => true,
            _ => return false,
        };
        outcome.is_some_and(|succeeded| succeeded != expected)
    };
    let near = episode.fail_step.saturating_sub(NEAR)..=episode.success_step.saturating_add(NEAR);
    let mut near = steps.iter().filter(|step| near.contains(&step.index));
    if before != after && near.any(is_flaky) {
        return Err("retry");
    }
    let mut changes = episode.changes.iter().filter_map(|at| step(*at).ok());
    let is_changed = changes.any(|step| !only_observes(step));
    let change = change.filter(|_| !is_changed && !moved && !is_verdict(failed, &line));
    let change = change.ok_or("one_off")?;
    if is_hazard(&change.added, &change.dropped) {
        return Err("dangerous");
    }
    if change
        .added
        .iter()
        .any(|word| WORDS.information.contains(word))
        || is_help(&worked.output)
    {
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
    let Kind::Shell(runs) = Goal::of(step).kind else {
        return false;
    };
    let is_observation = |name: &str| {
        let last = name.rsplit(' ').next().unwrap_or(name);
        WORDS.observations.contains(last)
    };
    let asks = |word: &String| matches!(word.as_str(), "--help" | "-h" | "--version");
    let words = step
        .command()
        .map(|command| commands(&command))
        .unwrap_or_default();
    runs.iter()
        .all(|run| run.looks || is_observation(&run.name))
        || !words.is_empty() && words.iter().all(|simple| simple.words.iter().any(asks))
}

/// Returns `true` if a test runner or a checker ran, and says what it found: another option is no cure for it. What it
/// says of its own call, as of an unknown option or a missing module, is no finding.
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
    !goal.is_search() && (holds_verdict(&step.output) || is_checker && !is_of_call())
}

/// Returns `true` for a page of help.
fn is_help(output: &str) -> bool {
    let lower: String = output.trim_start().chars().take(400).collect();
    let lower = lower.to_ascii_lowercase();
    lower.starts_with("usage") || lower.contains("\nusage:") || lower.contains("\noptions:")
}

/// Short options that force or silence.
const SHORT: &[&str] = &["-f", "-fd", "-D", "-k", "-y", "-rf", "-u"];

/// Returns `true` for a change that is never told unasked: it switches a safeguard off, hides a failure, destroys
/// something, or acts on what others use.
pub(crate) fn is_hazard(added: &[String], dropped: &[String]) -> bool {
    let plain = |word: &str| word.to_ascii_lowercase().replace('_', "-");
    let takes_away = |word: &String| {
        let word = plain(word).replace("/root/", "/");
        let is_name = word.starts_with('-') || word.contains('=');
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (format!("{name}="), value),
            None if is_name => (word.clone(), ""),
            None => (String::new(), word.as_str()),
        };
        let mut parts = word.split(|c: char| !c.is_ascii_alphanumeric());
        let mut words = value.split(|c: char| !c.is_ascii_alphanumeric());
        WORDS.removes.occur_in(&name)
            || name.contains("no-") && WORDS.checks.occur_in(&name)
            || WORDS.off.contains(value)
            || words.any(|part| WORDS.removes.contains(part))
            || parts.any(|part| WORDS.removing_words.contains(part))
    };
    let is_check = |word: &String| {
        let is_option = word.starts_with('-') || word.contains('=');
        is_option && WORDS.checks.occur_in(&plain(word)) || matches!(word.as_str(), "-D" | "error")
    };
    let is_cluster = |word: &String| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        let is_short = !letters.starts_with('-') && letters.len() <= 4;
        SHORT.contains(&word.as_str()) || is_short && letters.len() > 1 && letters.starts_with('k')
    };
    added
        .iter()
        .any(|word| takes_away(word) || is_cluster(word))
        || dropped.iter().any(is_check)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lessons::failure::error_line::error_line;

    #[test]
    fn a_safeguard_is_not_taken_away_unasked() {
        let check = |added: &[&str], dropped: &[&str], expected: bool| {
            let own = |words: &[&str]| {
                words
                    .iter()
                    .map(|word| (*word).to_owned())
                    .collect::<Vec<_>>()
            };
            assert_eq!(
                is_hazard(&own(added), &own(dropped)),
                expected,
                "{added:?} {dropped:?}"
            );
        };
        check(&["--no-verify"], &[], true);
        check(&["--ssl-mode", "DISABLED"], &[], true);
        check(&["telemetry=off"], &[], true);
        check(&["--target", "*"], &[], true);
        check(&["--env=production"], &[], true);
        check(&["DB_USER=admin"], &[], true);
        check(&["-X", "theirs"], &[], true);
        check(&["GONOSUMDB=example.org"], &[], true);
        check(&["--git-hooks=none"], &[], true);
        check(&["--cov_fail_under=40"], &[], true);
        check(&["--no-typecheck"], &[], true);
        check(&["max-retries=9"], &[], true);
        check(&[], &["-D", "warnings"], true);
        check(&[], &["-Werror"], true);
        check(&[], &["--strict"], true);
        check(&["--legacy-peer-deps"], &[], false);
        check(&["/root/tools/bin/shop"], &["shop"], false);
        check(&["--colours=8", "--offset=10"], &[], false);
        check(&["--fields=total,updated", "skipped,id"], &[], false);
        check(&["--policy", "skip"], &[], true);
        check(&[".venv/bin/pytest"], &["pytest"], false);
        check(&["-DskipTests"], &[], true);
        check(&["-ksS"], &["-sS"], true);
        check(&["NODE_TLS_REJECT_UNAUTHORIZED=0"], &[], true);
        check(&[], &["--frozen-lockfile"], true);
        check(&["--fix"], &[], true);
        check(&["--fix-dry-run"], &[], true);
        check(&["--reset=hard"], &[], true);
        check(&["-DCMAKE_TLS_VERIFY=0"], &[], true);
        check(&["--prefix=/opt"], &[], false);
        check(&["--suffix", "--shard=1"], &[], false);
        check(&["--no-cache"], &[], false);
        check(&["-i"], &["-it"], false);
        check(&["uv", "run"], &[], false);
        check(&["POSTHOG_API_KEY=x"], &[], false);
    }

    #[test]
    fn what_a_checker_found_is_not_cured_by_an_option() {
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
        check(
            "tools/style app",
            "app/cart.py:12:80: E501 line too long",
            true,
        );
        check(
            "tools/types app",
            "app/cart.py:12: error: Incompatible types",
            true,
        );
        check(
            "tools/rules app",
            "app/cart.ts\n  12:3  error  'x' is not used  no-unused",
            true,
        );
        check(
            "tsc -p .",
            "src/cart.ts(12,3): error TS2304: Cannot find name 'x'.",
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
    }
}
