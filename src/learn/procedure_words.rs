//! The eight fields of a procedure, in words of the trace.
//!
//! Every word comes from the calls, the error and the user, or says how they differ
//! (`fix/change`). Nothing guesses what an error means: the root cause is what the failing call
//! lacked, and the error message.

use serde::Serialize;

use crate::guard::Clean;
use crate::model::Step;

use super::fix::change::Change;
use super::recover::Episode;

/// Maximum length of a step, in bytes.
const MAX_STEP: usize = 400;

/// Eight fields of a procedural memory.
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

/// Redacted texts of an episode.
#[derive(Debug)]
pub(super) struct EpisodeTexts<'a> {
    /// Name of the goal: `cargo test`.
    pub(super) goal: &'a str,
    pub(super) error: &'a str,
    pub(super) error_key: &'a str,
    /// Request of the user, on one line.
    pub(super) asked: Option<String>,
    /// Steps before the working call that made the difference; true for commands.
    pub(super) changes: &'a [(bool, Clean<'a>)],
    /// The calls are commands.
    pub(super) is_shell: bool,
    pub(super) failing: &'a Clean<'a>,
    pub(super) call: &'a Clean<'a>,
}

impl EpisodeTexts<'_> {
    /// Returns the fields of the procedure.
    pub(super) fn procedure(&self, episode: &Episode, failed: &Step) -> ProcedureData {
        let (goal, error_key) = (self.goal, self.error_key);
        let change = Change::between(self.failing.as_str(), self.call.as_str(), self.is_shell);
        let attempts = episode.also_fail_steps.len() + 1;
        let intervention = match self.changes.len() {
            0 => format!("`{}` worked instead", first_line(self.call)),
            count => format!(
                "{}, then `{}` worked",
                plural(count, "change"),
                first_line(self.call)
            ),
        };
        let mut cues = vec![error_key.to_owned(), goal.to_owned()];
        cues.extend(failed.exit_code.map(|code| format!("exit code {code}")));
        let asked = self.asked.as_deref();
        let task = asked.map_or(String::new(), |asked| format!(". The task was: {asked}"));
        let wish = asked.map_or(String::new(), |asked| {
            format!(" The user had asked: {asked}")
        });
        ProcedureData {
            procedure_name: format!("Get `{goal}` past: {error_key}"),
            semantic_description: format!(
                "How to make `{goal}` work when it fails with: {error_key}{task}"
            ),
            initial_failure_summary: format!(
                "`{}` failed: {}",
                first_line(self.failing),
                self.error
            ),
            identified_root_cause: self.root_cause(&change),
            successful_intervention: intervention,
            learned_procedure_steps: self.steps(&change),
            critical_contextual_cues: cues,
            example_scenario_abstract: format!(
                "In one session `{goal}` failed {} before it worked {} later.{wish}",
                if attempts == 1 {
                    "once".to_owned()
                } else {
                    format!("{attempts} times")
                },
                plural(episode.success_step - episode.fail_step, "step"),
            ),
        }
    }

    /// Steps: what ran or was changed first, the change of the call, and the call.
    fn steps(&self, change: &Change) -> Vec<String> {
        let run = |call: &Clean<'_>, is_command: bool, when: &str| {
            let text = call.as_str().trim();
            if is_command && !text.contains('\n') {
                format!("Run `{}`{when}.", call.cut(MAX_STEP).trim())
            } else {
                call.cut(MAX_STEP)
            }
        };
        let first = self.changes.iter();
        let mut steps: Vec<String> = first.map(|(is, code)| run(code, *is, " first")).collect();
        let before = change.first.iter();
        steps.extend(before.map(|command| clean(format!("Run `{command}` first."))));
        steps.extend(change.edit.as_ref().map(|edit| clean(edit.step())));
        let is_same = self.failing.as_str() == self.call.as_str();
        let when = if is_same { " again" } else { "" };
        steps.push(run(self.call, self.is_shell, when));
        steps
    }

    /// Missing part of the failing call, and the error message.
    fn root_cause(&self, change: &Change) -> String {
        let lack = if let Some(edit) = &change.edit {
            clean(edit.cause())
        } else if let Some(command) = change.first.first() {
            clean(format!("The call needed `{command}` before it."))
        } else if self.failing.as_str() == self.call.as_str() {
            match self.changes.len() {
                0 => "The same call worked later, without a change in between.".to_owned(),
                _ => "The call was right: what it works on had to be changed first.".to_owned(),
            }
        } else {
            different_words(self.failing.as_str(), self.call.as_str())
        };
        format!(
            "{lack} The error said: {}.",
            self.error.trim_end_matches('.')
        )
    }
}

/// Redacts words again: joined, they can look like another secret.
fn clean(text: String) -> String {
    Clean::of_owned(text).into_string()
}

/// Statement about words that only one of two calls has.
fn different_words(failing: &str, working: &str) -> String {
    let list = |words: &[String]| Clean::of_owned(words.join(" ")).cut(200);
    let (gone, new) = difference(failing, working);
    let (old, now) = (list(&gone), list(&new));
    match (gone.is_empty(), new.is_empty()) {
        (false, false) => format!("The call had `{old}`, and `{now}` works."),
        (true, false) => format!("The call lacked `{now}`."),
        (false, true) => format!("The call works without `{old}`."),
        (true, true) => "The call had its words in another order.".to_owned(),
    }
}

/// Words that occur only in `a`, and words that occur only in `b`.
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

fn first_line(text: &Clean<'_>) -> String {
    let line = text.as_str().lines().next().unwrap_or_default();
    Clean::of(line.trim()).cut(160)
}

pub(super) fn plural(count: usize, what: &str) -> String {
    if count == 1 {
        format!("one {what}")
    } else {
        format!("{count} {what}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::distil::distil;
    use crate::learn::recover::analyse;
    use serde_json::json;

    fn procedure(calls: [(&str, &str); 2], asked: Option<&str>) -> ProcedureData {
        let step = |index: usize, (command, output): (&str, &str)| Step {
            index,
            tool: "Bash".to_owned(),
            input: json!({ "command": command }),
            output: output.to_owned(),
            is_error: Some(index == 0),
            answered: true,
            ..Step::default()
        };
        let steps = [step(0, calls[0]), step(1, calls[1])];
        let found = analyse(&steps, &[]);
        let keep = |text: &str| Clean::of_owned(text.to_owned());
        let lesson = distil(&found.episodes[0], &steps, asked, &keep).unwrap();
        lesson.procedure
    }

    #[test]
    fn fields_say_the_goal_the_lack_and_the_change() {
        let calls = [
            (
                "pip install requests",
                "error: externally-managed-environment",
            ),
            ("pip install --user requests", "Successfully installed"),
        ];
        let told = procedure(calls, Some("Fetch the page for anna@acme.example"));
        assert_eq!(
            told.identified_root_cause,
            "The call lacked `--user`. The error said: error: externally-managed-environment."
        );
        assert_eq!(told.learned_procedure_steps[0], "Add `--user`.");
        assert!(
            told.semantic_description
                .ends_with(". The task was: Fetch the page for <email>")
        );
        assert!(
            told.example_scenario_abstract
                .ends_with("asked: Fetch the page for <email>")
        );
        let told = procedure(calls, None);
        assert!(!told.semantic_description.contains("task"));
        assert!(told.example_scenario_abstract.ends_with("one step later."));
    }
}
