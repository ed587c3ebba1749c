//! What happened: executions of skills, and what people said about them.
//!
//! Inputs and outputs are kept as the JSON text that was given, so that key order, big integers
//! and `1062` against `1062.0` survive.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::kind::{Kind, Record, Trust, one_line};
use super::knowledge::AGENT;
use super::lenient;

/// One run of a skill: an entry of `episodic_memory.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Execution {
    /// `EXEC-{YYYYMMDDHHMMSS}`, unique.
    #[serde(default, deserialize_with = "lenient::text")]
    pub execution_id: String,
    /// `domain/skill`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub skill: String,
    /// RFC 3339, UTC.
    #[serde(default, deserialize_with = "lenient::text")]
    pub timestamp: String,
    /// The input, whole.
    #[serde(default = "lenient::null")]
    pub input_summary: Box<RawValue>,
    /// The output: the model's JSON object, or `{"raw_output": text}`, or `{"error": text}`.
    #[serde(default = "lenient::null")]
    pub output_summary: Box<RawValue>,
    /// What became of it.
    #[serde(default)]
    pub outcome: Outcome,
    /// US dollars; `None` where the price of the model is not known.
    #[serde(default, deserialize_with = "lenient::number")]
    pub cost_usd: Option<f64>,
    /// Wall-clock milliseconds of the model's answer.
    #[serde(default, deserialize_with = "lenient::number")]
    pub latency_ms: Option<f64>,
    /// `provider/model`, or `offline/nearest-case`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub model_used: String,
    /// Ids of the rules that stood in the prompt.
    #[serde(
        default,
        deserialize_with = "lenient::texts",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub reflexions_injected: Vec<String>,
    /// Ids of the rules that would have stood in it, were it not for the experiment.
    #[serde(
        default,
        deserialize_with = "lenient::texts",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub reflexions_withheld: Vec<String>,
    /// The share of rules that was withheld then; `None` outside an experiment.
    #[serde(
        default,
        deserialize_with = "lenient::number",
        skip_serializing_if = "Option::is_none"
    )]
    pub experiment_withhold: Option<f64>,
    /// Tokens, where the provider counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Where an offline answer was taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest_case: Option<NearestCase>,
    /// Why a person rejected it.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub reviewer_notes: String,
    /// `agent` where a program has brought the outcome with the execution; empty where a person has said
    /// it, or nobody.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub judged_by: String,
}

/// Tokens of one question and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, those from a cache included.
    pub input_tokens: u64,
    /// Tokens written, those of hidden reasoning included.
    pub output_tokens: u64,
}

/// The case that an offline answer repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NearestCase {
    /// An execution or correction id, or the path of an example below the skill.
    pub source: String,
    /// Between 0 (nothing in common) and 1 (the same input).
    pub similarity: f64,
}

/// What became of an execution.
///
/// The source documents name the first three; the others are found in files of the reference
/// implementation. A value of nobody's making is kept as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Outcome {
    /// A person said that it is right.
    Accepted,
    /// A person said that it is wrong.
    Rejected,
    /// Nobody has looked yet.
    #[default]
    PendingReview,
    /// No output came out.
    Error,
    /// Any other word.
    Other(String),
}

impl Outcome {
    /// The word in the file.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::PendingReview => "pending_review",
            Self::Error => "error",
            Self::Other(word) => word,
        }
    }
}

