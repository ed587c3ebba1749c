//! Evidence of lessons: a call follows what an agent was told, or not.
//!
//! A lesson is followed by a call that runs one of the commands in its backticks; a pattern by a
//! call that has its change. The call that failed must not have had it. A lesson that names no
//! command has no outcome.

use std::collections::BTreeSet;

use crate::lessons::asking::call_match::without_angles;
use crate::lessons::asking::checks::code_spans;
use crate::lessons::recovery::shell::{Globs, basename, commands};
use crate::lessons::recovery::shell_command::AROUND;
use crate::lessons::telling::hint::Shown;
use crate::model::{Evidence, Pattern, Procedure, Record as _, Trust};

use crate::lessons::recovery::change::Change;

/// Minimum mean of the posterior of a lesson that is told.
const LEAST: f64 = 0.3;
/// Share of the words that a recorded piece of code adds that a call must have.
const SHARE: f64 = 0.5;

/// Returns `true` if a call does what was told, and the call that failed did not.
pub(crate) fn adopts(code: &str, shown: &Shown) -> bool {
    if shown.is_lesson {
        return is_followed(code, &shown.advice) && !is_followed(&shown.call, &shown.advice);
    }
    if shown.failing_code.is_empty() {
        return is_followed(code, &quoted(&shown.working_code));
    }
    let pattern = Pattern {
        failing_code: shown.failing_code.clone(),
        working_code: shown.working_code.clone(),
        ..Pattern::default()
    };
    match Change::of(&pattern) {
        Some(change) if !change.added.is_empty() || !change.dropped.is_empty() => {
            change.is_in(code) && !change.is_in(&shown.call)
        }
        _ => has_more(code, shown),
    }
}

/// Returns `true` if a call has more of what a piece of working code adds than the failing call.
fn has_more(code: &str, shown: &Shown) -> bool {
    let failing = words(&shown.failing_code);
    let added: BTreeSet<String> = words(&shown.working_code)
        .difference(&failing)
        .cloned()
        .collect();
    if added.is_empty() {
        return code.trim() == shown.working_code.trim() && code.trim() != shown.call.trim();
    }
    #[expect(clippy::cast_precision_loss, reason = "a call has few words")]
    let share = |code: &str| words(code).intersection(&added).count() as f64 / added.len() as f64;
    share(code) >= SHARE && share(code) > share(&shown.call)
}

fn words(code: &str) -> BTreeSet<String> {
    let words = code.split(|c: char| !c.is_alphanumeric() && !"_-.".contains(c));
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns the commands that a lesson advises: those in its backticks, or the one that it ends with,
/// without the ones that it is told at.
pub(crate) fn advice(procedure: &Procedure) -> Vec<String> {
    let mut found = quoted(&procedure.lesson);
    if let Some(applies) = &procedure.applies {
        if found.is_empty() {
            found.extend(at_the_end(&procedure.lesson, &applies.commands));
        }
        let is_trigger = |command: &String| {
            let words = |text: &str| {
                text.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            let own = words(command);
            // A whole form with templates is advice, even if the lesson is told there.
            !command.contains('<') && applies.commands.iter().any(|trigger| words(trigger) == own)
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
    let known: Vec<String> = told_at.iter().flat_map(|line| programs(line)).collect();
    let is_known = programs(end).iter().any(|program| known.contains(program));
    is_known.then(|| end.trim_end_matches('.').to_owned())
}

/// Texts in the backticks of a text.
fn quoted(text: &str) -> Vec<String> {
    code_spans(text).map(str::to_owned).collect()
}

/// Returns `true` if a call runs one of these commands, with the variables that it sets. Of a chain, it
/// must run each part.
pub(crate) fn is_followed(code: &str, advice: &[String]) -> bool {
    let run: Vec<Vec<String>> = commands(code).into_iter().map(|one| one.words).collect();
    let globs = Globs::of(code);
    advice.iter().any(|text| {
        let variables: Vec<&str> = variables(text).collect();
        let advised: Vec<Vec<String>> = commands(&without_angles(text))
            .into_iter()
            .map(|one| one.words)
            .filter(|words| {
                !words
                    .first()
                    .is_some_and(|word| AROUND.contains(&word.as_str()))
            })
            .collect();
        let names_more = |advised: &Vec<String>| {
            advised.len() > 1
                || !variables.is_empty()
                || advised.iter().any(|word| word.contains('/'))
        };
        let is_quoted = !globs.open || !Globs::of(text).quoted;
        is_quoted
            && variables.iter().all(|set| code.contains(set))
            && advised.iter().any(names_more)
            && advised
                .iter()
                .all(|advised| run.iter().any(|own| runs(own, advised)))
    })
}

/// Returns `true` if the words of a call begin with the advised program and have its arguments in order.
fn runs(own: &[String], advised: &[String]) -> bool {
    let Some((program, arguments)) = advised.split_first() else {
        return false;
    };
    let mut rest = own.iter().skip(1);
    own.first().map(|word| basename(word)) == Some(basename(program))
        && arguments
            .iter()
            .all(|word| is_place(word) || rest.any(|own| own == word))
}

/// Assignments of a command up to their `=`: `CI=` of `CI=1 make`.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().filter_map(|word| {
        let end = word.find('=')?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let starts = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        (starts && word[..end].chars().all(is_name)).then(|| &word[..=end])
    })
}

/// Returns `true` for a word that stands for another: `<file>`, `FILE`, `…`.
fn is_place(word: &str) -> bool {
    word.starts_with('<')
        || word.contains('…')
        || word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_')
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
