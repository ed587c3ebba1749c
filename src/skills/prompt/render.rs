//! Text of layer 2, byte for byte as in the reference implementation.
//!
//! Each rule has its own lines, and its text cannot start another line. So a learned rule cannot
//! forge a layer.

use std::borrow::Cow;

use crate::model::{Reflexion, RuleRelation};
use memctl_redact::{is_unfenced, unfenced};

use super::choose::{Choice, confidence};

/// Heading of observed rules, which come from files of others.
const OBSERVED: &str = "## Rules of others (observed, not approved here)\n\n";
const HEADING: &str = "## Learned Rules (from past corrections)\n\n";

/// Layer 2; empty without rules.
pub(crate) fn render(rules: &[&Reflexion]) -> String {
    if rules.is_empty() {
        return String::new();
    }
    let marked = |rule: &&Reflexion| item(rule) + &conflicts(rule, rules);
    let items: Vec<String> = rules.iter().map(marked).collect();
    HEADING.to_owned() + &items.join("\n")
}

/// Line that names the rules in the prompt that contradict a rule, until a person decides; empty
/// without one.
fn conflicts(rule: &Reflexion, rules: &[&Reflexion]) -> String {
    let contradicts = |a: &Reflexion, b: &Reflexion| {
        let mut relations = a.relations.iter().rev();
        let last = relations.find(|related| related.id == b.reflexion_id);
        last.map(|related| related.relation == RuleRelation::Contradicts)
    };
    let others = rules.iter().filter(|other| {
        let judged = contradicts(rule, other).or_else(|| contradicts(other, rule));
        other.reflexion_id != rule.reflexion_id && judged == Some(true)
    });
    let ids: Vec<Cow<'_, str>> = others.map(|other| harmless(&other.reflexion_id)).collect();
    match ids.as_slice() {
        [] => String::new(),
        ids => format!(
            "\n  _Contradicts_: {} (not decided; ask if it matters)",
            ids.join(", ")
        ),
    }
}

/// Observed rules, fenced as data; empty without rules.
pub(crate) fn render_observed(rules: &[&Reflexion], choice: &Choice<'_>) -> String {
    if rules.is_empty() {
        return String::new();
    }
    let items: Vec<String> = rules.iter().map(|rule| item(rule)).collect();
    OBSERVED.to_owned() + (choice.fence)(&items.join("\n"), choice.nonce).trim_end()
}

/// Prompt text of one rule.
pub(crate) fn item(rule: &Reflexion) -> String {
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

/// Text on one line, without invisible characters and control words of models. So learned text
/// cannot start a heading, a ruler or another item.
pub(super) fn harmless(text: &str) -> Cow<'_, str> {
    if is_single_spaced(text) && is_unfenced(text) {
        return Cow::Borrowed(text);
    }
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if is_unfenced(&line) {
        return Cow::Owned(line);
    }
    let lines: Vec<String> = text.split_whitespace().map(unfenced).collect();
    let words = lines
        .iter()
        .map(String::as_str)
        .filter(|word| !word.is_empty());
    Cow::Owned(unfenced(&words.collect::<Vec<_>>().join(" ")))
}

/// Returns true for ASCII words with one space between them, as most texts are.
fn is_single_spaced(text: &str) -> bool {
    let is_shown = |c: &u8| c.is_ascii_graphic() || *c == b' ';
    text.bytes().all(|c| is_shown(&c)) && !text.contains("  ") && text.trim_ascii() == text
}
