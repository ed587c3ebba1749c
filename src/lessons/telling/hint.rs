//! Hint: what an agent is told about a failure, as a view of a procedure.

use serde::{Deserialize, Serialize};

use crate::lessons::telling::evidence;
use crate::model::{Evidence, Kind, Procedure, Record as _, Trust};
use memctl_redact::lines;

/// Default number of hints.
pub(crate) const MAX_HINTS: usize = 3;
/// Maximum length of displayed code or output, in characters.
const SHOWN: usize = 1_200;

/// Hint for a failure: the `PatternHint` of the source document, with what it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Hint {
    /// Record id.
    pub id: String,
    /// Record kind.
    pub kind: Kind,
    /// Lesson in one line; empty if nobody has worded it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lesson: String,
    /// Error key of the pattern; that of the failure for a procedure without a pattern.
    pub error_key: String,
    /// Failing code; empty for a procedure without a pattern.
    pub failing_code: String,
    /// Working code; the numbered steps of a procedure without a pattern.
    pub working_code: String,
    /// Output of the working code.
    pub success_output: String,
    /// Similarity of the error, from 0 to 1.
    pub score: f64,
    /// Mean of the posterior, from 0 to 1.
    pub confidence: f64,
    /// Outcomes of earlier uses.
    pub evidence: Evidence,
    /// Trust level.
    pub trust: Trust,
    /// Reason for the match.
    pub why: String,
    /// Commands that the lesson advises, to recognise a call that follows it.
    #[serde(skip)]
    pub(crate) advice: Vec<String>,
}

impl Hint {
    /// Hint of a procedure for a failure with this error key, redacted and cut.
    pub(crate) fn of(procedure: &Procedure, error_key: &str, score: f64, why: String) -> Self {
        let uses = procedure.evidence();
        let pattern = procedure.pattern.clone().unwrap_or_default();
        let (key, working) = if procedure.pattern.is_some() {
            (pattern.error_key.as_str(), pattern.working_code.clone())
        } else {
            (error_key, numbered(procedure))
        };
        let rounded = |number: f64| (number * 1e4).round() / 1e4;
        Self {
            id: procedure.procedure_id.clone(),
            kind: Kind::Procedure,
            lesson: clean(&procedure.lesson),
            error_key: clean(key),
            failing_code: clean(&pattern.failing_code),
            working_code: clean(&working),
            success_output: clean(&pattern.success_output),
            score: rounded(score),
            confidence: rounded(uses.posterior()),
            evidence: uses,
            trust: procedure.trust(),
            why,
            advice: evidence::advice(procedure),
        }
    }
}

/// Steps of a procedure, numbered.
fn numbered(procedure: &Procedure) -> String {
    let fields = procedure.fields();
    let steps = (1..).zip(fields.steps());
    let steps: Vec<String> = steps
        .map(|(number, step)| format!("{number}. {}", step.replace('\n', "\n   ")))
        .collect();
    steps.join("\n")
}

fn clean(text: &str) -> String {
    let text = memctl_redact::redact(text).text;
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.into_owned(),
    }
}

/// Lesson or pattern that was shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(crate) struct Shown {
    /// Id of the procedure.
    pub id: String,
    /// True if its lesson was told, and not its pattern.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_lesson: bool,
    /// Commands that the lesson advises.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<String>,
    /// Error key of the failure.
    pub error_key: String,
    /// Failing code, to recognise the next step.
    pub failing_code: String,
    /// Working code, to recognise the next step.
    pub working_code: String,
    /// Call that failed in this session.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// Outcome; `None` while it is open.
    pub outcome: Option<Outcome>,
    /// True if the evidence includes this use.
    pub counted: bool,
    /// True if it was shown before the call, not at its failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub before: bool,
}

/// Outcome of a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The hinted way worked.
    Helped,
    /// The error occurred again.
    Harmed,
    /// The call worked, though it had failed before: the hint was not needed.
    Needless,
}

/// Hints in the source document's format; empty if there are none.
pub(crate) fn render_hints(hints: &[Hint]) -> String {
    if hints.is_empty() {
        return String::new();
    }
    "CODE HINTS (learned from prior errors -- use these patterns):\n".to_owned()
        + &render_blocks(hints)
}

/// Hints in the source document's format, without a heading; empty if there are none.
pub(crate) fn render_blocks(hints: &[Hint]) -> String {
    let block = |hint: &Hint| {
        let code = (hint.failing_code.as_str(), hint.working_code.as_str());
        render_block(&hint.lesson, &hint.error_key, code)
    };
    hints.iter().map(block).collect()
}

/// One hint: its lesson if it has one, else failing and working code, else the steps of a procedure
/// without a failing call.
pub(crate) fn render_block(
    lesson: &str,
    error_key: &str,
    (failing, working): (&str, &str),
) -> String {
    if !lesson.is_empty() {
        let lesson = lines(lesson).collect::<Vec<_>>().join(" ");
        return format!("\n  LESSON: {lesson}\n");
    }
    let key = lines(error_key).collect::<Vec<_>>().join(" ");
    let mut text = format!("\n  ERROR: {key}\n");
    let parts: &[(&str, &str)] = match failing {
        "" => &[("WHAT HELPED", working)],
        failing => &[("WRONG", failing), ("CORRECT", working)],
    };
    for (name, code) in parts {
        text.extend(["  ", name, ":\n"]);
        for line in lines(code) {
            text.extend(["    ", line, "\n"]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_look_as_the_source_document_shows_them() {
        let procedure = serde_json::json!({"procedure_id": "PROC-001", "pattern": {
            "error_key": "TypeError: string indices must be integers",
            "failing_code": "print(drugs[\"mechanism\"])",
            "working_code": "for row in await drugs.search(\"kinase\"): print(row[\"mechanism\"])",
        }});
        let procedure: Procedure = serde_json::from_value(procedure).unwrap();
        let hints = [Hint::of(&procedure, "", 1.0, "same error".to_owned())];
        let expected = "CODE HINTS (learned from prior errors -- use these patterns):\n\n  \
            ERROR: TypeError: string indices must be integers\n  WRONG:\n    \
            print(drugs[\"mechanism\"])\n  CORRECT:\n    \
            for row in await drugs.search(\"kinase\"): print(row[\"mechanism\"])\n";
        assert_eq!(render_hints(&hints), expected);
        assert!(expected.ends_with(&render_blocks(&hints)));
        assert_eq!(render_hints(&[]), "");
    }
}
