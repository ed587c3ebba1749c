//! Sessions of agents, entries of `sessions.json`, with the fields of the source document's
//! `agent_sessions` and the transitions of their states. And the log of an agent's actions, one line of
//! `execution_logs.jsonl` each, with the fields of the source document's `agent_execution_logs`.
//!
//! An agent host with its own sessions also assigns their names. Log lines written during such a
//! session carry the host's name, which `session_data.native_id` stores to link the two.
//!
//! The log is append-only. A line with malformed fields is read with the fields that parse; a line
//! that is not an object is skipped.

use std::borrow::Cow;

use memctl_files::json::{leaves, string_field};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::kind::{Document, Kind, Record, Trust};
use crate::model::words::{self, lenient, open_words};

/// Default number of steps of a session, from the source document.
pub const TOTAL_STEPS: u64 = 8;

/// One session of an agent.
#[derive(Debug, Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, remote = "Session")]
pub struct Session {
    /// `SESS-{YYYYMMDDHHMMSS}`, unique.
    pub session_id: String,
    /// Id of the user; `None` for the owner of the files.
    #[serde(deserialize_with = "words::or_default", skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// State: `initializing` … `completed`, `error` or `cancelled`.
    pub status: SessionState,
    /// The step in progress.
    #[serde(deserialize_with = "words::optional_text")]
    pub current_step: Option<String>,
    /// 0 to 100. Written as a whole number if it has no fraction; fractions are accepted.
    #[serde(serialize_with = "words::plain_number")]
    pub progress_percentage: Option<f64>,
    /// Total number of steps; `None` if unplanned.
    pub total_steps: Option<u64>,
    /// Completed steps in order of completion, without duplicates.
    pub completed_steps: Vec<String>,
    /// Reason for the state `error`.
    #[serde(deserialize_with = "words::optional_text")]
    pub error_message: Option<String>,
    /// Arbitrary data of the agent.
    pub session_data: Box<RawValue>,
    /// Start of the work: RFC 3339, UTC, as all times here.
    pub started_at: String,
    /// Time of completion; `None` while the session runs and after it ended any other way.
    #[serde(deserialize_with = "words::optional_text")]
    pub completed_at: Option<String>,
    /// Creation time of the entry.
    pub created_at: String,
    /// Time of the last change to the entry.
    pub updated_at: String,
}

impl Session {
    /// Returns the names that log lines use for the session.
    pub fn names(&self) -> Vec<String> {
        let own = Some(self.session_id.clone());
        [own, self.native_id()].into_iter().flatten().collect()
    }

    /// Returns the session's name at the agent host, if it has one.
    pub fn native_id(&self) -> Option<String> {
        let data = self.session_data.get().as_bytes();
        string_field(data, "native_id").map(Cow::into_owned)
    }
}

/// Maximum length of the indexed text from `session_data`, in bytes.
const FOUND_BY: usize = 8_000;

/// Field of a host session's data that lists record ids, which are not searchable text.
const LEARNED: &str = "learned";

impl Record for Session {
    const KIND: Kind = Kind::Session;

    fn labels(&self) -> Document {
        Document {
            user_id: self.user_id.clone(),
            ..Document::new(Self::KIND, &self.session_id, &self.created_at)
        }
    }

    fn content(&self) -> String {
        let mut words = self.completed_steps.join("\n");
        let texts = [&self.current_step, &self.error_message];
        for text in texts.into_iter().flatten() {
            words.push('\n');
            words.push_str(text);
        }
        let mut data: Value = serde_json::from_str(self.session_data.get()).unwrap_or_default();
        if let Some(fields) = data.as_object_mut() {
            fields.shift_remove(LEARNED);
        }
        for text in leaves(&data).into_iter().filter_map(Value::as_str) {
            if words.len() < FOUND_BY {
                words.extend(["\n", &text[..text.floor_char_boundary(FOUND_BY)]]);
            }
        }
        words
    }

    /// An agent wrote it, possibly after reading untrusted text.
    fn trust(&self) -> Trust {
        Trust::Observed
    }
}

