//! Advice of a lesson or a pattern: if a call follows it, and if it says what made a failing call work.

use memctl_shell::is_assignment;

use super::words::code_spans;
use crate::lessons::call::commands;
use crate::lessons::recovery::change::{Change, common};
use crate::lessons::session::call_match::{occurs, opens_a_glob, without_angles};
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

/// Returns the commands that a lesson advises: those in its backticks, without those that it warns of. A form that one of
/// its own commands follows is none, in any language: the lesson would never be told there.
pub(crate) fn advice(procedure: &Procedure) -> Vec<String> {
    let spans = code_spans(&procedure.lesson);
    // Operators begin a part of a command: `| grep -v`.
    let is_part = |code: &str| code.starts_with(['|', '&', ';', '>']);
    let advised = spans.filter(|(before, code)| !warns(before) && !is_part(code));
    let mut found: Vec<String> = advised.map(|(_, code)| code.to_owned()).collect();
    let Some(applies) = &procedure.applies else {
        return found;
    };
    // The only form of a lesson, with templates, is what to run: who runs it needs no lesson.
    if !matches!(found.as_slice(), [form] if form.contains('<')) {
        found.retain(|form| {
            !applies
                .commands
                .iter()
                .any(|told_at| follows(told_at, form))
        });
    }
    found
}

/// Returns `true` if one written form does what another one says.
pub(crate) fn follows(form: &str, other: &str) -> bool {
    is_followed(
        without_angles(form).trim_end_matches('…'),
        &[other.to_owned()],
    )
}

/// Returns `true` if a call does what a lesson advises. One with an option of the command that it is told at, which the
/// advice has not, is that command.
pub(crate) fn is_heeded(code: &str, advice: &[String], told_at: &[String]) -> bool {
    let is_other = |form: &String| {
        let options = told_at
            .iter()
            .flat_map(|command| command.split_whitespace());
        let mut options = options.filter(|word| word.starts_with("--") && word.len() > 2);
        options.any(|option| code.contains(option) && !form.contains(option))
    };
    let forms = advice.iter().filter(|form| !is_other(form)).cloned();
    is_followed(code, &forms.collect::<Vec<_>>())
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

/// Returns `true` if a call runs one of these commands, with the variables that it sets. Of a chain, it
/// must run each part.
pub(crate) fn is_followed(code: &str, advice: &[String]) -> bool {
    advice.iter().any(|text| {
        let mut variables = variables(text).peekable();
        let names_more = variables.peek().is_some()
            || commands(&without_angles(text))
                .iter()
                .any(|one| one.words.len() > 1 || one.words.iter().any(|word| word.contains('/')));
        names_more
            && !opens_a_glob(text, code)
            && variables.all(|set| code.contains(set))
            && directories(text).all(|directory| code.contains(&directory))
            && occurs(text, code, true)
    })
}

/// Directories that a command moves to.
fn directories(text: &str) -> impl Iterator<Item = String> {
    let moves = commands(&without_angles(text)).into_iter();
    let moves = moves.filter(|one| one.program() == "cd" && one.words.len() > 1);
    moves.filter_map(|one| {
        one.words
            .into_iter()
            .nth(1)
            .filter(|name| !name.contains('…'))
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
        check("ls a/*.c; grep -rn x src --include='*.c'", lesson, true);
        let lesson = "Check with `TARGET=web ./check`.";
        check("./check", lesson, false);
        check("export TARGET=web && ./check", lesson, true);
        check("CI=1 make", "Build with `CI=1 make`.", true);
        let lesson = "Free the lock: `cd box && bin/a unlock && bin/a proof <file>`.";
        check("cd box; bin/a proof one", lesson, false);
        check("cd /srv/box; bin/a unlock; bin/a proof one", lesson, true);
        check("bin/a unlock; bin/a proof one", lesson, false);
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

    /// A lesson that no call of its own commands may hear is never told there: in any language, as models word them.
    #[test]
    fn form_that_a_command_follows_is_no_advice() {
        let check = |lesson: &str, command: &str, code: &str, expected: bool| {
            let applies = serde_json::from_value(serde_json::json!({ "commands": [command] }));
            let procedure = Procedure {
                lesson: lesson.to_owned(),
                applies: applies.ok(),
                ..Procedure::default()
            };
            let told_at = [command.to_owned()];
            let is_heeded = is_heeded(code, &advice(&procedure), &told_at);
            assert_eq!(is_heeded, expected, "{lesson} | {code}");
        };
        let lesson = "Mit `hub list --find <words>` suchen: `hub search --in <box>` findet nichts.";
        check(
            lesson, "hub search --in <box>", "hub search --in a/b x", false,
        );
        check(lesson, "hub search --in <box>", "hub list --find x", true);
        let lesson = "Read it with `hub api boxes/<n>`: `hub box <n> --notes` has none of it.";
        check(
            lesson,
            "hub box <n> --as x --notes",
            "hub box 7 --as x --notes",
            false,
        );
        let lesson = "Build with `go build -o app .`: with `./...` go writes nothing.";
        check(
            lesson, "go build -o app ./...", "go build -o app ./...", false,
        );
        // A template is no option.
        let lesson = "Run one with `pn test -- <name>.spec`: a pattern is taken as a name.";
        let command = "pn test -- --only=<pattern>";
        check(lesson, command, "pn test -- --only='a.spec|b.spec'", false);
        check(lesson, command, "pn test -- a.spec", true);
        // An option of the command is what goes wrong.
        let lesson = "Look with `git log --oneline -- <path>`, which has no commits of tools.";
        let command = "git log --oneline --all";
        check(lesson, command, "git log --oneline --all -- src", false);
        check(lesson, command, "git log --oneline -- src", true);
        let lesson = "Take the code of `go test ./... > /dev/null; echo $?`: behind `| grep -v` it is another.";
        check(
            lesson,
            "go test ./... 2>&1",
            "go test ./... 2>&1 | grep -v ok",
            false,
        );
        let lesson = "List with `ls <folder>/`: a pattern (`ls -1 <folder>/<n>-*/`) fails.";
        check(
            lesson,
            "ls -1 <folder>/plan/<n>-*/…",
            "ls -1 a/plan/14-*/",
            false,
        );
        let lesson = "Lint from below: `cd cli && lint run`.";
        check(lesson, "lint run", "cd /srv/cli && lint run", true);
        check(lesson, "lint run", "lint run", false);
        let lesson = "Give it a file: `npm run send -- --file <file>`.";
        check(lesson, "npm run send", "npm run send -- --file a", true);
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
