//! Evidence of lessons: decides if a call follows a lesson that the agent was told.
//!
//! A call follows a lesson if it runs one of the commands in its backticks, and a pattern if it has its change.
//! The call that failed must not have had it. A lesson without a command has no outcome.

use crate::lessons::call::{Globs, commands};
use crate::lessons::session::call_match::{occurs, without_angles};
use crate::lessons::storage::checks::code_spans;
use crate::lessons::telling::hint::Shown;
use crate::model::text::{of_commands, one_line};
use crate::model::{Evidence, Pattern, Procedure, Record as _, Trust};
use memctl_shell::is_assignment;

use crate::lessons::recovery::change::Change;

/// Minimum mean of the posterior of a lesson that is told.
const LEAST: f64 = 0.3;
/// Minimum likeness of a call to a recorded piece of code that it follows.
const LIKE: f64 = 0.5;

/// Returns `true` if a call does what was told, and the call that failed did not.
pub(crate) fn adopts(code: &str, shown: &Shown) -> bool {
    if shown.is_lesson {
        return is_followed(code, &shown.advice) && !is_followed(&shown.call, &shown.advice);
    }
    if shown.failing_code.is_empty() {
        let advice: Vec<String> = code_spans(&shown.working_code).map(str::to_owned).collect();
        return is_followed(code, &advice);
    }
    let pattern = Pattern {
        error_line: shown.error_key.clone(),
        failing_code: shown.failing_code.clone(),
        working_code: shown.working_code.clone(),
        ..Pattern::default()
    };
    match Change::of(&pattern) {
        Some(change) if !change.added.is_empty() || !change.dropped.is_empty() => {
            !change.is_in(&shown.call) && change.is_in(code) || change.is_made(&shown.call, code)
        }
        // It is like the working code, and more so than the failing call.
        _ => {
            let likeness = |code: &str| of_commands(code, &shown.working_code);
            likeness(code) >= LIKE && likeness(code) > likeness(&shown.call)
        }
    }
}

/// Returns the commands that a lesson advises: those in its backticks, or the one that it ends with,
/// without the ones that it is told at.
pub(crate) fn advice(procedure: &Procedure) -> Vec<String> {
    let mut found: Vec<String> = code_spans(&procedure.lesson).map(str::to_owned).collect();
    if let Some(applies) = &procedure.applies {
        if found.is_empty() {
            found.extend(at_the_end(&procedure.lesson, &applies.commands));
        }
        let is_trigger = |command: &String| {
            let mut triggers = applies.commands.iter().map(|trigger| one_line(trigger));
            // A whole form with templates is advice, even if the lesson is told there.
            !command.contains('<') && triggers.any(|trigger| trigger == one_line(command))
        };
        found.retain(|command| !is_trigger(command));
    }
    found
}

/// Returns the command behind the last colon of a lesson, if it runs a program that the lesson is told at.
fn at_the_end(lesson: &str, told_at: &[String]) -> Option<String> {
    let (_, end) = lesson.rsplit_once(": ")?;
    let programs = |line: &str| -> Vec<String> {
        let words = commands(line).into_iter().map(|one| one.words);
        words.filter_map(|words| words.into_iter().next()).collect()
    };
    let expected: Vec<String> = told_at.iter().flat_map(|line| programs(line)).collect();
    let is_known = programs(end)
        .iter()
        .any(|program| expected.contains(program));
    is_known.then(|| end.trim_end_matches('.').to_owned())
}

/// Returns `true` if a call runs one of these commands, with the variables that it sets. Of a chain, it
/// must run each part.
pub(crate) fn is_followed(code: &str, advice: &[String]) -> bool {
    let globs = Globs::of(code);
    advice.iter().any(|text| {
        let mut variables = variables(text).peekable();
        let names_more = variables.peek().is_some()
            || commands(&without_angles(text))
                .iter()
                .any(|one| one.words.len() > 1 || one.words.iter().any(|word| word.contains('/')));
        let is_quoted = !globs.open || !Globs::of(text).quoted;
        names_more
            && is_quoted
            && variables.all(|set| code.contains(set))
            && occurs(text, code, true)
    })
}

/// Assignments of a command up to their `=`: `CI=` of `CI=1 make`.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split_whitespace().filter(|word| is_assignment(word));
    words.filter_map(|word| word.get(..=word.find('=')?))
}

/// Returns `true` if a lesson has failed too often to be told.
pub(crate) fn is_demoted(evidence: Evidence) -> bool {
    evidence.posterior() < LEAST
}

