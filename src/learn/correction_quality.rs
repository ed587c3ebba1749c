//! Confidence in a correction: how specific and actionable it is.

use super::wording;

fn demands(said: &str) -> bool {
    let rule = wording::as_rule(said);
    rule.contains("ALWAYS") || rule.contains("NEVER")
}

/// Confidence in a remark from which no rule follows.
pub(crate) const REMARK: f64 = 0.5;

/// Confidence in a lasting correction, from 0.6 to 1: a demand, a condition, numbers, names and an
/// explanation each add to it.
pub(crate) fn confidence(said: &str) -> f64 {
    let lower = format!(" {} ", said.to_lowercase());
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let words = said.split(' ').count();
    let points: [(bool, f64); 6] = [
        (
            demands(said) || has(&[" avoid ", " prefer ", " only "]),
            0.10,
        ),
        (
            has(&[
                " when ", " if ", " for ", " unless ", " whenever ", " without ", " before ",
                " after ",
            ]),
            0.08,
        ),
        (said.contains(|c: char| c.is_ascii_digit()), 0.06),
        (names_something(said), 0.05),
        (words >= 8, 0.04),
        (words >= 18, 0.03),
    ];
    let sum: f64 = points
        .iter()
        .filter(|(holds, _)| *holds)
        .map(|(_, worth)| worth)
        .sum();
    ((0.60 + sum) * 100.0).round() / 100.0
}

/// Returns true if a text contains a quotation, a name or an identifier.
fn names_something(said: &str) -> bool {
    let quoted = said.contains(['`', '"', '“']);
    let named = said.split(' ').skip(1).any(|word| {
        let inner = word.trim_matches(|c: char| !c.is_alphanumeric());
        let mut chars = inner.chars();
        let capital = chars.next().is_some_and(char::is_uppercase) && inner != "I";
        capital || inner.contains('_') || chars.any(char::is_uppercase)
    });
    quoted || named
}