impl From<&str> for Outcome {
    fn from(word: &str) -> Self {
        match word {
            "accepted" => Self::Accepted,
            "rejected" => Self::Rejected,
            "pending_review" | "" => Self::PendingReview,
            "error" => Self::Error,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl Serialize for Outcome {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        lenient::text(deserializer).map(|word| Self::from(word.as_str()))
    }
}

impl Record for Execution {
    const KIND: Kind = Kind::Execution;

    fn id(&self) -> &str {
        &self.execution_id
    }

    fn set_id(&mut self, id: String) {
        self.execution_id = id;
    }

    fn skill(&self) -> Option<&str> {
        (!self.skill.is_empty()).then_some(&self.skill)
    }

    fn content(&self) -> String {
        let mut words = self.skill.clone();
        for json in [&self.input_summary, &self.output_summary] {
            push_values(json, &mut words);
        }
        words
    }

    fn summary(&self) -> String {
        let mut words = String::new();
        push_values(&self.output_summary, &mut words);
        if words.is_empty() {
            push_values(&self.input_summary, &mut words);
        }
        one_line(&words)
    }

    fn created(&self) -> &str {
        &self.timestamp
    }
}

/// What a person said was wrong with an execution: an entry of `corrections.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Correction {
    /// `CORR-{NNN}`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub correction_id: String,
    /// The execution that is corrected.
    #[serde(default, deserialize_with = "lenient::text")]
    pub execution_id: String,
    /// `domain/skill`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub skill: String,
    /// RFC 3339, UTC.
    #[serde(default, deserialize_with = "lenient::text")]
    pub timestamp: String,
    /// The output of the execution as it was when it was corrected.
    #[serde(default = "lenient::null")]
    pub original_output: Box<RawValue>,
    /// The person's words, unchanged.
    #[serde(default, deserialize_with = "lenient::text")]
    pub user_correction: String,
    /// What the output should have been, where the person gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_output: Option<Box<RawValue>>,
    /// `agent` where an agent has passed it on. Empty: a person has said it here.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub source: String,
    /// Of what an agent has passed on: `approved` where a person has approved it, `user` where one has
    /// said the same.
    #[serde(
        default,
        deserialize_with = "lenient::text",
        skip_serializing_if = "String::is_empty"
    )]
    pub trust: String,
}

impl Record for Correction {
    const KIND: Kind = Kind::Correction;

    fn id(&self) -> &str {
        &self.correction_id
    }

    fn set_id(&mut self, id: String) {
        self.correction_id = id;
    }

    fn skill(&self) -> Option<&str> {
        (!self.skill.is_empty()).then_some(&self.skill)
    }

    fn content(&self) -> String {
        self.user_correction.clone()
    }

    fn created(&self) -> &str {
        &self.timestamp
    }

    /// What an agent has passed on is observed until a person approves it, or says the same.
    fn trust(&self) -> Trust {
        match (self.source == AGENT, self.trust.as_str()) {
            (false, _) | (true, "user") => Trust::User,
            (true, "approved") => Trust::Approved,
            (true, _) => Trust::Observed,
        }
    }

    fn source(&self) -> Option<&str> {
        (!self.source.is_empty()).then_some(&self.source)
    }
}

/// Appends every value of a JSON text, but none of its keys, to `words`.
pub(super) fn push_values(json: &RawValue, words: &mut String) {
    fn walk(value: &serde_json::Value, words: &mut String) {
        match value {
            serde_json::Value::Null => {}
            serde_json::Value::Array(items) => items.iter().for_each(|item| walk(item, words)),
            serde_json::Value::Object(fields) => {
                fields.values().for_each(|item| walk(item, words));
            }
            serde_json::Value::String(text) => push(text, words),
            scalar => push(&scalar.to_string(), words),
        }
    }
    fn push(text: &str, words: &mut String) {
        words.push('\n');
        words.push_str(text);
    }
    // Text that is too deep or otherwise not readable is found by its id and skill alone.
    if let Ok(value) = serde_json::from_str(json.get()) {
        walk(&value, words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_with_odd_fields_is_still_an_execution() {
        let json = r#"{"execution_id": "EXEC-1", "skill": "hr/x", "cost_usd": null,
            "latency_ms": "12.5", "outcome": 7, "reflexions_injected": null, "extra": [1]}"#;
        let execution: Execution = serde_json::from_str(json).unwrap();
        assert_eq!(execution.cost_usd, None);
        assert_eq!(execution.latency_ms, Some(12.5));
        assert_eq!(execution.outcome, Outcome::Other("7".into()));
        assert_eq!(execution.input_summary.get(), "null");
        assert!(execution.reflexions_injected.is_empty());
    }

    #[test]
    fn content_holds_values_and_no_keys() {
        let json = r#"{"execution_id": "EXEC-1", "skill": "hr/x",
            "input_summary": {"candidate": "Jane", "years": 5}, "output_summary": {"ok": true}}"#;
        let execution: Execution = serde_json::from_str(json).unwrap();
        assert_eq!(execution.content(), "hr/x\nJane\n5\ntrue");
    }
}
