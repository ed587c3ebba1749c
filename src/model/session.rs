//! What an agent did, from start to end: an entry of `sessions.json`, in the fields of the source
//! document's `agent_sessions`.
//!
//! A host that has sessions of its own names them itself. What was noted while such a session went on
//! carries that name; it stands in `session_data.native_id`, so that the two are found together.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::kind::{Kind, Record, Trust};
use super::lenient;
use super::session_state::SessionState;

/// How many steps a session has where nobody says; the source document's number.
pub const TOTAL_STEPS: u64 = 8;

/// One session of an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Session {
    /// `SESS-{YYYYMMDDHHMMSS}`, unique.
    #[serde(default, deserialize_with = "lenient::text")]
    pub session_id: String,
    /// Whose it is; `None` where it is the owner's.
    #[serde(
        default,
        deserialize_with = "lenient::name",
        skip_serializing_if = "Option::is_none"
    )]
    pub user_id: Option<String>,
    /// The state: `initializing` … `completed`, `error` or `cancelled`.
    #[serde(default)]
    pub status: SessionState,
    /// What it is doing now.
    #[serde(default, deserialize_with = "lenient::optional_text")]
    pub current_step: Option<String>,
    /// 0 to 100. Whole numbers are written; others are read.
    #[serde(
        default,
        deserialize_with = "lenient::number",
        serialize_with = "lenient::plain_number"
    )]
    pub progress_percentage: Option<f64>,
    /// How many steps there are in all; `None` where nobody has planned them.
    #[serde(default, deserialize_with = "lenient::whole")]
    pub total_steps: Option<u64>,
    /// The steps that are done, each once, in the order of their being done.
    #[serde(default, deserialize_with = "lenient::texts")]
    pub completed_steps: Vec<String>,
    /// Why it ended in `error`.
    #[serde(default, deserialize_with = "lenient::optional_text")]
    pub error_message: Option<String>,
    /// Whatever the agent keeps with it.
    #[serde(default = "lenient::null")]
    pub session_data: Box<RawValue>,
    /// When the work began: RFC 3339, UTC, as all times here.
    #[serde(default, deserialize_with = "lenient::text")]
    pub started_at: String,
    /// When it was completed; `None` while it goes on, and for good where it ended otherwise.
    #[serde(default, deserialize_with = "lenient::optional_text")]
    pub completed_at: Option<String>,
    /// When this entry was made.
    #[serde(default, deserialize_with = "lenient::text")]
    pub created_at: String,
    /// When this entry was last changed.
    #[serde(default, deserialize_with = "lenient::text")]
    pub updated_at: String,
}

impl Session {
    /// The names that lines of the log know the session by.
    pub fn names(&self) -> Vec<String> {
        let own = Some(self.session_id.clone());
        [own, self.native_id()].into_iter().flatten().collect()
    }

    /// The name that a host has given to the session, where it is one of a host's.
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

/// How much of the texts in its data a session is found by, in bytes.
const FOUND_BY: usize = 8_000;

/// The field of the data of a host's session that names records: ids are no words.
const LEARNED: &str = "learned";

/// Adds the texts of a value, a line each, until there are enough.
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

    /// An agent has written it, and has read all kinds of things before.
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
                "session_data": {"learned": ["FIX-001"], "campaign": "spring", "tags": ["a", 7, {"deep": "b"}]}}"#,
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
