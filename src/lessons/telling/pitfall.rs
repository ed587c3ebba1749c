//! Pitfalls: general rules for working here, derived from classes of errors.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::model::text::word_lists;

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
pub(crate) fn of_error(text: &str, tool: Option<&str>) -> Option<Pitfall> {
    let place = match tool {
        None | Some(SANDBOX_TOOL) => RunsIn::Sandbox,
        Some(_) => RunsIn::Shell,
    };
    // Shell errors can also occur in a sandbox, but not vice versa. Those of the sandbox come first.
    let mut classes = CLASSES.iter().filter(|class| class.place >= place);
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

/// Environment that a rule applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RunsIn {
    Sandbox,
    Shell,
}

/// Class of errors: where it occurs, texts that must all stand in the error, and its rule.
#[derive(Deserialize)]
struct Class {
    place: RunsIn,
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
    fn a_class_has_its_rule_in_its_place() {
        let check = |text: &str, tool: Option<&str>, expected: Option<&str>| {
            let found = of_error(text, tool).map(|pitfall| pitfall.rule);
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
        let pitfall = of_error("KeyError: 'a'", None).unwrap();
        let text = render_pitfalls(&vec![pitfall; 20]);
        assert_eq!(text.matches("aggregate()").count(), MAX_RULES);
    }
}
