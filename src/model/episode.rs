//! Executions of skills, and the corrections that users give.
//!
//! Inputs and outputs are stored as the JSON text received, so that key order, big integers and the
//! difference between `1062` and `1062.0` survive.

use memctl_files::json::leaves;
use memctl_llm::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::kind::{AGENT, Document, Kind, Record, Trust, given};
use super::text::one_line;
use super::words::{lenient, open_words};

/// One run of a skill: an entry of `episodic_memory.json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, remote = "Execution")]
pub struct Execution {
    /// `EXEC-{YYYYMMDDHHMMSS}`, unique.
    pub execution_id: String,
    /// `domain/skill`.
    pub skill: String,
    /// RFC 3339, UTC.
    pub timestamp: String,
    /// The complete input.
    pub input_summary: Box<RawValue>,
    /// The output: the model's JSON object, or `{"raw_output": text}`, or `{"error": text}`.
    pub output_summary: Box<RawValue>,
    /// Result of the run.
    pub outcome: Outcome,
    /// US dollars; `None` if the price of the model is unknown.
    pub cost_usd: Option<f64>,
    /// Wall-clock time of the model's answer, in milliseconds.
    pub latency_ms: Option<f64>,
    /// `provider/model`, or `offline/nearest-case`.
    pub model_used: String,
    /// Ids of the rules in the prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reflexions_injected: Vec<String>,
    /// Ids of the procedures in the prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub procedures_injected: Vec<String>,
    /// Times at which these rules, and then these procedures, were created. A merge may give the id of one to
    /// another record; with its time, the record that was meant is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub injected_created_at: Vec<String>,
    /// Token counts; `None` if the provider reports none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Source of an offline answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest_case: Option<NearestCase>,
    /// The user's reason for rejecting the output.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reviewer_notes: String,
    /// Rules that the rejection of the output was counted against; `None` for every rule that
    /// applied, as in older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules_blamed: Option<Vec<String>>,
    /// `agent` if a program reported the outcome together with the execution. Empty if a user gave
    /// it, or if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub judged_by: String,
}

/// The case that an offline answer repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NearestCase {
    /// Id of an execution or correction, or path of an example below the skill.
    pub source: String,
    /// Between 0 (nothing in common) and 1 (the same input).
    pub similarity: f64,
}

open_words! {
    /// Result of an execution.
    ///
    /// The source documents name the first three. The others occur in files of the reference
    /// implementation. An unknown value is kept unchanged.
    Outcome, "Result of an execution; other programs may use other words.", Self::PendingReview,
    {
        /// A user accepted the output.
        Accepted = "accepted",
        /// A user rejected the output.
        Rejected = "rejected",
        /// No user has reviewed the output yet.
        PendingReview = "pending_review",
        /// The run failed without output.
        Error = "error",
    }
}

impl Execution {
    /// Returns the records in the prompt, rules first: the id that each had then, and the time of its creation,
    /// which is empty where the execution does not say it.
    pub fn injected(&self) -> impl Iterator<Item = (&str, &str)> {
        let ids = || {
            self.reflexions_injected
                .iter()
                .chain(&self.procedures_injected)
        };
        let is_whole = self.injected_created_at.len() == ids().count();
        let times = self.injected_created_at.iter().filter(move |_| is_whole);
        let times = times.map(String::as_str).chain(std::iter::repeat(""));
        ids().map(String::as_str).zip(times)
    }
}

impl Record for Execution {
    const KIND: Kind = Kind::Execution;

    fn labels(&self) -> Document {
        Document {
            skill: given(&self.skill),
            ..Document::new(Self::KIND, &self.execution_id, &self.timestamp)
        }
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
}

/// A user's statement of what was wrong with an execution: an entry of `corrections.json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, remote = "Correction")]
pub struct Correction {
    /// `CORR-{NNN}`.
    pub correction_id: String,
    /// Id of the corrected execution.
    pub execution_id: String,
    /// `domain/skill`.
    pub skill: String,
    /// RFC 3339, UTC.
    pub timestamp: String,
    /// Output of the execution at the time of the correction.
    pub original_output: Box<RawValue>,
    /// The user's words, unchanged.
    pub user_correction: String,
    /// The correct output, if the user gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_output: Option<Box<RawValue>>,
    /// Checks of an output in the short form (`$.overall_score < 60`), from a person or a model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assertions: Vec<String>,
    /// `true` if they check all that the rule demands.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub assertions_suffice: bool,
    /// `agent` if an agent relayed the correction; empty if a user entered it here.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Trust in a relayed correction: `approved` if a user has approved it, `user` if a user has
    /// made the same correction.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub trust: String,
}

impl Record for Correction {
    const KIND: Kind = Kind::Correction;

    fn labels(&self) -> Document {
        Document {
            skill: given(&self.skill),
            source: given(&self.source),
            ..Document::new(Self::KIND, &self.correction_id, &self.timestamp)
        }
    }

    fn content(&self) -> String {
        self.user_correction.clone()
    }

    /// A relayed correction is observed until a user approves or repeats it.
    fn trust(&self) -> Trust {
        if self.source == AGENT {
            Trust::stored(&self.trust)
        } else {
            Trust::User
        }
    }
}

/// Appends every value of a JSON text, but none of its keys, to `words`.
pub(crate) fn push_values(json: &RawValue, words: &mut String) {
    // JSON that cannot be parsed, for example too deep, adds no words. The id and the skill still
    // match.
    let value: Value = serde_json::from_str(json.get()).unwrap_or_default();
    for leaf in leaves(&value).into_iter().filter(|leaf| !leaf.is_null()) {
        words.push('\n');
        match leaf {
            Value::String(text) => words.push_str(text),
            scalar => words.push_str(&scalar.to_string()),
        }
    }
}

lenient!(Execution, Correction);

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
