//! Advice of a lesson or a pattern: if a call follows it, and if it says what made a failing call work.

use memctl_shell::is_assignment;

use super::words::code_spans;
use crate::lessons::call::{Simple, commands};
use crate::lessons::recovery::difference::Change;
use crate::lessons::session::call_match::{is_part, occurs, opens_a_glob, runs_as, without_angles};
use crate::model::{Pattern, Procedure};

/// Returns `true` if a lesson or a pattern says what made a failing call work. Who has it needs to find out, to
/// learn and to word nothing about these calls.
pub(crate) fn covers(procedure: &Procedure, recovery: &Pattern) -> bool {
    let (failing, working) = (&recovery.failing_code, &recovery.working_code);
    let advice = advice(procedure);
    let is_said = |own: &Pattern| {
        let is_made = |change: Change| change.is_missing_in(failing) && change.is_in(working);
        let is_equal = own.failing_code == *failing && own.working_code == *working;
        is_equal || Change::of(own).is_some_and(is_made)
    };
    is_followed(working, &advice) && !is_followed(failing, &advice)
        || procedure.pattern.as_ref().is_some_and(is_said)
}

/// Returns the commands that a lesson advises: those in its backticks, without those that it warns of or that only name
/// the place. A form that one of its own commands follows is none, in any language: the lesson would never be told there.
/// Nor is one behind the first that begins like its commands: it is what went wrong, or an example of it.
pub(crate) fn advice(procedure: &Procedure) -> Vec<String> {
    let spans = code_spans(&procedure.lesson);
    // Operators begin a part of a command: `| grep -v`.
    let is_behind = |code: &str| code.starts_with(['|', '&', ';', '>']);
    let advised = spans.filter(|(before, code)| !is_no_advice(before) && !is_behind(code));
    let mut found: Vec<String> = advised.map(|(_, code)| code.to_owned()).collect();
    let Some(applies) = &procedure.applies else {
        return found;
    };
    let commands = &applies.commands;
    // The only form of a lesson, with templates, is what to run: who runs it needs no lesson.
    if matches!(found.as_slice(), [form] if form.contains('<')) {
        return found;
    }
    let mut is_first = true;
    found.retain(|form| {
        if !says_more(form) {
            return true;
        }
        let plain = without_angles(form);
        let is_in_command = commands.iter().any(|told_at| follows(told_at, form));
        let has_command = commands
            .iter()
            .any(|told_at| occurs(told_at, &plain, false));
        // A command without its wrong part is the first form, too, though it silences nothing.
        let was_first = is_first;
        is_first &= is_in_command && has_command;
        !is_in_command && (was_first || !has_command)
    });
    found
}

/// Returns `true` if one written form does what another one says.
pub(crate) fn follows(form: &str, other: &str) -> bool {
    is_followed(
        without_angles(form).trim_end_matches('…'),
        &[other.to_owned()],
    )
}

/// Returns `true` if a call does all that a lesson advises, and nothing else at the commands that it is told at. One with
/// an option of these commands, which the advice has not, is such a command.
pub(crate) fn is_heeded(code: &str, advice: &[String], told_at: &[String]) -> bool {
    let is_other = |form: &String| {
        let options = told_at
            .iter()
            .flat_map(|command| command.split_whitespace());
        let mut options = options.filter(|word| word.starts_with("--") && word.len() > 2);
        options.any(|option| code.contains(option) && !form.contains(option))
    };
    let forms = advice
        .iter()
        .filter(|form| !is_other(form) && says_more(form));
    let forms: Vec<&String> = forms.collect();
    let is_meant = |own: &Simple| told_at.iter().any(|one| is_part(one, own, false));
    let is_right = |own: &Simple| forms.iter().any(|form| is_part(form, own, true));
    !forms.is_empty()
        && forms.iter().all(|form| does(code, form))
        && commands(code)
            .iter()
            .all(|own| !is_meant(own) || is_right(own))
}

/// Words before a command that say not to run it, or what comes before or after it.
const WARNINGS: &[&str] = &[
    "not", "never", "no", "without", "don't", "avoid", "than", "instead of", "before", "after",
];

