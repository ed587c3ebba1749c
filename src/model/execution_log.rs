//! What an agent did, one action a line: a line of `execution_logs.jsonl`, in the fields of the source
//! document's `agent_execution_logs`.
//!
//! Lines are only ever added. One that another program wrote with an odd value is read with what can be
//! read of it; a line that is no object is none.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::lenient;

/// One action.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ExecutionLog {
    /// A random UUID.
    #[serde(default, deserialize_with = "lenient::text")]
    pub id: String,
    /// The session that it belongs to: `SESS-…`, or what a host calls one of its own, as in
    /// `claude-code/3f2a…`. `None` for what happened outside of any.
    #[serde(default, deserialize_with = "lenient::optional_text")]
    pub session_id: Option<String>,
    /// Whose it is. `None` is the owner of the files.
    #[serde(default, deserialize_with = "lenient::name")]
    pub user_id: Option<String>,
    /// The step that the action was part of.
    #[serde(default, deserialize_with = "lenient::text")]
    pub step_name: String,
    /// The tool or model that acted.
    #[serde(default, deserialize_with = "lenient::optional_text")]
    pub tool_name: Option<String>,
    /// What kind of action it was.
    #[serde(default)]
    pub action_type: ActionType,
    /// What went in; any JSON.
    #[serde(default, deserialize_with = "lenient::present")]
    pub input_data: Option<Box<RawValue>>,
    /// What came out; any JSON.
    #[serde(default, deserialize_with = "lenient::present")]
    pub output_data: Option<Box<RawValue>>,
    /// Why the agent did it, in its words.
    #[serde(default, deserialize_with = "lenient::optional_text")]
    pub reasoning: Option<String>,
    /// How sure the agent was, from 0 to 1.
    #[serde(default, deserialize_with = "lenient::number")]
    pub confidence_score: Option<f64>,
    /// Wall-clock milliseconds.
    #[serde(default, deserialize_with = "lenient::whole")]
    pub execution_time_ms: Option<u64>,
    /// How it ended, or that it has not.
    #[serde(default)]
    pub status: LogStatus,
    /// What went wrong.
    #[serde(default, deserialize_with = "lenient::optional_text")]
    pub error_message: Option<String>,
    /// RFC 3339, UTC.
    #[serde(default, deserialize_with = "lenient::text")]
    pub created_at: String,
}

/// A closed set of words that is read leniently: a word of nobody's making is kept as it is.
macro_rules! words {
    ($(#[$about:meta])* $name:ident, $($variant:ident = $word:literal),+ $(,)?) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the names are the definition: they are the source document's")]
        pub enum $name {
            $($variant,)+
            /// Any other word.
            Other(String),
        }

        impl $name {
            /// The words of the source document, in its order.
            pub const NAMES: &'static [&'static str] = &[$($word),+];

            /// The word in the file.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Other(String::new())
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                lenient::text(deserializer).map(|word| Self::from(word.as_str()))
            }
        }
    };
}

words! {
    /// The kinds of actions.
    ActionType,
    ToolCall = "tool_call",
    MemoryRead = "memory_read",
    MemoryWrite = "memory_write",
    Reasoning = "reasoning",
    UserInteraction = "user_interaction",
    Error = "error",
    Decision = "decision",
}

words! {
    /// How an action ended, or that it has not.
    LogStatus,
    Pending = "pending",
    Running = "running",
    Success = "success",
    Error = "error",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_values_do_not_hide_the_line() {
        let line: ExecutionLog = serde_json::from_str(
            r#"{"id": 7, "action_type": "guess", "status": null, "confidence_score": "0.5",
                "execution_time_ms": -3, "input_data": null, "output_data": [1.0], "more": true}"#,
        )
        .unwrap();
        assert_eq!(line.id, "7");
        assert_eq!(line.action_type.as_str(), "guess");
        assert_eq!(line.status.as_str(), "");
        assert_eq!(line.confidence_score, Some(0.5));
        assert_eq!(
            (line.execution_time_ms, line.input_data.is_none()),
            (None, true)
        );
        assert_eq!(line.output_data.unwrap().get(), "[1.0]");
    }

    #[test]
    fn the_words_are_those_of_the_source_document() {
        for word in ActionType::NAMES {
            assert!(!matches!(ActionType::from(*word), ActionType::Other(_)));
            assert_eq!(ActionType::from(*word).as_str(), *word);
        }
        for word in LogStatus::NAMES {
            assert_eq!(LogStatus::from(*word).as_str(), *word);
        }
        assert_eq!((ActionType::NAMES.len(), LogStatus::NAMES.len()), (7, 4));
    }
}
