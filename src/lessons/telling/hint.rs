//! Hint: what an agent is told about a failure, as a view of a procedure.
//!
//! Pitfalls are general rules for working here, derived from classes of errors.

use std::sync::LazyLock;

use memctl_redact::{beginning, lines};
use serde::{Deserialize, Serialize};

use crate::lessons::storage::advice::advice;
use crate::model::text::word_lists;
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
    /// Line of the error of the pattern; empty for a procedure without a pattern.
    #[serde(skip)]
    pub(crate) error_line: String,
    /// File that it was read from, if that has changed since.
    #[serde(skip)]
    pub(crate) changed_file: Option<String>,
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
            advice: advice(procedure),
            error_line: clean(pattern.line()),
            changed_file: None,
        }
    }
}

#[cfg(test)]
impl Hint {
    /// Unreviewed pattern of two calls, for tests.
    pub(crate) fn of_calls(id: &str, failing: &str, working: &str) -> Self {
        Self {
            id: id.to_owned(),
            kind: Kind::Procedure,
            lesson: String::new(),
            error_key: "E".to_owned(),
            failing_code: failing.to_owned(),
            working_code: working.to_owned(),
            success_output: String::new(),
            score: 1.0,
            confidence: 0.5,
            evidence: Evidence::default(),
            trust: Trust::Observed,
            why: String::new(),
            advice: Vec::new(),
            error_line: String::new(),
            changed_file: None,
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
    beginning(&memctl_redact::redact(text).text, SHOWN).into_owned()
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
    pub outcome: Option<HintOutcome>,
    /// True if the evidence includes this use.
    pub counted: bool,
    /// True if it was shown before the call, not at its failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub before: bool,
}

/// Outcome of a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HintOutcome {
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
        // The line as it was says more than its key.
        let line = match hint.error_line.as_str() {
            "" => &hint.error_key,
            line => line,
        };
        render_block(&hint.lesson, line, &hint.failing_code, &hint.working_code)
    };
    hints.iter().map(block).collect()
}

/// One hint: its lesson if it has one, else failing and working code, else the steps of a procedure
/// without a failing call.
pub(crate) fn render_block(lesson: &str, error_key: &str, failing: &str, working: &str) -> String {
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

/// Maximum number of rules shown.
pub(crate) const MAX_RULES: usize = 8;

/// Class of an error, and its rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pitfall {
    /// Class, such as `NameError`.
    pub error: String,
    /// Rule for working here.
    pub rule: String,
}

/// Pitfall that matches an error text; `None` if there is none. `tool` ran the code; `None` means
/// the sandbox of an agent that records its own failures.
pub(crate) fn pitfall_of(text: &str, tool: Option<&str>) -> Option<Pitfall> {
    let is_sandbox = tool.is_none_or(|tool| tool == SANDBOX_TOOL);
    // Shell errors can also occur in a sandbox, but not vice versa. Those of the sandbox come first.
    let mut classes = CLASSES
        .iter()
        .filter(|class| is_sandbox || class.place == "shell");
    let found = classes.find(|class| class.parts.iter().all(|part| text.contains(part)))?;
    Some(found.pitfall.clone())
}

/// Rules as text, at most [`MAX_RULES`]; empty if there are none.
pub(crate) fn render_pitfalls(pitfalls: &[Pitfall]) -> String {
    if pitfalls.is_empty() {
        return String::new();
    }
    let mut text = "PITFALLS (learned from errors in this session):\n".to_owned();
    for pitfall in pitfalls.iter().take(MAX_RULES) {
        text.extend(["\n  - ", &pitfall.error, ": ", &pitfall.rule]);
    }
    text.push('\n');
    text
}

/// Tool of the source document's sandbox.
pub(crate) const SANDBOX_TOOL: &str = "execute_code";

/// Class of errors: where it occurs, texts that the error must contain, and its rule.
#[derive(Deserialize)]
struct Class {
    place: String,
    parts: Vec<String>,
    #[serde(flatten)]
    pitfall: Pitfall,
}

/// Classes in the order in which they are tried.
static CLASSES: LazyLock<Vec<Class>> = LazyLock::new(|| word_lists(include_str!("pitfalls.json")));

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

#[cfg(test)]
mod tests_of_pitfalls {
    use super::*;

    #[test]
    fn a_class_has_its_rule_in_its_place() {
        let check = |text: &str, tool: Option<&str>, expected: Option<&str>| {
            let found = pitfall_of(text, tool).map(|pitfall| pitfall.rule);
            let fits = match (&found, expected) {
                (Some(rule), Some(beginning)) => rule.starts_with(beginning),
                (None, None) => true,
                _ => false,
            };
            assert!(fits, "{text}: {found:?}");
        };
        let name = "NameError: name 'x' is not defined";
        check(
            name,
            None,
            Some("Variables do NOT persist between execute_code calls."),
        );
        check(name, Some("execute_code"), Some("Variables do NOT persist"));
        check(name, Some("Bash"), Some("A Python name was not defined"));
        check(
            "globals() not available",
            None,
            Some("Use collection methods"),
        );
        check("globals() not available", Some("Bash"), None);
        check(
            "Code rejected: forbidden import json",
            None,
            Some("json, defaultdict"),
        );
        check(
            "KeyError: 'mechanism'",
            None,
            Some("Check field names with aggregate()"),
        );
        check("bash: foo: command not found", Some("Bash"), None);
        check("all is well", None, None);
    }

    #[test]
    fn at_most_so_many_rules_are_shown() {
        assert_eq!(render_pitfalls(&[]), "");
        let pitfall = pitfall_of("KeyError: 'a'", None).unwrap();
        let text = render_pitfalls(&vec![pitfall; 20]);
        assert_eq!(text.matches("aggregate()").count(), MAX_RULES);
    }
}