/// Describes approved lessons with evidence against them, one sentence each. Sessions do not retire
/// an approved lesson, so a person has to decide.
pub(crate) fn doubts<'p>(all: impl IntoIterator<Item = &'p Procedure>) -> Vec<String> {
    let doubt = |procedure: &Procedure| {
        let (id, evidence) = (&procedure.procedure_id, procedure.evidence());
        let outcomes = evidence.helped.saturating_add(evidence.harmed);
        let state = if procedure.trust() == Trust::Observed || procedure.is_episode() {
            return None;
        } else if !procedure.is_active() {
            "retired, and is not told any more".to_owned()
        } else if is_demoted(evidence) {
            let of = if outcomes == 1 { "session" } else { "sessions" };
            format!("harmful in {} of {outcomes} {of}", evidence.harmed)
        } else {
            return None;
        };
        Some(format!(
            "`{id}` is approved and was {state}: memctl show {id}"
        ))
    };
    all.into_iter().filter_map(doubt).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_in_backticks_is_followed() {
        let check = |code: &str, lesson: &str, expected: bool| {
            let procedure = Procedure {
                lesson: lesson.to_owned(),
                applies: serde_json::from_str(r#"{"commands": ["cargo test"]}"#).ok(),
                ..Procedure::default()
            };
            assert_eq!(
                is_followed(code, &advice(&procedure)),
                expected,
                "{code} | {lesson}"
            );
        };
        let lesson = "Run tests with `make unit`, never with `cargo test`.";
        check("cd a && make unit 2>&1 | tail -3", lesson, true);
        check("make -j4 unit", lesson, true);
        check("make all", lesson, false);
        check("cargo test", lesson, false);
        check("pytest tests/a.py --db", "Use `pytest FILE --db`.", true);
        check("ls", "Look first.", false);
        let lesson = "Quote it: `grep -rn <text> src --include=\"*.c\"`.";
        check("grep -rn x src --include=*.c; echo $?", lesson, false);
        check("grep -rn x src --include='*.c'; echo $?", lesson, true);
        let lesson = "Check with `TARGET=web ./check`.";
        check("./check", lesson, false);
        check("export TARGET=web && ./check", lesson, true);
        check("CI=1 make", "Build with `CI=1 make`.", true);
        let lesson = "Free the lock: `cd x && bin/a unlock && bin/a proof <file>`.";
        check("bin/a proof one", lesson, false);
        check("bin/a unlock; bin/a proof one", lesson, true);
        check("make CI", "Build with `CI=1 make`.", false);
        check(
            "./check --target=web",
            "Check with `./check --target=web`.",
            true,
        );
    }

    #[test]
    fn command_at_the_end_of_a_lesson_is_advice_if_it_is_told_there() {
        let check = |code: &str, lesson: &str, expected: bool| {
            let procedure = Procedure {
                lesson: lesson.to_owned(),
                applies: serde_json::from_str(r#"{"commands": ["checks/run"]}"#).ok(),
                ..Procedure::default()
            };
            let advice = advice(&procedure);
            assert_eq!(is_followed(code, &advice), expected, "{code} | {lesson}");
        };
        let lesson = "Set the epoch: EPOCH=J2000 checks/run <check>.";
        check("EPOCH=J2000 checks/run farm", lesson, true);
        check("checks/run farm", lesson, false);
        check("make report", "Make the report first: make report", false);
    }

    #[test]
    fn form_with_templates_is_advice_where_it_is_told() {
        let form = "make report NIGHT=<night>";
        let procedure = Procedure {
            lesson: format!("Make the report with `{form}`."),
            applies: serde_json::from_value(serde_json::json!({ "commands": [form] })).ok(),
            ..Procedure::default()
        };
        let advice = advice(&procedure);
        assert!(is_followed("make report NIGHT=8", &advice));
        assert!(!is_followed("make report", &advice));
    }

    #[test]
    fn recorded_code_is_followed_in_other_words() {
        let shown = Shown {
            failing_code: "print(drugs['mechanism'])".to_owned(),
            working_code: "for row in await drugs.search('kinase'): print(row['mechanism'])"
                .to_owned(),
            call: "print(drugs['target'])".to_owned(),
            ..Shown::default()
        };
        assert!(adopts(
            "for row in await drugs.search('x'): print(row['target'])",
            &shown
        ));
        assert!(!adopts("print(drugs.get('target'))", &shown));
    }
}
