//! What an agent did, from start to end: an entry of `sessions.json`, in the fields of the source
//! document's `agent_sessions`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::kind::{Kind, Record};
use super::lenient;

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
    #[serde(default, deserialize_with = "lenient::text")]
    pub status: String,
    /// What it is doing now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_step: Option<String>,
    /// 0 to 100.
    #[serde(default, deserialize_with = "lenient::number")]
    pub progress_percentage: Option<f64>,
    /// The steps that are done.
    #[serde(default, deserialize_with = "lenient::texts")]
    pub completed_steps: Vec<String>,
    /// Why it ended in `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Whatever the agent keeps with it.
    #[serde(default = "lenient::null")]
    pub session_data: Box<RawValue>,
    /// RFC 3339, UTC.
    #[serde(default, deserialize_with = "lenient::text")]
    pub created_at: String,
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
        words
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