/// Returns `true` if the prose before a command warns of it or names it as the place: "never with", "rather than". A
/// lesson that begins with a command says something about it.
fn is_no_advice(before: &str) -> bool {
    if before.is_empty() {
        return true;
    }
    let clause = before.rsplit(['.', ';', ':', ',', '(']).next();
    let clause = clause.unwrap_or_default().to_lowercase();
    let words: Vec<&str> = clause.split_whitespace().collect();
    let last = words[words.len().saturating_sub(3)..].join(" ");
    let last = format!(" {last} ");
    WARNINGS
        .iter()
        .any(|warning| last.contains(&format!(" {warning} ")))
}

/// Returns `true` if a call runs one of these commands.
pub(crate) fn is_followed(code: &str, advice: &[String]) -> bool {
    advice
        .iter()
        .any(|form| says_more(form) && does(code, form))
}

/// Returns `true` for a form that says more than the name of a program: another word, a path, a variable.
fn says_more(form: &str) -> bool {
    let names_more = |words: &[String]| {
        let is_program = words[0].contains(char::is_alphanumeric);
        is_program && (words.len() > 1 || words[0].contains('/'))
    };
    let mut parts = commands(&without_angles(form)).into_iter();
    variables(form).next().is_some() || parts.any(|one| names_more(&one.words))
}

/// Returns `true` if a call runs a command, with the variables that it sets and the pipe that it reads. Of a chain, it must
/// run each part.
fn does(code: &str, form: &str) -> bool {
    let parts = commands(&without_angles(form));
    let own = commands(code);
    let is_read = |part: &Simple| own.iter().any(|own| own.piped && runs_as(part, own, true));
    !opens_a_glob(form, code)
        && variables(form).all(|set| code.contains(set))
        && directories(form).all(|directory| code.contains(&directory))
        && parts.iter().filter(|part| part.piped).all(is_read)
        && occurs(form, code, true)
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
        // The wrong form, or an example, may say more than the command.
        let lesson = "Link with `hub link --to red --yes`: `hub link --yes` took another one.";
        check(lesson, "hub link", "hub link --yes", false);
        check(lesson, "hub link", "hub link --to red --yes", true);
        let lesson = "Run `hub open <file>` first: a name (`hub edit 2:2 a.py`) was refused.";
        check(
            lesson,
            "hub edit <n>:<n> <file>.py",
            "hub edit 2:2 a.py",
            false,
        );
        let lesson =
            "Lint with `pn run`, not one file: `pn run main.go` reports what is used elsewhere.";
        check(lesson, "pn run <file>.go", "pn run main.go", false);
        let lesson = "`hub search` finds nothing here: take `hub search --all <words>`.";
        check(lesson, "hub search", "hub search --all x", true);
        check(lesson, "hub search", "hub search x", false);
        let lesson = "`hub lint <file>` reports many old faults: mend only what is new.";
        check(lesson, "hub lint", "hub lint a", false);
        // A form that names the place.
        let lesson = "Take the dashes out before `hub note <n> --file -`.";
        check(lesson, "hub note <n>", "hub note 7 --file -", false);
        // One of two steps.
        let lesson = "Ask with `hub send -d <mail>`, then read the code: `grep CODE <log>`.";
        check(lesson, "hub send", "hub send -d a", false);
        check(lesson, "hub send", "hub send -d a; grep CODE x.log", true);
        // One right command behind a wrong one.
        let lesson = "List with `ls <folder>/`, without a pattern.";
        let command = "ls <dir>/plan/*.md";
        check(lesson, command, "ls a/plan/*.md; ls a/plan/", false);
        check(lesson, command, "ls a/plan/", true);
        // The pipe that it reads is a part of it.
        let lesson = "Give it the list: `cat <list> | hub rm --from -`.";
        check(lesson, "hub rm", "hub rm --from -", false);
        check(lesson, "hub rm", "cat a.txt | hub rm --from -", true);
        // A template is not the directory above.
        let lesson = "Run it here with `node <script>.js`, not as `node ../<script>.js`.";
        check(lesson, "node ../<script>.js", "node ../a.js", false);
        check(lesson, "node ../<script>.js", "node lib/a.js", true);
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
        check("bin/pack blue", "bin/pack blue --season dry", [true, false]);
        check("bin/pack blue", "bin/pack blue --season wet", [true, false]);
        check("bin/pack red", "bin/pack red --fast", [false, false]);
        check("bin/load red", "bin/load red --season dry", [false, false]);
    }
}
