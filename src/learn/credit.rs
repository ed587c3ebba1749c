//! Which rules an outcome speaks of.
//!
//! A verdict on an output says something of the rules that stood in its prompt, but only of those whose
//! condition held: a rule about senior roles has no part in what came of a junior one. A correction
//! says more: it names what was wrong, and speaks against the rules that it repeats, because they were
//! not obeyed, and against those that it contradicts; of the others it says nothing.
//!
//! Pure: who counts it is the engine.

use std::collections::BTreeSet;

use crate::model::Reflexion;
use crate::search::words;

use super::conflict::{Statement, relation};
use super::wording;

/// Words of conditions that hold of every case.
const EVERY: &[&str] = &["execut", "input", "output", "skill", "task", "case"];

/// Whether the condition of a rule holds for a case, given as its text. A rule without a condition
/// always holds.
pub fn applies(rule: &Reflexion, case: &str) -> bool {
    let condition = condition(rule);
    if condition.is_empty() {
        return true;
    }
    let case: BTreeSet<String> = words(case).into_iter().collect();
    condition.iter().any(|word| case.contains(word))
}

/// The telling words of a rule's condition; empty where it has none.
fn condition(rule: &Reflexion) -> BTreeSet<String> {
    let (sentence, _) = wording::first_sentence(&rule.rule);
    let said = wording::condition(sentence).map_or("", |(condition, _)| condition);
    words(said)
        .into_iter()
        .filter(|word| !EVERY.contains(&word.as_str()))
        .collect()
}

/// Which of some rules, given by their utilities, a rejection is counted against: those that stood
/// worst before. Where several had a part in what went wrong, most of them are innocent, and the
/// doubtful one is the likelier culprit.
pub fn blamed(utilities: &[f64]) -> Vec<bool> {
    let worst = utilities.iter().copied().fold(f64::INFINITY, f64::min);
    utilities
        .iter()
        .map(|utility| *utility <= worst + DOUBT)
        .collect()
}

/// Utilities this close are equal.
const DOUBT: f64 = 0.05;

/// Whether a correction speaks against a rule: it says it again, or says the opposite.
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
