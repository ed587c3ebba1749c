//! Checks a model's words against the words of the correction.
//!
//! Only what can be compared without understanding is checked: the words of a condition, numbers and
//! quoted names.

use std::collections::HashSet;

use crate::model::text::quoted_names;
use memctl_search::words;

/// Returns true if a condition has no content word that the correction lacks.
pub(crate) fn is_said(condition: &str, correction: &str) -> bool {
    let said: HashSet<String> = words(correction).into_iter().collect();
    words(condition).iter().all(|word| said.contains(word))
}

/// Numbers and quoted names of a correction that are missing in `kept`, in order. A term that the
/// input or the output holds describes this run, and may be left out.
pub(crate) fn dropped<'a>(correction: &'a str, kept: &str, run: &[&str]) -> Vec<&'a str> {
    let kept = kept.to_lowercase();
    let mut terms = quoted_names(correction);
    terms.extend(numbers(correction));
    terms.retain(|term| !kept.contains(&term.to_lowercase()));
    terms.retain(|term| !run.iter().any(|text| text.contains(term)));
    terms
}

/// Words with a digit, without the punctuation around them.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let trimmed = text
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    trimmed.filter(|word| word.chars().any(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn condition_of_other_words_is_not_said() {
        let said = "Always name the rate if an invoice is in euros.";
        for (condition, expected) in [
            ("", true),
            ("When the invoice is in euros.", true),
            ("If invoices are in euros", true),
            ("When processing invoices in euros.", false),
            ("When the customer is in Berlin.", false),
        ] {
            assert_eq!(is_said(condition, said), expected, "{condition}");
        }
    }

    #[test]
    fn numbers_and_quoted_names_of_the_demand_are_kept() {
        let check = |said: &str, kept: &str, run: &[&str], expected: &[&str]| {
            assert_eq!(dropped(said, kept, run), expected, "{said}");
        };
        check(
            "Score below 60 without `system design`.",
            "NEVER score high without \"system design\"",
            &[],
            &["60"],
        );
        check("Score below 60.", "ALWAYS score below 60", &[], &[]);
        check(
            "72 is too high, stay below 60",
            "stay below 60",
            &["{\"score\":72}"],
            &[],
        );
        check("Don't write \"Dear\"", "NEVER greet", &[], &["Dear"]);
    }
}
