//! Selects the rules that an outcome counts for.
//!
//! A verdict on an output counts only for rules in its prompt whose condition held: a rule about
//! senior roles does not affect a junior one. A correction names the mistake. It counts against
//! rules that it repeats, because they were not followed, and against rules that it contradicts. It
//! does not count for other rules.
//!
//! Pure: the engine stores the counts.

use std::collections::BTreeSet;

use crate::model::Reflexion;
use crate::search::words;

use super::conflict::{Statement, relation};
use super::wording;

/// Words in conditions that fit every case.
const EVERY: &[&str] = &["execut", "input", "output", "skill", "task", "case"];

/// Returns true if the condition of a rule holds for a case, given as text. A rule without a
/// condition always applies.
pub fn applies(rule: &Reflexion, case: &str) -> bool {
    let condition = condition(rule);
    if condition.is_empty() {
        return true;
    }
    let case: BTreeSet<String> = words(case).into_iter().collect();
    condition.iter().any(|word| case.contains(word))
}

/// Significant words of a rule's condition; empty without one.
fn condition(rule: &Reflexion) -> BTreeSet<String> {
    let (sentence, _) = wording::first_sentence(&rule.rule);
    let said = wording::condition(sentence).map_or("", |(condition, _)| condition);
    words(said)
        .into_iter()
        .filter(|word| !EVERY.contains(&word.as_str()))
        .collect()
}

/// Selects the rules that a rejection counts against, by their utilities: those with the lowest,
/// within `DOUBT`. If several rules were involved, most are innocent, and the weakest is the
/// likeliest cause.
pub fn blamed(utilities: &[f64]) -> Vec<bool> {
    let worst = utilities.iter().copied().fold(f64::INFINITY, f64::min);
    utilities
        .iter()
        .map(|utility| *utility <= worst + DOUBT)
        .collect()
}

/// Maximum difference between equal utilities.
const DOUBT: f64 = 0.05;

/// Returns true if a correction repeats or contradicts a rule.
pub fn speaks_against(correction: &str, rule: &Reflexion) -> bool {
    relation(&Statement::of(&rule.rule), &Statement::of(correction), None).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Reflexion {
        serde_json::from_value(serde_json::json!({ "rule": text })).unwrap()
    }

    #[test]
    fn a_rule_has_a_part_in_the_cases_of_its_condition() {
        let senior = rule("When screening for senior roles, ALWAYS weigh design.");
        assert!(applies(&senior, r#"{"role": "Senior Engineer"}"#));
        assert!(!applies(&senior, r#"{"title": "Accountant"}"#));
        assert!(applies(&rule("ALWAYS be brief."), "anything"));
    }

    #[test]
    fn a_correction_speaks_against_what_it_repeats_or_contradicts() {
        let rule = rule("NEVER name rivals.");
        assert!(speaks_against("Do not name rivals", &rule));
        assert!(speaks_against("Name rivals", &rule));
        assert!(!speaks_against("Mention the salary", &rule));
    }
}
