//! The eight fields of a procedure's `data`, as text.
//!
//! A field of another type does not hide the others: it counts as missing. The fields are claims of
//! a file, so readers redact and screen them.

use serde::Deserialize;

use super::lenient;
use super::procedure::Procedure;

/// Fields of the procedural-memory document; empty if missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ProcedureFields {
    /// Name.
    #[serde(rename = "procedure_name", deserialize_with = "lenient::text")]
    pub name: String,
    /// One sentence about the purpose.
    #[serde(rename = "semantic_description", deserialize_with = "lenient::text")]
    pub description: String,
    /// Failing call and its error.
    #[serde(rename = "initial_failure_summary", deserialize_with = "lenient::text")]
    pub failure: String,
    /// Cause of the failure.
    #[serde(rename = "identified_root_cause", deserialize_with = "lenient::text")]
    pub root_cause: String,
    /// Change that made the call work.
    #[serde(rename = "successful_intervention", deserialize_with = "lenient::text")]
    pub intervention: String,
    /// Steps in order.
    #[serde(rename = "learned_procedure_steps", deserialize_with = "lenient::texts")]
    pub steps: Vec<String>,
    /// Signs that the procedure applies.
    #[serde(rename = "critical_contextual_cues", deserialize_with = "lenient::texts")]
    pub cues: Vec<String>,
    /// Example.
    #[serde(rename = "example_scenario_abstract", deserialize_with = "lenient::text")]
    pub example: String,
}

impl ProcedureFields {
    /// Returns the condition: the root cause, else the cues, else the failure.
    pub fn when(&self) -> String {
        let said = |text: &&String| !text.trim().is_empty();
        let cues = self.cues.join("; ");
        [&self.root_cause, &cues, &self.failure]
            .into_iter()
            .find(said)
            .cloned()
            .unwrap_or_default()
    }

    /// Returns the steps that contain text.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        let steps = self.steps.iter().map(|step| step.trim());
        steps.filter(|step| !step.is_empty())
    }

    /// Returns the text of all fields, one a line.
    pub fn text(&self) -> String {
        let lines = [
            &self.name, &self.description, &self.failure, &self.root_cause, &self.intervention,
        ];
        let lines = lines.into_iter().chain(&self.steps).chain(&self.cues);
        let lines: Vec<&str> = lines.chain([&self.example]).map(String::as_str).collect();
        lines.join("\n")
    }
}

impl Procedure {
    /// Returns the fields of `data`; empty ones if it is no object.
    pub fn fields(&self) -> ProcedureFields {
        serde_json::from_str(self.data.get()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(json: &str) -> ProcedureFields {
        let text = format!(r#"{{"procedure_id": "PROC-001", "data": {json}}}"#);
        serde_json::from_str::<Procedure>(&text).unwrap().fields()
    }

    #[test]
    fn field_of_another_type_hides_no_other() {
        let read = fields(
            r#"{"procedure_name": "Add a column", "identified_root_cause": {"a": 1},
                "learned_procedure_steps": ["one", 2, " ", "three"],
                "critical_contextual_cues": "none"}"#,
        );
        assert_eq!(read.name, "Add a column");
        assert_eq!(read.steps().collect::<Vec<_>>(), ["one", "three"]);
        assert_eq!((read.root_cause.as_str(), read.cues.len()), ("", 0));
        assert_eq!(fields("null"), ProcedureFields::default());
        assert_eq!(fields("[]"), ProcedureFields::default());
    }

    #[test]
    fn condition_is_the_root_cause_or_else_the_next_best() {
        let check = |json: &str, expected: &str| assert_eq!(fields(json).when(), expected);
        check(
            r#"{"identified_root_cause": "No type.", "critical_contextual_cues": ["sql"]}"#,
            "No type.",
        );
        check(r#"{"critical_contextual_cues": ["a", "b"]}"#, "a; b");
        check(r#"{"initial_failure_summary": "It failed."}"#, "It failed.");
        check("{}", "");
    }
}
