//! The question to an agent about what its session found out, and the form of an answer.
//!
//! People can replace its words by a file. The calls are shortened and redacted; they are the
//! agent's own, of this session. An agent or a model answers with lessons.

use memctl_redact::beginning;
use schemars::JsonSchema;
use serde::Deserialize;

use super::found_out::FoundOut;
use super::session_calls::SessionCalls;
use crate::lessons::failure::error_line::error_line;
use crate::model::LessonScope;
use crate::model::text::one_line;

/// Default words; users can replace them.
pub const PROMPT: &str = include_str!("prompts/ask_lesson.md");
/// Maximum number of calls that are named.
const MOST_CALLS: usize = 5;
/// Maximum length of a call and of an error, in characters.
const LONGEST_CALL: usize = 110;
const LONGEST_ERROR: usize = 80;

/// Way in which an agent can answer without a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerBy {
    /// The tool of the MCP server.
    Tool,
    /// The command line.
    Command,
    /// Lines of its last message, which the next event carries.
    Lines,
}

/// Returns the question. `words` are [`PROMPT`] or the user's own.
pub(crate) fn question(
    words: &str,
    session: &SessionCalls,
    found: &[FoundOut],
    by: AnswerBy,
) -> String {
    let calls: Vec<String> = found
        .iter()
        .rev()
        .take(MOST_CALLS)
        .rev()
        .map(|one| line(session, one))
        .collect();
    let how = how(by, &session.head.session);
    words
        .replace("{calls}", &calls.join("\n"))
        .replace("{how}", &how)
        .replace("{session}", &session.head.session)
        .trim_end()
        .to_owned()
}

const EXAMPLE: &str =
    r#"{"lesson": "…", "commands": ["…"], "errors": ["…"], "not": [], "scope": "project"}"#;

fn how(by: AnswerBy, session: &str) -> String {
    match by {
        AnswerBy::Tool => {
            format!("Record each with the tool `lesson` of memctl, with `session` \"{session}\".")
        }
        AnswerBy::Command => {
            format!("Record each with `memctl lesson add --session {session} '{EXAMPLE}'`.")
        }
        AnswerBy::Lines => format!(
            "Answer with nothing but one line for each, which is recorded: LESSON {EXAMPLE}"
        ),
    }
}

/// One line about a call: what failed, and what worked.
fn line(session: &SessionCalls, found: &FoundOut) -> String {
    let call = |at: usize| {
        let call = session.calls.get(at).map_or("", |call| &call.call);
        beginning(&one_line(call), LONGEST_CALL).into_owned()
    };
    let worked = call(found.worked);
    let Some(failed) = found.failed else {
        return format!("- after {} calls of looking around: {worked}", found.effort);
    };
    let output = session.calls.get(failed).map_or("", |call| &call.output);
    let error = error_line(output).unwrap_or_default();
    let error = beginning(&error, LONGEST_ERROR);
    format!("- {} ({error}), then: {worked}", call(failed))
}

/// Lesson to store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LessonArgs {
    /// One imperative line, at most 240 characters, with the exact command in backticks
    pub lesson: String,
    /// Phrases of the error it is for
    pub errors: Vec<String>,
    /// Beginnings of the commands it is for
    pub commands: Vec<String>,
    /// Phrases that rule it out
    pub not: Vec<String>,
    /// Where it is true
    #[schemars(with = "String", extend("enum" = ["project", "everywhere"]))]
    pub scope: LessonScope,
    /// Files it was read from
    pub files: Vec<String>,
    /// Id of one that says the same
    pub same: Option<String>,
    /// Id of one that is outdated
    pub replaces: Option<String>,
    /// Session, as the question named it
    pub session: Option<String>,
}

/// Mark of a line that is a lesson, in the last message of an agent.
const MARK: &str = "LESSON ";

/// Returns `true` if a message may carry lessons.
pub fn carries_lessons(message: &str) -> bool {
    message.contains(MARK)
}

/// Returns the lessons in a message: each a line `LESSON {…}`. An unreadable one is an error with its
/// reason.
pub(crate) fn in_message(message: &str) -> Vec<Result<LessonArgs, String>> {
    let lines = message.lines().filter_map(|line| {
        let line = line.trim().trim_start_matches(['-', '*', '`', ' ']);
        let json = line.strip_prefix(MARK)?.trim().trim_end_matches('`');
        json.starts_with('{').then_some(json)
    });
    let read = lines.map(|json| serde_json::from_str(json).map_err(|error| error.to_string()));
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::super::session_calls::{SessionCall, SessionHead};
    use super::*;

    #[test]
    fn the_question_names_the_calls_and_the_way_to_answer() {
        let session = SessionCalls {
            head: SessionHead {
                session: "claude-code/s-1".to_owned(),
                project: "shop".to_owned(),
            },
            calls: vec![
                SessionCall::new(Some("Bash"), "make  db", "make: *** No rule", true),
                SessionCall::new(Some("Bash"), "make db-up", "up", false),
            ],
        };
        let found = FoundOut {
            failed: Some(0),
            since: 0,
            worked: 1,
            effort: 1,
        };
        for (by, part) in [
            (AnswerBy::Tool, "tool `lesson`"),
            (
                AnswerBy::Command,
                "memctl lesson add --session claude-code/s-1 '{",
            ),
            (AnswerBy::Lines, "LESSON {"),
        ] {
            let text = question(PROMPT, &session, &[found], by);
            assert!(
                text.contains("- make db (make: *** No rule), then: make db-up"),
                "{text}"
            );
            assert!(text.contains(part), "{text}");
            assert!(
                !text.contains("{calls}") && !text.contains("{how}"),
                "{text}"
            );
            assert!(
                crate::skills::prompt::tokens(&text) < 330,
                "{}",
                crate::skills::prompt::tokens(&text)
            );
        }
    }
}

#[cfg(test)]
mod tests_of_lesson_args {
    use super::*;

    #[test]
    fn lessons_stand_on_lines_of_a_message() {
        let message = "Done.\n\nLESSON {\"lesson\": \"Use a.\", \"commands\": [\"a\"]}\n- `LESSON {\"lesson\": 3}`\nLESSON learned\n";
        let found = in_message(message);
        assert_eq!(found.len(), 2);
        let first = found[0].as_ref().unwrap();
        assert_eq!(
            (first.lesson.as_str(), first.scope),
            ("Use a.", LessonScope::Project)
        );
        assert!(found[1].as_ref().unwrap_err().contains("invalid type"));
    }
}
