//! Selects the rules that an outcome counts for.
//!
//! A verdict on an output counts only for rules in its prompt whose condition held: a rule about
//! senior roles does not affect a junior one. A correction names the mistake. It counts against
//! rules that it repeats, because they were not followed, or against the one rule that it is clearly
//! about: it says the opposite, or that the rule did not do.
//!
//! Pure: the engine stores the counts.

use std::collections::BTreeSet;

use crate::model::Reflexion;
use memctl_search::words;

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
    words(&rule.applies_when)
        .into_iter()
        .filter(|word| !EVERY.contains(&word.as_str()))
        .collect()
}

/// Minimum cosine of a reason and the rule that it is about. Of 100 pairs of texts about different
/// things one is above it.
const ABOUT: f64 = 0.41;
/// Minimum lead over the second nearest rule.
const LEAD: f64 = 0.1;
/// Minimum cosine of a correction and the rule that it says the opposite of. A correction of something
/// beside a rule is below it.
const OPPOSITE: f64 = 0.7;
/// Number of words from which a reason says what it is about.
const SPECIFIC: usize = 3;

/// Ground for counting a rejection against a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The person named the rule.
    Named,
    /// The reason repeats this rule alone.
    Opposed,
    /// The reason is clearly nearer to this rule than to the others.
    Nearest,
    /// The prompt held no other rule that applies, and the reason names nothing else.
    Alone,
}

/// Returns the rule that a rejection counts against, by index; `None` if it is not clear. `cosines`
/// are those of the rules to the reason; empty without vectors.
pub fn at_fault(reason: &str, rules: &[Reflexion], cosines: &[f64]) -> Option<(usize, Fault)> {
    let is_specific = words(reason).len() >= SPECIFIC;
    if !is_specific {
        return (rules.len() == 1).then_some((0, Fault::Alone));
    }
    let opposed: Vec<usize> = (0..rules.len())
        .filter(|at| speaks_against(reason, &rules[*at]))
        .collect();
    if let [only] = opposed[..] {
        return Some((only, Fault::Opposed));
    }
    let mut order: Vec<usize> = (0..cosines.len()).collect();
    order.sort_by(|a, b| cosines[*b].total_cmp(&cosines[*a]));
    let best = *order.first()?;
    let second = order.get(1).map_or(f64::NEG_INFINITY, |at| cosines[*at]);
    (cosines[best] >= ABOUT && cosines[best] - second >= LEAD).then_some((best, Fault::Nearest))
}

/// Returns the rules that a correction counts against, by index: those that it repeats, or else the
/// one that it is clearly about. `cosines` are those of the rules to the correction.
pub fn corrected(correction: &str, rules: &[Reflexion], cosines: &[f64]) -> Vec<usize> {
    let repeats = |at: &usize| speaks_against(correction, &rules[*at]);
    let repeated: Vec<usize> = (0..rules.len()).filter(repeats).collect();
    if !repeated.is_empty() {
        return repeated;
    }
    let about = at_fault(correction, rules, cosines);
    let about = about.filter(|(at, _)| cosines.get(*at).is_some_and(|near| *near >= OPPOSITE));
    about.into_iter().map(|(at, _)| at).collect()
}

/// Returns true if a correction repeats a rule, which then was not followed.
pub fn speaks_against(correction: &str, rule: &Reflexion) -> bool {
    let said: BTreeSet<String> = words(correction).into_iter().collect();
    !said.is_empty() && said == words(&rule.rule).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Reflexion {
        serde_json::from_value(serde_json::json!({ "rule": text })).unwrap()
    }

    #[test]
    fn a_rule_has_a_part_in_the_cases_of_its_condition() {
        let senior = Reflexion {
            applies_when: "When screening for senior roles.".to_owned(),
            ..rule("ALWAYS weigh design.")
        };
        assert!(applies(&senior, r#"{"role": "Senior Engineer"}"#));
        assert!(!applies(&senior, r#"{"title": "Accountant"}"#));
        assert!(applies(&rule("ALWAYS be brief."), "anything"));
    }

    #[test]
    fn a_rejection_blames_one_rule_or_none() {
        let rules = [
            rule("NEVER name rivals."),
            rule("ALWAYS weigh design."),
            rule("ALWAYS state the salary range."),
        ];
        let check = |reason: &str, cosines: &[f64], expected| {
            assert_eq!(at_fault(reason, &rules, cosines), expected, "{reason}");
        };
        check("it named rivals in the summary", &[], None);
        check("never name rivals!", &[], Some((0, Fault::Opposed)));
        let reason = "the pay band of the role is missing";
        check(reason, &[0.1, 0.2, 0.55], Some((2, Fault::Nearest)));
        check(reason, &[0.1, 0.5, 0.55], None);
        check(reason, &[0.1, 0.2, 0.35], None);
        check("this is bad", &[0.1, 0.2, 0.9], None);
        check("", &[], None);
        let check = |correction: &str, cosines: &[f64], expected: &[usize]| {
            assert_eq!(
                corrected(correction, &rules, cosines),
                expected,
                "{correction}"
            );
        };
        check("never name rivals!", &[], &[0]);
        check("ALWAYS name the rivals.", &[0.9, 0.2, 0.1], &[0]);
        check("Say which office it is in.", &[0.1, 0.2, 0.55], &[]);
        check("ALWAYS name the rivals.", &[0.9, 0.85, 0.1], &[]);
        let alone = &rules[..1];
        assert_eq!(at_fault("no", alone, &[0.0]), Some((0, Fault::Alone)));
        assert_eq!(at_fault(reason, alone, &[0.1]), None);
    }

    #[test]
    fn a_correction_speaks_against_what_it_repeats() {
        let rule = rule("NEVER name rivals.");
        assert!(speaks_against("Never name rivals!", &rule));
        assert!(!speaks_against("Name rivals in the summary", &rule));
        assert!(!speaks_against("", &rule));
    }
}