open_words! {
    /// State of a session, in the order of the source document. An unknown state never hides its session.
    #[expect(missing_docs, reason = "the names are the definition: they are the source document's")]
    SessionState, "State of a session; other programs may use other words.", Self::Initializing,
    {
        Initializing = "initializing",
        AnalyzingBrand = "analyzing_brand",
        ResearchingCompetitors = "researching_competitors",
        AnalyzingTrends = "analyzing_trends",
        GeneratingConcepts = "generating_concepts",
        GeneratingScripts = "generating_scripts",
        AwaitingApproval = "awaiting_approval",
        GeneratingVideos = "generating_videos",
        UpdatingMemory = "updating_memory",
        Completed = "completed",
        Error = "error",
        Cancelled = "cancelled",
    }
}

impl SessionState {
    /// Returns `true` if the state is one of the source document.
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Other(_))
    }

    /// Returns `true` if the session has ended and can no longer change.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Completed | Self::Error | Self::Cancelled)
    }
}

/// One action of an agent.
#[derive(Debug, Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, remote = "ExecutionLog")]
pub struct ExecutionLog {
    /// A random UUID.
    pub id: String,
    /// Id of the session: `SESS-…`, or an agent host's own id such as `claude-code/3f2a…`. `None`
    /// for an action outside any session.
    #[serde(deserialize_with = "words::optional_text")]
    pub session_id: Option<String>,
    /// Id of the user; `None` for the owner of the files.
    #[serde(deserialize_with = "words::or_default")]
    pub user_id: Option<String>,
    /// Step that the action belongs to.
    pub step_name: String,
    /// Tool or model that acted.
    #[serde(deserialize_with = "words::optional_text")]
    pub tool_name: Option<String>,
    /// Kind of the action.
    pub action_type: ActionType,
    /// Input; any JSON.
    pub input_data: Option<Box<RawValue>>,
    /// Output; any JSON.
    pub output_data: Option<Box<RawValue>>,
    /// The agent's reason, in its own words.
    #[serde(deserialize_with = "words::optional_text")]
    pub reasoning: Option<String>,
    /// Confidence of the agent, from 0 to 1.
    pub confidence_score: Option<f64>,
    /// Wall-clock time in milliseconds.
    pub execution_time_ms: Option<u64>,
    /// Progress or result of the action.
    pub status: LogStatus,
    /// Error text of a failed action.
    #[serde(deserialize_with = "words::optional_text")]
    pub error_message: Option<String>,
    /// RFC 3339, UTC.
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

lenient!(Session, ExecutionLog);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_found_by_its_steps_and_the_texts_of_its_data() {
        let check = |json: &str, expected: &[&str]| {
            let session: Session = serde_json::from_str(json).unwrap();
            let content = session.content();
            let lines: Vec<&str> = content.lines().filter(|line| !line.is_empty()).collect();
            assert_eq!(lines, expected, "{json}");
        };
        check(
            r#"{"completed_steps": ["brand", "trends"], "current_step": "scripts",
                "session_data": {"learned": ["PROC-001"], "campaign": "spring", "tags": ["a", 7, {"deep": "b"}]}}"#,
            &["brand", "trends", "scripts", "spring", "a", "b"],
        );
        check(r#"{"session_data": "plain"}"#, &["plain"]);
        check(r#"{"session_data": 7, "completed_steps": null}"#, &[]);
        let long = "é".repeat(FOUND_BY);
        let session = format!(r#"{{"session_data": ["{long}", "{long}"]}}"#);
        let session: Session = serde_json::from_str(&session).unwrap();
        assert!(session.content().len() <= FOUND_BY + 1);
    }

    #[test]
    fn the_log_knows_a_session_of_a_host_by_two_names() {
        let check = |data: &str, expected: &[&str]| {
            let json = format!(r#"{{"session_id": "SESS-1", "session_data": {data}}}"#);
            let session: Session = serde_json::from_str(&json).unwrap();
            assert_eq!(session.names(), expected, "{data}");
        };
        check(r#"{"native_id": "codex/3f"}"#, &["SESS-1", "codex/3f"]);
        check(r#"{"native_id": 7}"#, &["SESS-1"]);
        check("null", &["SESS-1"]);
    }

    #[test]
    fn names_come_back_as_they_are() {
        for name in SessionState::NAMES {
            assert_eq!(SessionState::from(*name).as_str(), *name);
        }
        let odd: SessionState = serde_json::from_str("\"paused\"").unwrap();
        assert_eq!(odd, SessionState::Other("paused".to_owned()));
        assert_eq!(serde_json::to_string(&odd).unwrap(), "\"paused\"");
        let other: Session = serde_json::from_str(r#"{"status": 7}"#).unwrap();
        assert_eq!(other.status.as_str(), "7");
    }

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
