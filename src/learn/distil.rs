//! From an episode to what is remembered of it: the fix, which is what was typed, and the
//! procedure, which says it in words.
//!
//! No model: every word is the trace's own or says what the trace shows. What an error means is not
//! guessed; the root cause is what the error said and what was different when it worked.

use serde::Serialize;

use crate::model::Step;

use super::recover::Episode;

/// The longest code of a fix, in bytes.
const MAX_CODE: usize = 3_000;
/// The longest output of a fix, in bytes.
const MAX_OUTPUT: usize = 600;
/// How many changes a fix tells.
const MAX_CHANGES: usize = 8;
/// The longest text of one step in a procedure, in bytes.
const MAX_STEP: usize = 400;

/// What status a procedure has.
pub const LEARNED: &str = "procedure_learned";
/// What a session without a pattern is called.
pub const NOTHING: &str = "No_Failure_Detected";

/// What is remembered of an episode, not stored yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lesson {
    /// The key of the error.
    pub error_key: String,
    /// What was used.
    pub tool: String,
    /// What failed, what worked, and what that printed.
    pub fix: FixText,
    /// The how-to.
    pub procedure: ProcedureData,
}

/// The concrete fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FixText {
    /// What failed.
    pub failing_code: String,
    /// What worked: the changes before it, where there were any, and the call itself.
    pub working_code: String,
    /// What it printed, cut.
    pub success_output: String,
}

/// The eight fields of a procedural memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the definition: they are the source document's"
)]
pub struct ProcedureData {
    pub procedure_name: String,
    pub semantic_description: String,
    pub initial_failure_summary: String,
    pub identified_root_cause: String,
    pub successful_intervention: String,
    pub learned_procedure_steps: Vec<String>,
    pub critical_contextual_cues: Vec<String>,
    pub example_scenario_abstract: String,
}

/// Distils an episode. `steps` are those of the session, at least from the failure to the success;
/// every text that is to be stored goes through `keep`. `None` where the steps are not there, or the
/// failure said nothing by which it could be found again.
pub fn distil(episode: &Episode, steps: &[Step], keep: &dyn Fn(&str) -> String) -> Option<Lesson> {
    let at = |index: usize| {
        let found = steps.binary_search_by_key(&index, |step| step.index);
        found.ok().map(|at| &steps[at])
    };
    let failed = at(episode.fail_step)?;
    let success = at(episode.success_step)?;
    if episode.error_key.is_empty() {
        return None;
    }
    let goal = keep(&episode.goal);
    let error = keep(&episode.error_line);
    let error_key = keep(&episode.error_key);
    let failing_code = keep(&cut(&code(failed), MAX_CODE));
    let call = code(success);
    let changes: Vec<String> = episode
        .changes
        .iter()
        .filter_map(|c| at(*c))
        .map(code)
        .collect();
    let (shown, left_out) = changes.split_at(changes.len().min(MAX_CHANGES));
    let working_code = keep(&working(shown, left_out.len(), &call));
    let cause = keep(&root_cause(&error, &code(failed), &call, &changes));
    let mut procedure_steps = Vec::new();
    for change in shown {
        procedure_steps.push(keep(&cut(change, MAX_STEP)));
    }
    procedure_steps.push(keep(&cut(&call, MAX_STEP)));
    let attempts = episode.also_fail_steps.len() + 1;
    let intervention = match changes.len() {
        0 => format!("`{}` worked instead", first_line(&call)),
        count => format!(
            "{}, then `{}` worked",
            plural(count, "change"),
            first_line(&call)
        ),
    };
    let mut cues = vec![error_key.clone(), goal.clone()];
    cues.extend(failed.exit_code.map(|code| format!("exit code {code}")));
    let procedure = ProcedureData {
        procedure_name: format!("Get `{goal}` past: {error_key}"),
        semantic_description: format!("How to make `{goal}` work when it fails with: {error_key}"),
        initial_failure_summary: keep(&format!("`{}` failed: {error}", first_line(&failing_code))),
        identified_root_cause: cause,
        successful_intervention: keep(&intervention),
        learned_procedure_steps: procedure_steps,
        critical_contextual_cues: cues,
        example_scenario_abstract: format!(
            "In one session `{goal}` failed {} before it worked {} later.",
            if attempts == 1 {
                "once".to_owned()
            } else {
                format!("{attempts} times")
            },
            plural(episode.success_step - episode.fail_step, "step"),
        ),
    };
    Some(Lesson {
        error_key,
        tool: goal,
        fix: FixText {
            failing_code,
            working_code,
            success_output: keep(&cut(success.output.trim(), MAX_OUTPUT)),
        },
        procedure,
    })
}

