//! Is a lesson worth telling, as far as the calls of its session show?
//!
//! What holds in one project is worth a word to whoever comes next. What holds everywhere is told to agents
//! who know the tool: it needs a moment at which it is told, and it is not worth one beside a message that
//! the session itself needed no second look at.

use crate::lessons::recovery::call::is_shell;
use crate::lessons::recovery::shell::{basename, commands};
use crate::lessons::recovery::shell_command::AROUND;
use crate::model::{Applies, LessonScope};

use super::checks::Refusal;
use super::session_calls::SessionCall;

/// Number of calls behind an error in which another try still is about it.
const SOON: usize = 4;

/// Refuses a lesson for everybody without a moment, and one that only its error leads to where the session met
/// the error once and mended it in one go.
pub(super) fn check_worth(applies: &Applies, session: &[SessionCall]) -> Result<(), Refusal> {
    if applies.scope == LessonScope::Project || !applies.commands.is_empty() {
        return Ok(());
    }
    let refuse = |field, reason: &str, passes: &str| {
        Err(Refusal {
            field,
            reason: reason.to_owned(),
            passes: passes.to_owned(),
        })
    };
    if applies.errors.is_empty() {
        return refuse(
            "scope",
            "nothing says when to tell it in other projects",
            "name `commands` or `errors`, or say `project`",
        );
    }
    if !cost_more_than_one_call(&applies.errors, session) {
        return refuse(
            "errors",
            "the session met this error once and mended it in one go, as others will",
            "name in `commands` the beginning of the call that goes wrong, or leave it out",
        );
    }
    Ok(())
}

/// Returns `true` if the session met the error at two places, or failed again at the first try behind it. Calls
/// that run side by side count as one place.
fn cost_more_than_one_call(errors: &[String], session: &[SessionCall]) -> bool {
    let has = |call: &SessionCall| {
        let output = plain(&call.output);
        errors.iter().any(|phrase| output.contains(&plain(phrase)))
    };
    let met: Vec<bool> = session.iter().map(has).collect();
    let ends: Vec<usize> = (0..met.len())
        .filter(|at| met[*at] && !met.get(at + 1).is_some_and(|next| *next))
        .collect();
    let failed_again = |end: &usize| {
        let program = program(&session[*end]);
        let after = session.iter().skip(end + 1).take(SOON);
        after
            .filter(|call| call.failed)
            .any(|call| self::program(call) == program)
    };
    ends.len() > 1 || ends.iter().any(failed_again)
}

/// First program of a shell call that does something, or the tool.
fn program(call: &SessionCall) -> String {
    let tool = || call.tool.clone();
    let Some(command) = call
        .command()
        .filter(|_| call.tool.is_empty() || is_shell(&call.tool))
    else {
        return tool();
    };
    let programs = commands(command).into_iter().filter_map(|one| {
        let first = one.words.first()?;
        Some(basename(first).to_owned())
    });
    let mut programs = programs.filter(|name| !AROUND.contains(&name.as_str()));
    programs.next().unwrap_or_else(tool)
}

fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        calls: &[(&str, bool)],
        scope: LessonScope,
        commands: &[&str],
        expected: Option<&str>,
    ) {
        let session: Vec<SessionCall> = calls
            .iter()
            .map(|(command, failed)| {
                let output = if *failed {
                    "zsh: no matches found: --include=*.c"
                } else {
                    "ok"
                };
                SessionCall::new(Some("Bash"), command, output, *failed)
            })
            .collect();
        let applies = Applies {
            errors: vec!["no matches found: --include=".to_owned()],
            commands: commands.iter().map(|text| (*text).to_owned()).collect(),
            scope,
            ..Applies::default()
        };
        let refused = check_worth(&applies, &session)
            .err()
            .map(|refusal| refusal.field);
        assert_eq!(refused, expected, "{calls:?}");
    }

    #[test]
    fn an_error_that_was_mended_in_one_go_is_no_lesson_for_everybody() {
        use LessonScope::{Everywhere, Project};
        let wrong = ("grep -r x --include=*.c", true);
        let right = ("grep -r x --include='*.c'", false);
        let other = ("cargo test", false);
        check(&[wrong, right], Everywhere, &[], Some("errors"));
        check(&[wrong, right], Project, &[], None);
        check(
            &[wrong, right],
            Everywhere,
            &["grep -r x --include=*.c"],
            None,
        );
        // Side by side.
        check(&[wrong, wrong, right], Everywhere, &[], Some("errors"));
        check(&[wrong, right, wrong, right], Everywhere, &[], None);
        check(
            &[wrong, other, ("cd a && grep -r y *", true)],
            Everywhere,
            &[],
            None,
        );
    }

    #[test]
    fn what_holds_everywhere_has_a_moment() {
        let applies = Applies {
            scope: LessonScope::Everywhere,
            ..Applies::default()
        };
        let refused = check_worth(&applies, &[]).unwrap_err();
        assert_eq!(refused.field, "scope");
        assert!(check_worth(&Applies::default(), &[]).is_ok());
    }
}
