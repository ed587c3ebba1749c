//! Lesson of a procedure: its one line, the conditions under which an agent is told it, and the
//! error pattern that it was learned from.
//!
//! Data only. Every text is a claim of a file: readers redact and screen it. A field of another type
//! does not hide the others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lenient;
use super::words::names;

/// Maximum length of a lesson, in characters.
pub const LONGEST_LESSON: usize = 240;

names! {
    /// Reach of a lesson.
    #[derive(Default, JsonSchema)]
    LessonScope {
        /// True in the projects of its origins.
        #[default]
        Project = "project",
        /// True wherever the same tool is used.
        Everywhere = "everywhere",
    }
}

/// Conditions under which a lesson is told.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Applies {
    /// Phrases of an error; one of them in the output of a failing call is enough.
    #[serde(deserialize_with = "lenient::texts", skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// Phrases of an error that nobody has seen here; one counts only together with one of `commands`.
    #[serde(deserialize_with = "lenient::texts", skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<String>,
    /// Beginnings of a command, without wrappers, assignments and `cd`.
    #[serde(deserialize_with = "lenient::texts", skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Phrases of a command or an output that rule the lesson out.
    #[serde(deserialize_with = "lenient::texts", skip_serializing_if = "Vec::is_empty")]
    pub not: Vec<String>,
    /// Reach; `project` if missing.
    #[serde(deserialize_with = "lenient::or_default")]
    pub scope: LessonScope,
}

impl Applies {
    /// Returns `true` if nothing but the project says when to tell the lesson.
    pub fn is_blank(&self) -> bool {
        self.errors.is_empty() && self.commands.is_empty()
    }
}

/// Error pattern: a failing call, its error, and the call that worked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pattern {
    /// The error line without its variable parts.
    #[serde(deserialize_with = "lenient::text")]
    pub error_key: String,
    /// The deciding line of the error, with its names and numbers.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "String::is_empty")]
    pub error_line: String,
    /// The failing code or command.
    #[serde(deserialize_with = "lenient::text")]
    pub failing_code: String,
    /// The code or command that worked.
    #[serde(deserialize_with = "lenient::text")]
    pub working_code: String,
    /// Output of the successful run.
    #[serde(deserialize_with = "lenient::text")]
    pub success_output: String,
    /// Tool that was used: `cargo test`, `Edit`.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "String::is_empty")]
    pub tool: String,
}

/// File that a lesson was read from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LessonFile {
    /// Path, relative to the project.
    #[serde(deserialize_with = "lenient::text")]
    pub path: String,
    /// Hash of the content when the lesson was stored; empty if the file could not be read.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "String::is_empty")]
    pub hash: String,
}
