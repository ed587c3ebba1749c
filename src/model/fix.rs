//! What was learnt from failures that were overcome: the concrete fix, and the how-to.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::evidence::Evidence;
use super::kind::{Kind, Record, Trust, one_line};
use super::{episode, lenient};

/// Where something was seen.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Origin {
    /// The host's id of the session; of a session without one, the name of its file.
    #[serde(default, deserialize_with = "lenient::text")]
    pub session: String,
    /// The name of the directory that was worked in.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub workspace: String,
    /// The ordinal of the failing step.
    #[serde(default)]
    pub step: u64,
}

/// A how-to learnt from a failure that was overcome: an entry of `procedural_memory.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Procedure {
    /// `PROC-{NNN}`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub procedure_id: String,
    /// `domain/skill`, where it was learnt in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// RFC 3339, UTC.
    #[serde(default, deserialize_with = "lenient::text")]
    pub created_at: String,
    /// `procedure_learned` where a pattern was found.
    #[serde(default, deserialize_with = "lenient::text")]
    pub status: String,
    /// The eight fields of the procedural-memory document.
    #[serde(default = "lenient::null")]
    pub data: Box<RawValue>,
    /// What put it into words: `offline`, or `provider/model`.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub distilled_by: String,
    /// How often it was seen.
    #[serde(
        default,
        deserialize_with = "lenient::number",
        skip_serializing_if = "Option::is_none"
    )]
    pub occurrences: Option<f64>,
    /// When it was seen last: RFC 3339, UTC.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub last_seen: String,
    /// Where it was seen: the trajectories that the steps were taken from.
    #[serde(
        default,
        deserialize_with = "lenient::list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub origins: Vec<Origin>,
    /// `approved` where a person has approved it.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub trust: String,
}

impl Record for Procedure {
    const KIND: Kind = Kind::Procedure;

    fn id(&self) -> &str {
        &self.procedure_id
    }

    fn set_id(&mut self, id: String) {
        self.procedure_id = id;
    }

    fn skill(&self) -> Option<&str> {
        self.skill.as_deref()
    }

    fn content(&self) -> String {
        let mut words = String::new();
        episode::push_values(&self.data, &mut words);
        words
    }

    fn created(&self) -> &str {
        &self.created_at
    }

    fn trust(&self) -> Trust {
        trust(&self.trust)
    }

    fn claims(&self) -> Vec<String> {
        let skill = self.skill.clone().unwrap_or_default();
        vec![skill, super::kind::one_layout(&self.data)]
    }
}

/// An error → fix pattern: an entry of `fixes.json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Fix {
    /// `FIX-{NNN}`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub fix_id: String,
    /// RFC 3339, UTC.
    #[serde(default, deserialize_with = "lenient::text")]
    pub created_at: String,
    /// The error line with its particulars taken out.
    #[serde(default, deserialize_with = "lenient::text")]
    pub error_key: String,
    /// What failed.
    #[serde(default, deserialize_with = "lenient::text")]
    pub failing_code: String,
    /// What worked instead.
    #[serde(default, deserialize_with = "lenient::text")]
    pub working_code: String,
    /// What it printed when it worked.
    #[serde(default, deserialize_with = "lenient::text")]
    pub success_output: String,
    /// What was used: `cargo test`, `Edit`.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub tool: String,
    /// How often it was seen.
    #[serde(
        default,
        deserialize_with = "lenient::number",
        skip_serializing_if = "Option::is_none"
    )]
    pub occurrences: Option<f64>,
    /// Where it was seen, once for each session and step.
    #[serde(
        default,
        deserialize_with = "lenient::list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub origins: Vec<Origin>,
    /// When it was seen last: RFC 3339, UTC.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub last_seen: String,
    /// How often it was shown as a hint.
    #[serde(
        default,
        deserialize_with = "lenient::number",
        skip_serializing_if = "Option::is_none"
    )]
    pub shown: Option<f64>,
    /// How often the error was then gone by the hinted way.
    #[serde(
        default,
        deserialize_with = "lenient::number",
        skip_serializing_if = "Option::is_none"
    )]
    pub helped: Option<f64>,
    /// How often the same error came again.
    #[serde(
        default,
        deserialize_with = "lenient::number",
        skip_serializing_if = "Option::is_none"
    )]
    pub harmed: Option<f64>,
    /// `retired` where it no longer works; `active` or empty otherwise.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub status: String,
    /// `approved` where a person has approved it.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub trust: String,
    /// The procedure that was learnt with it.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub procedure_id: String,
}

impl Fix {
    /// The counts of use.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float cast to an integer saturates, and a count below zero is none"
    )]
    pub fn evidence(&self) -> Evidence {
        let count = |field: Option<f64>| field.unwrap_or(0.0) as u64;
        Evidence {
            shown: count(self.shown),
            helped: count(self.helped),
            harmed: count(self.harmed),
        }
    }

    /// The same at another level of trust than its file gives.
    #[must_use]
    pub fn believed(self, trust: Trust) -> Self {
        let trust = trust.name().to_owned();
        Self { trust, ..self }
    }

    /// Whether it may still be shown.
    pub fn is_active(&self) -> bool {
        self.status != "retired"
    }
}

impl Record for Fix {
    const KIND: Kind = Kind::Fix;

    fn id(&self) -> &str {
        &self.fix_id
    }

    fn set_id(&mut self, id: String) {
        self.fix_id = id;
    }

    fn skill(&self) -> Option<&str> {
        None
    }

    fn content(&self) -> String {
        [&self.error_key, &self.failing_code, &self.working_code]
            .map(String::as_str)
            .join("\n")
    }

    fn summary(&self) -> String {
        one_line(&self.error_key)
    }

    fn created(&self) -> &str {
        &self.created_at
    }

    fn trust(&self) -> Trust {
        trust(&self.trust)
    }

    fn claims(&self) -> Vec<String> {
        vec![
            self.error_key.clone(),
            self.failing_code.clone(),
            self.working_code.clone(),
            self.success_output.clone(),
        ]
    }

    fn status(&self) -> Option<&str> {
        Some(match self.status.as_str() {
            "" => "active",
            status => status,
        })
    }
}

/// Nobody but a person lifts what was taken from a session.
fn trust(said: &str) -> Trust {
    if said == "approved" {
        Trust::Approved
    } else {
        Trust::Observed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fix_of_the_first_form_is_read_and_written_as_it_was() {
        let json = r#"{"fix_id":"FIX-001","created_at":"t","error_key":"e","failing_code":"f","working_code":"w","success_output":"o"}"#;
        let fix: Fix = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&fix).unwrap(), json);
        assert!(fix.is_active());
        assert_eq!(fix.trust(), Trust::Observed);
    }

    #[test]
    fn fields_of_other_types_do_not_hide_it() {
        let json = r#"{"fix_id":"FIX-001","origins":[{"session":"s","step":3},7,{"session":null}],"occurrences":"2",
            "shown":{},"status":"retired","trust":"approved"}"#;
        let fix: Fix = serde_json::from_str(json).unwrap();
        assert_eq!(fix.origins.len(), 2);
        assert_eq!((fix.occurrences, fix.shown), (Some(2.0), None));
        assert!(!fix.is_active());
        assert_eq!(fix.trust(), Trust::Approved);
    }
}
