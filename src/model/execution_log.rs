//! Log of an agent's actions: one line of `execution_logs.jsonl` each, with the fields of the
//! source document's `agent_execution_logs`.
//!
//! The file is append-only. A line with malformed fields is read with the fields that parse; a line
//! that is not an object is skipped.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::lenient;
use super::words::open_words;

/// One action of an agent.
#[derive(Debug, Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ExecutionLog {
    /// A random UUID.
    #[serde(deserialize_with = "lenient::text")]
    pub id: String,
    /// Id of the session: `SESS-…`, or an agent host's own id such as `claude-code/3f2a…`. `None`
    /// for an action outside any session.
    #[serde(deserialize_with = "lenient::optional_text")]
    pub session_id: Option<String>,
    /// Id of the user; `None` for the owner of the files.
    #[serde(deserialize_with = "lenient::or_default")]
    pub user_id: Option<String>,
    /// Step that the action belongs to.
    #[serde(deserialize_with = "lenient::text")]
    pub step_name: String,
    /// Tool or model that acted.
    #[serde(deserialize_with = "lenient::optional_text")]
    pub tool_name: Option<String>,
    /// Kind of the action.
    pub action_type: ActionType,
    /// Input; any JSON.
    pub input_data: Option<Box<RawValue>>,
    /// Output; any JSON.
    pub output_data: Option<Box<RawValue>>,
    /// The agent's reason, in its own words.
    #[serde(deserialize_with = "lenient::optional_text")]
    pub reasoning: Option<String>,
    /// Confidence of the agent, from 0 to 1.
    #[serde(deserialize_with = "lenient::number")]
    pub confidence_score: Option<f64>,
    /// Wall-clock time in milliseconds.
    #[serde(deserialize_with = "lenient::whole")]
    pub execution_time_ms: Option<u64>,
    /// Progress or result of the action.
    pub status: LogStatus,
    /// Error text of a failed action.
    #[serde(deserialize_with = "lenient::optional_text")]
    pub error_message: Option<String>,
    /// RFC 3339, UTC.
    #[serde(deserialize_with = "lenient::text")]
    pub created_at: String,
}

open_words! {
    /// Kind of an action: a word of the source document.
    #[expect(missing_docs, reason = "the names are the definition")]
    ActionType, "Kind of an action; other programs may use other words.", Self::Other(String::new()),
    {
        ToolCall = "tool_call",
        MemoryRead = "memory_read",
        MemoryWrite = "memory_write",
        Reasoning = "reasoning",
        UserInteraction = "user_interaction",
        Error = "error",
        Decision = "decision",
    }
}

open_words! {
    /// Progress or result of an action: a word of the source document.
    #[expect(missing_docs, reason = "the names are the definition")]
    LogStatus, "Status of an action; other programs may use other words.", Self::Other(String::new()),
    {
        Pending = "pending",
        Running = "running",
        Success = "success",
        Error = "error",
    }
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
