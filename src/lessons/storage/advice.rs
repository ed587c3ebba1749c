//! Advice of a lesson or a pattern: if a call follows it, and if it says what made a failing call work.

use memctl_shell::is_assignment;

use super::checks::code_spans;
use crate::lessons::call::{Globs, commands};
use crate::lessons::recovery::change::{Change, common};
use crate::lessons::session::call_match::{occurs, without_angles};
use crate::model::text::one_line;
use crate::model::{Pattern, Procedure};

/// Returns `true` if a lesson or a pattern says what made a failing call work. Who has it needs to find out, to
/// learn and to word nothing about these calls.
pub(crate) fn covers(procedure: &Procedure, recovery: &Pattern) -> bool {
    let (failing, working) = (&recovery.failing_code, &recovery.working_code);
    let advice = advice(procedure);
    let is_said = |own: &Pattern| {
        let is_made = |change: Change| change.is_missing_in(failing) && change.is_in(working);
        common(own, recovery).is_some() || Change::of(own).is_some_and(is_made)
    };
    is_followed(working, &advice) && !is_followed(failing, &advice)
        || procedure.pattern.as_ref().is_some_and(is_said)
}

/// Returns the commands that a lesson advises: those in its backticks, or the one that it ends with,
/// without the ones that it is told at or warns of.
pub(crate) fn advice(procedure: &Procedure) -> Vec<String> {
    let spans = code_spans(&procedure.lesson);
    let advised = spans.filter(|(before, _)| !warns(before));
    let mut found: Vec<String> = advised.map(|(_, code)| code.to_owned()).collect();
    if let Some(applies) = &procedure.applies {
        if found.is_empty() {
            found.extend(at_the_end(&procedure.lesson, &applies.commands));
        }
        let is_trigger = |command: &String| {
            let mut triggers = applies.commands.iter().map(|trigger| one_line(trigger));
            let begins = |trigger: String| {
                let rest = trigger.strip_prefix(&one_line(command)).map(str::to_owned);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            };
            // A whole form with templates is advice, even if the lesson is told there.
            !command.contains('<') && triggers.any(begins)
        };
        found.retain(|command| !is_trigger(command));
    }
    found
}

/// Words before a command that say not to run it.
const WARNINGS: &[&str] = &[
    "not", "never", "no", "without", "don't", "avoid", "than", "instead of",
];

/// Returns `true` if the prose before a command ends in a warning of it: "never with", "rather than".
fn warns(before: &str) -> bool {
    let clause = before.rsplit(['.', ';', ':', ',', '(']).next();
    let clause = clause.unwrap_or_default().to_lowercase();
    let words: Vec<&str> = clause.split_whitespace().collect();
    let last = words[words.len().saturating_sub(3)..].join(" ");
    let last = format!(" {last} ");
    WARNINGS
        .iter()
        .any(|warning| last.contains(&format!(" {warning} ")))
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
        let lesson = "Stage single files; never run `make stage -A` (or rather than `make push`).";
        check("make stage -A", lesson, false);
        check("make push", lesson, false);
        check(
            "cargo test",
            "Run `make unit`; `cargo` finds nothing.",
            false,
        );
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
    fn what_is_in_force_covers_a_recovery_of_its_kind() {
        let recovery = |failing: &str, working: &str| Pattern {
            failing_code: failing.to_owned(),
            working_code: working.to_owned(),
            ..Pattern::default()
        };
        let lesson = Procedure {
            lesson: "Pack with `bin/pack <box> --season <name>`.".to_owned(),
            ..Procedure::default()
        };
        let pattern = Procedure {
            pattern: Some(recovery("bin/pack red", "bin/pack red --season dry")),
            ..Procedure::default()
        };
        let check = |failing: &str, working: &str, expected: [bool; 2]| {
            let found = [&lesson, &pattern].map(|one| covers(one, &recovery(failing, working)));
            assert_eq!(found, expected, "{failing} | {working}");
        };
        check("bin/pack red", "bin/pack red --season dry", [true, true]);
        check(
            "bin/pack red -x 2>&1",
            "bin/pack red -x --season dry",
            [true, true],
        );
        check("bin/pack blue", "bin/pack blue --season dry", [true, true]);
        check("bin/pack blue", "bin/pack blue --season wet", [true, false]);
        check("bin/pack red", "bin/pack red --fast", [false, false]);
        check("bin/load red", "bin/load red --season dry", [false, false]);
    }
}
