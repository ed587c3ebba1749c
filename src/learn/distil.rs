//! Distils an episode into a fix (the calls) and a procedure (a description).
//!
//! It uses no model: every word comes from the trace or describes it. It does not guess what an
//! error means; the root cause is the error message and the difference to the working call.

use serde::Serialize;

use crate::guard::Clean;
use crate::model::Step;

use super::asked;
use super::fix::{self, NoFix, NoHint};
use super::goal::Goal;
pub use super::procedure_words::ProcedureData;
use super::procedure_words::{EpisodeTexts, plural};
use super::recover::Episode;

/// Maximum length of code in a fix, in bytes.
const MAX_CODE: usize = 3_000;
/// Maximum length of output in a fix, in bytes.
const MAX_OUTPUT: usize = 600;
/// Maximum number of changes in a fix.
const MAX_CHANGES: usize = 8;

/// Status of a procedure.
pub const LEARNED: &str = "procedure_learned";
/// Procedure name for a session without a pattern.
pub const NOTHING: &str = "No_Failure_Detected";

/// Fix and procedure of an episode, before they are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lesson {
    /// Failure and its fix.
    pub recovery: Recovery,
    /// Procedure.
    pub procedure: ProcedureData,
}

/// Failure and what overcame it, redacted and cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// Error key.
    pub error_key: String,
    /// Error line with its names and numbers.
    pub error_line: String,
    /// Names in the error that the fix depends on.
    pub subject: Vec<String>,
    /// The fix is knowledge of one project.
    pub is_local: bool,
    /// Tool or program.
    pub tool: String,
    /// Failing call, working call and output.
    pub fix: FixText,
}

/// Episode that is no advice for others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoLesson {
    /// Reason.
    pub reason: NoHint,
    /// Recovery to keep for people; `None` if nothing was fixed.
    pub recovery: Option<Box<Recovery>>,
}

impl From<NoHint> for NoLesson {
    fn from(reason: NoHint) -> Self {
        Self {
            reason,
            recovery: None,
        }
    }
}

/// Text of a fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FixText {
    /// Failing call.
    pub failing_code: String,
    /// Working call, preceded by the changes before it.
    pub working_code: String,
    /// Output of the working call, cut.
    pub success_output: String,
}

