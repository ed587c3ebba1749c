//! Support of a session for a lesson: its commands ran there, and its errors were seen there.

use memctl_redact::Person;

use super::words::{CheckedLesson, LessonArgs, check_words, code_spans, is_telling, refuse};
use crate::lessons::session::call_match::{Occurrence, in_prose, occurrence, peeled};
use crate::lessons::session::calls::{SessionCall, SessionCalls};
use crate::lessons::vocabulary::WORDS;
use crate::model::text::one_line;
use crate::model::{Applies, LessonScope};
use crate::store::workspace::Refusal;

/// Checks a lesson of an agent against the calls of its session: they bear it out, unless it quotes words of a result.
/// A document may prescribe what no call did.
pub(crate) fn check(
    args: &LessonArgs,
    session: &SessionCalls,
    is_quoted: bool,
    person: &Person,
) -> Result<CheckedLesson, Refusal> {
    let mut checked = check_words(args, person)?;
    let mut forms = code_spans(&args.lesson).map(|(_, span)| span);
    if let Some(span) = forms.find(|span| answers_for_a_person(span)) {
        return refuse(
            "lesson",
            format!("`{span}` answers a question that is meant for the person"),
            "say which command asks, and leave the answer to the person",
        );
    }
    if acts_on_others(args) {
        checked.applies.scope = LessonScope::Project;
    }
    let checked = seen_errors(checked, &session.calls, is_quoted)?;
    check_commands(&checked.lesson, &checked.applies, is_quoted, &session.calls)?;
    let applies = &checked.applies;
    let is_silent = applies.commands.is_empty() && applies.errors.is_empty();
    if applies.scope == LessonScope::Everywhere && is_silent {
        return refuse(
            "scope",
            "nothing says when to tell it in other projects",
            "name `commands` or `errors`, or say `project`",
        );
    }
    Ok(checked)
}

/// Returns `true` for `yes | …` and `echo y | …`.
fn answers_for_a_person(form: &str) -> bool {
    let Some((said, _)) = form.split_once('|') else {
        return false;
    };
    let mut words = said.split_whitespace();
    let program = words.next().unwrap_or_default();
    let said = words.last().unwrap_or("y").to_ascii_lowercase();
    let is_yes = matches!(
        said.trim_matches(['"', '\'']).trim_end_matches("\\n"),
        "y" | "yes"
    );
    program == "yes" || matches!(program, "echo" | "printf") && is_yes
}

/// Returns `true` if a lesson runs something that others see or that destroys: what was wanted in one project is not in
/// every other.
fn acts_on_others(args: &LessonArgs) -> bool {
    let forms = code_spans(&args.lesson).map(|(_, span)| span);
    let mut words = forms
        .chain(args.commands.iter().map(String::as_str))
        .flat_map(|form| form.split(|c: char| !c.is_ascii_alphanumeric()));
    words.any(|word| {
        let word = word.to_ascii_lowercase();
        let word = word.as_str();
        WORDS.destroys.contains(word)
            || WORDS.reaches_others.contains(word)
            || WORDS.seen_by_others.contains(word)
    })
}

/// Parts the error phrases: those that the session has seen, those that are only expected beside a command, and those
/// that are left out. What has no other phrase and no command is refused: its author can word it anew, except for the
/// words of a result about the project.
fn seen_errors(
    checked: CheckedLesson,
    calls: &[SessionCall],
    is_quoted: bool,
) -> Result<CheckedLesson, Refusal> {
    let CheckedLesson { mut applies, .. } = checked;
    let is_alone = applies.commands.is_empty();
    let mut left_out = Vec::new();
    for phrase in std::mem::take(&mut applies.errors) {
        if !is_telling(&phrase, is_alone) {
            left_out.push(format!("`{phrase}` would match too much"));
        } else if calls.iter().any(|call| holds(call, &phrase)) {
            applies.errors.push(phrase);
        } else if is_alone {
            left_out.push(format!("no output of this session holds `{phrase}`"));
        } else {
            applies.expected.push(phrase);
        }
    }
    let is_told = !is_alone || !applies.errors.is_empty();
    let is_kept = is_told || is_quoted && applies.scope == LessonScope::Project;
    if let (Some(reason), false) = (left_out.first(), is_kept) {
        return refuse(
            "errors",
            reason,
            "copy 8 characters or more of an output, or a code such as `E1201`, or name its command, too",
        );
    }
    Ok(CheckedLesson {
        applies,
        left_out,
        ..checked
    })
}

