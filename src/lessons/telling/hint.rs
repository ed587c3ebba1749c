//! Hint: what an agent is told about a failure, as a view of a procedure.

use serde::Serialize;

use crate::lessons::telling::evidence;
use crate::model::{Evidence, Kind, Procedure, Record as _, Trust};

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
