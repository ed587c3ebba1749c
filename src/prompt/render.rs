//! The second layer of a prompt: rules as the reference implementation writes them, byte for byte.
//!
//! A rule stands on its own lines, and no text in it can start another one: what was learnt cannot
//! forge a layer.

use crate::guard::unfenced;
use crate::model::Reflexion;

use super::{Choice, confidence};

/// Heading of the rules that came with the files of others.
const OBSERVED: &str = "## Rules of others (observed, not approved here)\n\n";
const HEADING: &str = "## Learned Rules (from past corrections)\n\n";

/// Layer 2, or nothing.
pub(super) fn render(rules: &[&Reflexion]) -> String {
    if rules.is_empty() {
        return String::new();
    }
    let items: Vec<String> = rules.iter().map(|rule| item(rule)).collect();
    HEADING.to_owned() + &items.join("\n")
}

/// Rules that nobody here stands behind, as data; or nothing.
pub(super) fn render_observed(rules: &[&Reflexion], choice: &Choice<'_>) -> String {
    if rules.is_empty() {
        return String::new();
    }
    let items: Vec<String> = rules.iter().map(|rule| item(rule)).collect();
    OBSERVED.to_owned() + (choice.fence)(&items.join("\n"), choice.nonce).trim_end()
}

/// A rule as it stands in a prompt.
pub(super) fn item(rule: &Reflexion) -> String {
    let id = if rule.reflexion_id.is_empty() {
        "REFL-?"
    } else {
        &rule.reflexion_id
    };
    let percent = confidence(rule) * 100.0;
    let validated = if rule.validated_by_test {
        " [validated]"
    } else {
        ""
    };
    let source = match rule.source.as_str() {
        "" | "correction" => String::new(),
        other => format!(" [{}]", harmless(other)),
    };
    let mut out = format!(
        "- **{}** (confidence: {percent:.0}%{validated}{source}): {}",
        harmless(id),
        harmless(&rule.rule),
    );
    let applies = harmless(&rule.applies_when);
    if !applies.is_empty() {
        out.push_str("\n  _Applies when_: ");
        out.push_str(&applies);
    }
    out
}

/// The text on one line, without characters that are not seen and without control words of a model:
/// learnt text cannot start a line of its own, and with it a heading, a ruler or another item.
fn harmless(text: &str) -> String {
    let lines: Vec<String> = text.split_whitespace().map(unfenced).collect();
    let words = lines
        .iter()
        .map(String::as_str)
        .filter(|word| !word.is_empty());
    unfenced(&words.collect::<Vec<_>>().join(" "))
}