/// Returns `true` if the output of a call has a phrase, in any case and spacing.
pub(crate) fn holds(call: &SessionCall, phrase: &str) -> bool {
    let plain = |text: &str| one_line(text).to_lowercase();
    plain(&call.output).contains(&plain(phrase))
}

/// Checks that the session ran what the lesson says.
fn check_commands(
    lesson: &str,
    applies: &Applies,
    is_quoted: bool,
    session: &[SessionCall],
) -> Result<(), Refusal> {
    let calls = &peeled(session);
    let is_prescribed =
        |text: &str| is_quoted && session.iter().any(|call| call.output.contains(text));
    // Beside the call that ran, an agent names the forms that others will try: one of them must have run.
    let found = applies.commands.iter();
    let found = found.map(|command| occurrence(command, calls));
    let mut best = found.max().unwrap_or(Occurrence::Nowhere);
    if let (Some(command), Occurrence::Nowhere) = (applies.commands.first(), best) {
        return refuse(
            "commands",
            format!("no call of this session begins with `{command}`"),
            "write it as it ran here, with `<…>` for what varies",
        );
    }
    for (_, span) in code_spans(lesson) {
        match in_prose(span, calls) {
            Ok(found) => best = best.max(found),
            Err(_) if is_prescribed(span) => {}
            Err(part) => {
                return refuse(
                    "lesson",
                    format!("`{span}` did not run like this in the session: {part}"),
                    "write it as it ran here, with `<…>` for what varies",
                );
            }
        }
    }
    // An error that was seen bears out that nothing works, and so do words of a result.
    if best < Occurrence::Worked && applies.errors.is_empty() && !is_quoted {
        return refuse(
            "commands",
            "no call that worked in this session bears it out",
            "name in `commands` the beginning of the call that showed it",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::words::tests::{args, person};
    use super::*;

    fn session() -> SessionCalls {
        let call = |command: &str, output: &str, failed| {
            SessionCall::new(Some("Bash"), command, output, failed)
        };
        SessionCalls {
            calls: vec![
                call(
                    "tools/build web",
                    "build: refusing: output would not be reproducible",
                    true,
                ),
                call("BUILD_EPOCH=0 tools/build web", "ok 3f2a", false),
                call("git log --oneline | head -3", "SHOP-3: old", false),
            ],
            ..SessionCalls::default()
        }
    }

    #[test]
    fn answer_for_a_person_is_refused_and_what_others_see_stays_in_its_project() {
        for form in [
            "echo \"y\" | tools/build web",
            "yes | tools/build web",
            "printf 'y\\n' | tools/build web",
        ] {
            let lesson = format!("Build with `{form}`.");
            let refused = check(
                &args(&lesson, &["tools/build"], &[]),
                &session(),
                false,
                &person(),
            );
            assert!(
                refused.unwrap_err().reason.contains("for the person"),
                "{form}"
            );
        }
        let check = |lesson: &str, command: &str, expected: LessonScope| {
            let session = SessionCalls {
                calls: vec![SessionCall::new(Some("Bash"), command, "ok", false)],
                ..SessionCalls::default()
            };
            let given = LessonArgs {
                scope: LessonScope::Everywhere,
                ..args(lesson, &[command], &[])
            };
            let passed = check(&given, &session, false, &person()).unwrap();
            assert_eq!(passed.applies.scope, expected, "{lesson}");
        };
        check(
            "Ship with `hub --prod`.",
            "hub --prod",
            LessonScope::Project,
        );
        check(
            "Send with `git push origin <branch>`.",
            "git push",
            LessonScope::Project,
        );
        check("List with `hub list`.", "hub list", LessonScope::Everywhere);
        check(
            "Say it with `echo yes`.",
            "echo yes",
            LessonScope::Everywhere,
        );
    }

    #[test]
    fn errors_are_seen_or_expected() {
        let lesson = "Build with `BUILD_EPOCH=0 tools/build <bundle>`.";
        let given = args(
            lesson,
            &["tools/build"],
            &["would not be  reproducible", "open .cache/v2/index"],
        );
        let passed = check(&given, &session(), false, &person()).unwrap();
        assert_eq!(passed.applies.errors, ["would not be reproducible"]);
        assert_eq!(passed.applies.expected, ["open .cache/v2/index"]);
        let mixed = args(lesson, &[], &["E07", "would not be reproducible"]);
        let passed = check(&mixed, &session(), false, &person()).unwrap();
        assert_eq!(passed.applies.errors, ["would not be reproducible"]);
        assert_eq!(passed.left_out, ["`E07` would match too much"]);
        let quoted = args("Release on Friday.", &[], &["release not found"]);
        let passed = check(&quoted, &session(), true, &person()).unwrap();
        assert_eq!((passed.applies.errors.len(), passed.left_out.len()), (0, 1));
        let without = args(lesson, &[], &["open .cache/v2/index"]);
        let refused = check(&without, &session(), false, &person()).unwrap_err();
        assert_eq!(refused.field, "errors");
    }

    #[test]
    fn document_bears_out_what_no_call_did() {
        let mut session = session();
        session.calls.push(SessionCall::new(
            Some("Bash"),
            "cat CONTRIBUTING.md",
            "Stage files by name, never `git add -A`.",
            false,
        ));
        let check = |commands: &[&str], is_quoted: bool, expected: Option<&str>| {
            let given = args("Never run `git add -A`.", commands, &[]);
            let refused = check(&given, &session, is_quoted, &person()).err();
            assert_eq!(
                refused.map(|refusal| refusal.field),
                expected,
                "{commands:?}"
            );
        };
        check(&[], true, None);
        check(&["git commit"], true, Some("commands"));
        check(&[], false, Some("lesson"));
    }

    #[test]
    fn lesson_without_support_in_the_session_is_refused_with_its_field() {
        let check = |given: LessonArgs, field: &str, part: &str| {
            let refused = check(&given, &session(), false, &person()).unwrap_err();
            assert_eq!(refused.field, field, "{refused}");
            assert!(refused.to_string().contains(part), "{refused}");
        };
        check(
            args("Use it.", &["tools/build --fast"], &[]),
            "commands",
            "--fast",
        );
        check(
            args("Run `tools/build --fast`.", &["tools/build"], &[]),
            "lesson",
            "--fast",
        );
        check(args("Be careful.", &[], &[]), "commands", "bears it out");
        let lesson = args("Give `git commit` a ticket.", &["git commit"], &[]);
        check(lesson, "commands", "git commit");
    }

    #[test]
    fn the_forms_that_others_will_try_stand_beside_the_one_that_ran() {
        let given = args(
            "Build with `BUILD_EPOCH=0`.",
            &["npm run build", "tools/build"],
            &[],
        );
        let passed = check(&given, &session(), false, &person()).unwrap();
        assert_eq!(passed.applies.commands, ["npm run build", "tools/build"]);
    }

    #[test]
    fn call_that_never_worked_may_be_told_by_its_error() {
        let given = args(
            "Nothing builds here without the cache.",
            &[],
            &["would not be reproducible"],
        );
        assert!(check(&given, &session(), false, &person()).is_ok());
        let given = args("Nothing builds here.", &["tools/build"], &[]);
        assert!(check(&given, &session(), false, &person()).is_ok());
    }

    #[test]
    fn lesson_for_everybody_needs_a_moment() {
        let check = |scope, commands: &[&str], expected: Option<&str>| {
            let given = LessonArgs {
                scope,
                ..args("Set an epoch.", commands, &[])
            };
            let refused = check(&given, &session(), true, &person()).err();
            assert_eq!(refused.map(|refusal| refusal.field), expected);
        };
        check(LessonScope::Everywhere, &[], Some("scope"));
        check(LessonScope::Everywhere, &["git log"], None);
        check(LessonScope::Project, &[], None);
    }
}