/// A call as a person would write it.
fn code(step: &Step) -> String {
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
        let mut text = format!("{} {path}", step.tool);
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

/// The lines of two texts without those that both begin with and those that both end with.
fn changed<'a>(old: &'a str, new: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    let (mut old, mut new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    while old.last().is_some_and(|line| new.last() == Some(line)) {
        old.pop();
        new.pop();
    }
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    (old.split_off(same), new.split_off(same))
}

fn working(changes: &[String], left_out: usize, call: &str) -> String {
    let mut text = String::new();
    let room = MAX_CODE * 2 / 3 / changes.len().max(1);
    for change in changes {
        text.push_str(&cut(change, room));
        text.push('\n');
    }
    if left_out > 0 {
        text.extend(["… and ", &plural(left_out, "more change"), "\n"]);
    }
    text.push_str(&cut(call, MAX_CODE / 3));
    text
}

/// What the error said, and what was different when it worked.
fn root_cause(error: &str, failing: &str, working: &str, changes: &[String]) -> String {
    let (gone, new) = difference(failing, working);
    let mut text = format!("The error said: {error}.");
    if failing == working {
        text.push_str(match changes.len() {
            0 => " The same call worked later, without a change in between.",
            _ => " The call was right: what it works on had to be changed first.",
        });
        return text;
    }
    let list = |words: &[String]| cut(&words.join(" "), 200);
    let (gone_words, new_words) = (list(&gone), list(&new));
    let parts: &[&str] = match (gone.is_empty(), new.is_empty()) {
        (false, false) => &[
            " What worked has `", &new_words, "` instead of `", &gone_words, "`.",
        ],
        (true, false) => &[" What worked has `", &new_words, "` besides."],
        (false, true) => &[" What worked leaves out `", &gone_words, "`."],
        (true, true) => &[" What worked has the same words in another order."],
    };
    text.extend(parts.iter().copied());
    text
}

/// The words that only the one has, and those that only the other has.
fn difference(a: &str, b: &str) -> (Vec<String>, Vec<String>) {
    let only = |from: &str, without: &str| {
        let known: std::collections::HashSet<&str> = without.split_whitespace().collect();
        from.split_whitespace()
            .filter(|word| !known.contains(word))
            .take(30)
            .map(str::to_owned)
            .collect()
    };
    (only(a, b), only(b, a))
}

fn first_line(text: &str) -> String {
    cut(text.lines().next().unwrap_or_default().trim(), 160)
}

fn plural(count: usize, what: &str) -> String {
    if count == 1 {
        format!("one {what}")
    } else {
        format!("{count} {what}s")
    }
}

fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{} …", text[..end].trim_end())
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

    fn lesson(steps: &[Step]) -> Lesson {
        let found = analyse(steps, &[]);
        assert_eq!(found.episodes.len(), 1, "{found:?}");
        distil(&found.episodes[0], steps, &str::to_owned).unwrap()
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
        assert_eq!(lesson.error_key, "error: unexpected argument <name> found");
        assert_eq!(lesson.fix.working_code, "cargo run -- --fast");
        assert_eq!(lesson.fix.success_output, "done");
        let cause = &lesson.procedure.identified_root_cause;
        assert!(cause.ends_with("What worked has `--` besides."), "{cause}");
    }

    #[test]
    fn changes_before_the_same_call_are_the_fix() {
        let edit = Step {
            tool: "Edit".to_owned(),
            input: json!({ "file_path": "a.rs", "old_string": "x", "new_string": "y\nz" }),
            ..step(1, "", "ok", false)
        };
        let steps = [
            step(0, "make", "a.c:1:1: error: no x", true),
            edit,
            step(2, "make", "", false),
        ];
        let lesson = lesson(&steps);
        assert_eq!(lesson.fix.working_code, "Edit a.rs\n- x\n+ y\n+ z\nmake");
        assert_eq!(lesson.procedure.learned_procedure_steps.len(), 2);
        assert!(
            lesson
                .procedure
                .identified_root_cause
                .contains("changed first")
        );
    }

    #[test]
    fn every_text_goes_through_one_door() {
        let steps = [
            step(0, "x --key s3cret", "error: bad s3cret", true),
            step(1, "x --key s3cret -v", "s3cret", false),
        ];
        let found = analyse(&steps, &[]);
        let keep = |text: &str| text.replace("s3cret", "***");
        let lesson = distil(&found.episodes[0], &steps, &keep).unwrap();
        assert!(!format!("{lesson:?}").contains("s3cret"), "{lesson:?}");
    }
}
