//! Finds the rules that a complaint counts against, by its words and its meaning.
//!
//! A correction names the mistake. It counts against the rules that it repeats, because the model did not follow
//! them. Otherwise it counts against the one rule that it is clearly about.
//!
//! Deliberately absent: a guess. Where two rules are as near, none is blamed.

use std::collections::BTreeSet;

use memctl_search::words;

use crate::model::Reflexion;

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

/// Returns the rule that a rejection counts against, by index, and the ground; `None` if it is not clear.
/// `cosines` are those of the rules to the reason; empty without vectors.
pub fn at_fault(
    reason: &str,
    rules: &[Reflexion],
    cosines: &[f64],
) -> Option<(usize, &'static str)> {
    if words(reason).len() < SPECIFIC {
        return (rules.len() == 1).then_some((0, "no other rule applied"));
    }
    let repeated = |at: &usize| speaks_against(reason, &rules[*at]);
    if let [only] = (0..rules.len()).filter(repeated).collect::<Vec<_>>()[..] {
        return Some((only, "the reason repeats it"));
    }
    let mut order: Vec<usize> = (0..cosines.len()).collect();
    order.sort_by(|a, b| cosines[*b].total_cmp(&cosines[*a]));
    let best = *order.first()?;
    let second = order.get(1).map_or(f64::NEG_INFINITY, |at| cosines[*at]);
    let is_clear = cosines[best] >= ABOUT && cosines[best] - second >= LEAD;
    is_clear.then_some((best, "the reason is about it"))
}

/// Returns the rules that a correction counts against, by index: those that it repeats, or else the
/// one that it is clearly about. `cosines` are those of the rules to the correction.
pub fn corrected(correction: &str, rules: &[Reflexion], cosines: &[f64]) -> Vec<usize> {
    let repeats = |at: &usize| speaks_against(correction, &rules[*at]);
    let repeated: Vec<usize> = (0..rules.len()).filter(repeats).collect();
    if !repeated.is_empty() {
        return repeated;
    }
    let about = at_fault(correction, rules, cosines).map(|(at, _)| at);
    let is_near = |at: &usize| cosines.get(*at).is_some_and(|near| *near >= OPPOSITE);
    about.filter(is_near).into_iter().collect()
}

/// Returns true if a correction repeats a rule, which then was not followed.
fn speaks_against(correction: &str, rule: &Reflexion) -> bool {
    let own_words: BTreeSet<String> = words(correction).into_iter().collect();
    !own_words.is_empty() && own_words == words(&rule.rule).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Reflexion {
        serde_json::from_value(serde_json::json!({ "rule": text })).unwrap()
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
        check(
            "never name rivals!",
            &[],
            Some((0, "the reason repeats it")),
        );
        let reason = "the pay band of the role is missing";
        check(
            reason,
            &[0.1, 0.2, 0.55],
            Some((2, "the reason is about it")),
        );
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
        assert_eq!(
            at_fault("no", alone, &[0.0]),
            Some((0, "no other rule applied"))
        );
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
