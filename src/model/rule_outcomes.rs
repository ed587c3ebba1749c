//! Effect of outcomes on a rule's counts, confidence and utility.
//!
//! The confidence starts at the score of the rule's text and moves with every counted outcome. It
//! is the mean of a Beta posterior, updated one outcome at a time, so the stored value is the whole
//! state. The utility is the posterior of the counts alone, as in the reference implementation.
//!
//! Deliberately absent: the mapping from outcomes to rules.

use crate::model::Reflexion;

/// Weight of the initial confidence, in outcomes.
const PROMISE: f64 = 4.0;

impl Reflexion {
    /// Counts one injection of the rule into a prompt.
    pub fn count_shown(&mut self) {
        self.times_injected = Some(self.times_injected.unwrap_or(0.0) + 1.0);
    }

    /// Counts one outcome for or against the rule.
    pub fn count_outcome(&mut self, helped: bool) {
        let weight = PROMISE + self.outcomes();
        let confidence = self.confidence.unwrap_or(0.5);
        self.confidence = Some(share(
            (confidence * weight + f64::from(helped)) / (weight + 1.0),
        ));
        self.move_count(helped, 1.0);
    }

    /// Reverts one counted outcome; does nothing if the count is zero. Leaves the confidence
    /// unchanged if only the reference implementation has counted, because its counts do not move
    /// the confidence.
    pub fn revert_outcome(&mut self, helped: bool) {
        let counted = if helped {
            self.times_helped
        } else {
            self.times_harmed
        };
        if counted.unwrap_or(0.0) < 1.0 {
            return;
        }
        if let (Some(_), Some(confidence)) = (self.times_harmed, self.confidence) {
            let weight = PROMISE + self.outcomes();
            self.confidence = Some(share(
                (confidence * weight - f64::from(helped)) / (weight - 1.0),
            ));
        }
        self.move_count(helped, -1.0);
    }

    /// Returns the initial confidence, with the effect of counted outcomes removed.
    pub fn promised(&self) -> Option<f64> {
        let confidence = self.confidence?;
        if self.times_harmed.is_none() || self.outcomes() == 0.0 {
            return Some(confidence);
        }
        let helped = self.times_helped.unwrap_or(0.0).max(0.0);
        Some(share(
            (confidence * (PROMISE + self.outcomes()) - helped) / PROMISE,
        ))
    }

    /// Takes over the evidence and the tests of another rule with the same meaning. Of two counts the larger
    /// stays: rules with the same meaning are mostly in the same prompts, and a run counts once.
    pub fn take_over(&mut self, other: &Self) {
        let before = (self.outcomes(), self.times_helped.unwrap_or(0.0).max(0.0));
        for (own, others) in [
            (&mut self.times_injected, other.times_injected),
            (&mut self.times_helped, other.times_helped),
            (&mut self.times_harmed, other.times_harmed),
        ] {
            if let Some(count) = others {
                *own = Some(own.unwrap_or(0.0).max(count));
            }
        }
        let outcomes = self.outcomes() - before.0;
        if outcomes > 0.0 {
            let helped = self.times_helped.unwrap_or(0.0).max(0.0) - before.1;
            let weight = PROMISE + before.0;
            let confidence = self.confidence.unwrap_or(0.5);
            self.confidence = Some(share((confidence * weight + helped) / (weight + outcomes)));
            self.weigh();
        }
        for test in &other.generated_test_ids {
            if !self.generated_test_ids.contains(test) {
                self.generated_test_ids.push(test.clone());
            }
        }
        self.validated_by_test |= !self.generated_test_ids.is_empty();
    }

    /// Returns `true` if `other` was merged into this rule: this rule supersedes it and covers its
    /// correction. A rule that only supersedes another does not cover its correction.
    pub fn has_taken_over(&self, other: &Self) -> bool {
        let correction = &other.correction_id;
        !self.reflexion_id.is_empty()
            && !correction.is_empty()
            && other.superseded_by == self.reflexion_id
            && (self.correction_id == *correction || self.also_corrected_by.contains(correction))
    }

    /// Number of outcomes counted.
    fn outcomes(&self) -> f64 {
        let count = |field: Option<f64>| field.unwrap_or(0.0).max(0.0);
        count(self.times_helped) + count(self.times_harmed)
    }