/// Distils an episode. `steps` must include those from the failure to the success. `asked` is the
/// message of the user that the failing call served, if known. Every stored text goes through
/// `keep` before it is cut.
///
/// # Errors
///
/// The reason why the episode is no advice for others, with the recovery if there was one.
pub fn distil(
    episode: &Episode,
    steps: &[Step],
    asked: Option<&str>,
    keep: &dyn Fn(&str) -> Clean<'static>,
) -> Result<Lesson, NoLesson> {
    let at = |index: usize| {
        let found = steps.binary_search_by_key(&index, |step| step.index);
        found.ok().map(|at| &steps[at]).ok_or(NoHint::NoError)
    };
    let failed = at(episode.fail_step)?;
    let success = at(episode.success_step)?;
    if episode.error_key.is_empty() {
        return Err(NoHint::NoError.into());
    }
    let (found, reason) = match fix::find(episode, steps, &code) {
        Ok(found) => (found, None),
        Err(NoFix { reason, fix }) => {
            let found = fix.ok_or(reason)?;
            (found, Some(reason))
        }
    };
    let goal = keep(&episode.goal).into_string();
    let error = keep(&fix::people::without_people(&episode.error_line)).into_string();
    let error_key = keep(&episode.error_key).into_string();
    let failing = keep(&found.failing);
    let call = keep(&found.working);
    let changes: Vec<(bool, Clean<'_>)> = found
        .changes
        .iter()
        .filter_map(|c| at(*c).ok())
        .map(|step| (is_command(step), keep(&code(step))))
        .collect();
    let (shown, left_out) = changes.split_at(changes.len().min(MAX_CHANGES));
    let printed = if prints_content(success) {
        ""
    } else {
        success.output.trim()
    };
    let recovery = Recovery {
        error_key: error_key.clone(),
        error_line: error.clone(),
        subject: found.subject,
        is_local: found.is_local,
        tool: goal.clone(),
        fix: FixText {
            failing_code: failing.cut(MAX_CODE),
            working_code: working(shown, left_out.len(), &call),
            success_output: keep(printed).cut(MAX_OUTPUT),
        },
    };
    if let Some(reason) = reason {
        return Err(NoLesson {
            reason,
            recovery: Some(Box::new(recovery)),
        });
    }
    let told = EpisodeTexts {
        goal: &goal,
        error: &error,
        error_key: &error_key,
        asked: asked.and_then(|text| asked::line(text, keep)),
        changes: shown,
        is_shell: is_command(failed) && is_command(success),
        failing: &failing,
        call: &call,
    };
    Ok(Lesson {
        procedure: told.procedure(episode, failed),
        recovery,
    })
}

/// Returns `true` if a call prints what is in a file, which has nothing to do with the fix.
fn prints_content(step: &Step) -> bool {
    Goal::of(step).is_search()
}

/// Call as a person would write it, without the names of home directories and the addresses of
/// people.
pub(crate) fn code(step: &Step) -> String {
    fix::people::without_people(&call(step))
}

fn call(step: &Step) -> String {
    if let Some(command) = step
        .command()
        .filter(|_| step.argument(&["file_path", "path"]).is_none())
    {
        return command.trim().to_owned();
    }
    if let Some(text) = step.input.as_str() {
        return format!("{}\n{}", step.tool, text.trim());
    }
    let path = step.argument(&["file_path", "path", "filename", "notebook_path"]);
    let old = step.argument(&["old_string", "old_str"]);
    let new = step.argument(&[
        "new_string", "new_str", "content", "file_text", "new_source",
    ]);
    if let (Some(path), true) = (path, old.is_some() || new.is_some()) {
        let file = step.cwd.as_deref().and_then(|cwd| path.strip_prefix(cwd));
        let file = file.map_or(path, |file| file.trim_start_matches('/'));
        let mut text = format!("{} {file}", step.tool);
        let (old, new) = changed(old.unwrap_or_default(), new.unwrap_or_default());
        for (mark, lines) in [("-", old), ("+", new)] {
            for line in lines.iter().take(40) {
                text.extend(["\n", mark, " ", line]);
            }
        }
        return text;
    }
    format!("{} {}", step.tool, step.input)
}

/// Changed lines of two texts: common first and last lines are removed.
fn changed<'a>(old: &'a str, new: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    let (mut old, mut new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    while old.last().is_some_and(|line| new.last() == Some(line)) {
        old.pop();
        new.pop();
    }
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    (old.split_off(same), new.split_off(same))
}

fn is_command(step: &Step) -> bool {
    step.command().is_some() && step.argument(&["file_path", "path"]).is_none()
}

fn working(changes: &[(bool, Clean<'_>)], left_out: usize, call: &Clean<'_>) -> String {
    let mut text = String::new();
    let room = MAX_CODE * 2 / 3 / changes.len().max(1);
    for (_, change) in changes {
        text.push_str(&change.cut(room));
        text.push('\n');
    }
    if left_out > 0 {
        text.extend(["… and ", &plural(left_out, "more change"), "\n"]);
    }
    text.push_str(&call.cut(MAX_CODE / 3));
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::learn::recover::analyse;

    fn step(index: usize, command: &str, output: &str, failed: bool) -> Step {
        Step {
            index,
            tool: "Bash".to_owned(),
            input: json!({ "command": command }),
            output: output.to_owned(),
            is_error: Some(failed),
            answered: true,
            ..Step::default()
        }
    }

    fn keep(text: &str) -> Clean<'static> {
        Clean::of_owned(text.to_owned())
    }

    fn lesson(steps: &[Step]) -> Lesson {
        let found = analyse(steps, &[]);
        assert_eq!(found.episodes.len(), 1, "{found:?}");
        distil(&found.episodes[0], steps, None, &keep).unwrap()
    }

    #[test]
    fn another_call_is_the_fix() {
        let steps = [
            step(
                0,
                "cargo run --fast",
                "error: unexpected argument '--fast' found",
                true,
            ),
            step(1, "cargo run -- --fast", "done", false),
        ];
        let lesson = lesson(&steps);
        assert_eq!(
            lesson.recovery.error_key,
            "error: unexpected argument <name> found"
        );
        assert_eq!(lesson.recovery.fix.working_code, "cargo run -- --fast");
        assert_eq!(lesson.recovery.fix.success_output, "done");
        let cause = &lesson.procedure.identified_root_cause;
        assert_eq!(
            cause,
            "The call lacked `--`. The error said: error: unexpected argument '--fast' found."
        );
        assert_eq!(
            lesson.procedure.learned_procedure_steps,
            ["Add `--`.", "Run `cargo run -- --fast`."]
        );
    }

    #[test]
    fn changes_before_the_same_call_are_the_fix() {
        let edit = Step {
            tool: "Edit".to_owned(),
            input: json!({ "file_path": "Makefile", "old_string": "x", "new_string": "x\nall: y" }),
            ..step(1, "", "ok", false)
        };
        let steps = [
            step(0, "make", "Makefile:1: error: no rule 'all'", true),
            edit,
            step(2, "make", "", false),
        ];
        let lesson = lesson(&steps);
        assert_eq!(
            lesson.recovery.fix.working_code,
            "Edit Makefile\n+ all: y\nmake"
        );
        assert_eq!(
            lesson.procedure.learned_procedure_steps,
            ["Edit Makefile\n+ all: y", "Run `make` again."]
        );
        assert!(
            lesson
                .procedure
                .identified_root_cause
                .contains("changed first")
        );
    }

    #[test]
    fn every_text_goes_through_one_door() {
        let key = format!("gh{}{}", "p_", "a1B2c3D4e5".repeat(4));
        let steps = [
            step(
                0,
                &format!("x --key {key}"),
                &format!("error: bad {key}"),
                true,
            ),
            step(1, &format!("x --key {key} --region eu"), &key, false),
        ];
        let found = analyse(&steps, &[]);
        let lesson = distil(&found.episodes[0], &steps, None, &keep).unwrap();
        assert!(!format!("{lesson:?}").contains(&key[8..16]), "{lesson:?}");
    }

    #[test]
    fn a_key_that_a_cut_goes_through_leaves_nothing() {
        let lines: Vec<String> = (0..30)
            .map(|i| format!("Zq9xK7mP2vL5nR8tW4yB6cD1fG3hJ0sQ{i:02}"))
            .collect();
        let block = |filler: usize| {
            format!(
                "{0}\ncat > k <<'E'\n-----BEGIN RSA PRIV{2}\n{1}\n-----END RSA PRIV{2}\nE",
                "x".repeat(filler),
                lines.join("\n"),
                "ATE KEY-----",
            )
        };
        for filler in [0, 100, 340, MAX_CODE / 3 - 60, MAX_CODE - 200] {
            let code = block(filler);
            let steps = [
                step(0, &code, "error: no such host", true),
                step(1, &format!("{code}\nchmod 600 k"), &code, false),
            ];
            let found = analyse(&steps, &[]);
            let Some(episode) = found.episodes.first() else {
                panic!("{found:?}");
            };
            let lesson = format!("{:?}", distil(episode, &steps, None, &keep).unwrap());
            assert!(!lesson.contains("Zq9xK7mP"), "{filler}: {lesson}");
        }
    }
}
