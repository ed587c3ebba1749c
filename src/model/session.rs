//! Sessions of agents: entries of `sessions.json`, with the fields of the source document's
//! `agent_sessions`.
//!
//! An agent host with its own sessions also assigns their names. Log lines written during such a
//! session carry the host's name, which `session_data.native_id` stores to link the two.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::kind::{Kind, Record};
use super::lenient;
use super::session_state::SessionState;
use super::trust::Trust;

/// Default number of steps of a session, from the source document.
pub const TOTAL_STEPS: u64 = 8;

/// One session of an agent.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Session {
    /// `SESS-{YYYYMMDDHHMMSS}`, unique.
    #[serde(default, deserialize_with = "lenient::text")]
    pub session_id: String,
    /// Id of the user; `None` for the owner of the files.
    #[serde(default, deserialize_with = "lenient::name", skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// State: `initializing` … `completed`, `error` or `cancelled`.
    #[serde(default)]
    pub status: SessionState,
    /// The step in progress.
    #[serde(default, deserialize_with = "lenient::optional_text")]
    pub current_step: Option<String>,
    /// 0 to 100. Written as a whole number if it has no fraction; fractions are accepted.
    #[serde(
        default,
        deserialize_with = "lenient::number",
        serialize_with = "lenient::plain_number"
    )]
    pub progress_percentage: Option<f64>,
    /// Total number of steps; `None` if unplanned.
    #[serde(default, deserialize_with = "lenient::whole")]
    pub total_steps: Option<u64>,
    /// Completed steps in order of completion, without duplicates.
    #[serde(default, deserialize_with = "lenient::texts")]
    pub completed_steps: Vec<String>,
    /// Reason for the state `error`.
    #[serde(default, deserialize_with = "lenient::optional_text")]
    pub error_message: Option<String>,
    /// Arbitrary data of the agent.
    #[serde(default = "lenient::null")]
    pub session_data: Box<RawValue>,
    /// Start of the work: RFC 3339, UTC, as all times here.
    #[serde(default, deserialize_with = "lenient::text")]
    pub started_at: String,
    /// Time of completion; `None` while the session runs and after it ended any other way.
    #[serde(default, deserialize_with = "lenient::optional_text")]
    pub completed_at: Option<String>,
    /// Creation time of the entry.
    #[serde(default, deserialize_with = "lenient::text")]
    pub created_at: String,
    /// Time of the last change to the entry.
    #[serde(default, deserialize_with = "lenient::text")]
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
        #[derive(Deserialize)]
        struct Data {
            native_id: Option<String>,
        }
        serde_json::from_str::<Data>(self.session_data.get())
            .ok()?
            .native_id
    }
}

/// Maximum length of the indexed text from `session_data`, in bytes.
const FOUND_BY: usize = 8_000;

/// Field of a host session's data that lists record ids, which are not searchable text.
const LEARNED: &str = "learned";

/// Appends the texts of a value, one per line, up to the limit.
fn add_texts(value: &Value, words: &mut String) {
    match value {
        Value::String(text) if words.len() < FOUND_BY => {
            let end = text.floor_char_boundary(FOUND_BY);
            words.extend(["\n", &text[..end]]);
        }
        Value::Array(values) => values.iter().for_each(|value| add_texts(value, words)),
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| *name != LEARNED)
            .for_each(|(_, value)| add_texts(value, words)),
        _ => {}
    }
}

impl Record for Session {
    const KIND: Kind = Kind::Session;

    fn id(&self) -> &str {
        &self.session_id
    }

    fn set_id(&mut self, id: String) {
        self.session_id = id;
    }

    fn skill(&self) -> Option<&str> {
        None
    }

    fn content(&self) -> String {
        let mut words = self.completed_steps.join("\n");
        for text in [&self.current_step, &self.error_message]
            .into_iter()
            .flatten()
        {
            words.push('\n');
            words.push_str(text);
        }
        let data = serde_json::from_str(self.session_data.get()).unwrap_or_default();
        add_texts(&data, &mut words);
        words
    }

    /// An agent wrote it, possibly after reading untrusted text.
    fn trust(&self) -> Trust {
        Trust::Observed
    }

    fn created(&self) -> &str {
        &self.created_at
    }

    fn user_id(&self) -> Option<&str> {
        self.user_id.as_deref()
    }

    fn set_user_id(&mut self, id: &str) {
        self.user_id = Some(id.to_owned());
    }
}

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
}
