//! Lesson or pattern that was shown in a session, and its outcome.

use serde::{Deserialize, Serialize};

/// Lesson or pattern that was shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(crate) struct Shown {
    /// Id of the procedure.
    pub id: String,
    /// True if its lesson was told, and not its pattern.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_lesson: bool,
    /// Commands that the lesson advises.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<String>,
    /// Error key of the failure.
    pub error_key: String,
    /// Failing code, to recognise the next step.
    pub failing_code: String,
    /// Working code, to recognise the next step.
    pub working_code: String,
    /// Call that failed in this session.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// Outcome; `None` while it is open.
    pub outcome: Option<Outcome>,
    /// True if the evidence includes this use.
    pub counted: bool,
    /// True if it was shown before the call, not at its failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub before: bool,
}

/// Outcome of a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The hinted way worked.
    Helped,
    /// The error occurred again.
    Harmed,
    /// The call worked, though it had failed before: the hint was not needed.
    Needless,
}