    fn move_count(&mut self, helped: bool, by: f64) {
        let count = if helped {
            &mut self.times_helped
        } else {
            &mut self.times_harmed
        };
        *count = Some((count.unwrap_or(0.0) + by).max(0.0));
        self.weigh();
    }

    /// Recomputes the utility from the counts.
    pub fn weigh(&mut self) {
        self.times_harmed.get_or_insert(0.0);
        if self.superseded_by.is_empty() {
            self.utility_score = Some((self.evidence().posterior() * 1000.0).round() / 1000.0);
        }
    }
}

/// Rounds a share for storage: between 0 and 1, with four decimals.
fn share(figure: f64) -> f64 {
    (figure.clamp(0.0, 1.0) * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_moves_the_confidence_once_and_can_be_taken_back() {
        let rule = |json: &str| -> Reflexion {
            serde_json::from_str(&format!(r#"{{"rule": "r", {json}}}"#)).unwrap()
        };
        let check = |json: &str, outcomes: &[bool], expected: f64| {
            let mut rule = rule(json);
            let (before, promised) = (rule.clone(), rule.promised());
            for helped in outcomes {
                rule.count_outcome(*helped);
            }
            let confidence = |rule: &Reflexion| rule.confidence.unwrap_or(-1.0);
            // Each step rounds to four decimals, so the last one may differ.
            assert!(
                (confidence(&rule) - expected).abs() < 2e-4,
                "{json} {rule:?}"
            );
            if before.times_harmed.is_some() || before.times_helped.is_none() {
                let found = rule.promised().unwrap() - promised.unwrap_or(0.5);
                assert!(found.abs() < 5e-4, "{json}: {found}");
            }
            for helped in outcomes {
                rule.revert_outcome(*helped);
            }
            let off = confidence(&rule) - before.confidence.unwrap_or(0.5);
            assert!(off.abs() < 5e-4, "{json}: {off}");
            assert_eq!(rule.evidence(), before.evidence(), "{json}");
        };
        check(r#""confidence": 0.9"#, &[], 0.9);
        check(r#""confidence": 0.9"#, &[true], 0.92);
        check(r#""confidence": 0.9"#, &[false], 0.72);
        check(r#""confidence": 0.9"#, &[false, true, false], 0.6571);
        check(r#""x": 0"#, &[true], 0.6);
        check(r#""confidence": 1"#, &[true, true], 1.0);
        check(r#""confidence": 0"#, &[false], 0.0);
        // Counts of the reference implementation carry weight, and are not applied twice.
        check(r#""confidence": 0.9, "times_helped": 6"#, &[false], 0.8182);
        check(r#""confidence": 0.9, "times_helped": 6"#, &[], 0.9);

        let mut theirs = rule(r#""confidence": 0.9, "times_helped": 6"#);
        assert_eq!(theirs.promised(), Some(0.9));
        theirs.revert_outcome(true);
        assert_eq!(
            (theirs.confidence, theirs.times_helped),
            (Some(0.9), Some(5.0))
        );
        let mut none = rule(r#""confidence": 0.9"#);
        none.revert_outcome(false);
        assert_eq!((none.confidence, none.times_harmed), (Some(0.9), None));
    }

    #[test]
    fn only_what_stands_for_the_same_correction_has_taken_over() {
        let check = |one: &str, other: &str, expected: bool| {
            let rule = |json: &str| -> Reflexion { serde_json::from_str(json).unwrap() };
            assert_eq!(
                rule(one).has_taken_over(&rule(other)),
                expected,
                "{one} {other}"
            );
        };
        let other = r#"{"correction_id": "CORR-002", "superseded_by": "REFL-001"}"#;
        let merged = r#"{"reflexion_id": "REFL-001", "also_corrected_by": ["CORR-002"]}"#;
        check(merged, other, true);
        check(merged, r#"{"correction_id": "CORR-002"}"#, false);
        check(r#"{"reflexion_id": "REFL-001"}"#, other, false);
        check(
            r#"{"reflexion_id": "REFL-001"}"#,
            r#"{"superseded_by": "REFL-001"}"#,
            false,
        );
    }
}
