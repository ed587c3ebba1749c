//! A lesson as an agent or a model writes it.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::model::LessonScope;

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
