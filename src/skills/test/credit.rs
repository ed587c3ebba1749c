//! Stores test results in the records of rules.
//!
//! A test counts once per rule, however often it runs: the same case is no new evidence. A later
//! run may revoke a validation, but the evidence that was counted stays.

use serde_json::{Value, json};

use crate::model::{Kind, Reflexion};
use crate::store::Writer;

use super::{CaseReport, Error, Status};
use crate::rules::evidence::counts;

/// Stores the result of a case for the rules of its skill.
pub(crate) fn credit(
    writer: &mut Writer,
    rules: &[Reflexion],
    report: &CaseReport,
) -> Result<(), Error> {
    let changes = rules.iter().map(|rule| {
        let validates = report.status == Status::Passed
            && report.reflexion_id.as_ref() == Some(&rule.reflexion_id);
        let breaks = report.broken_by.contains(&rule.reflexion_id);
        let partly = report.status == Status::Partial
            && report.reflexion_id.as_ref() == Some(&rule.reflexion_id);
        let changes = changes(
            rule,
            &report.id,
            Effect {
                validates,
                partly,
                breaks,
            },
        );
        (rule.reflexion_id.clone(), changes)
    });
    let changes: Vec<_> = changes.filter(|(_, fields)| !fields.is_empty()).collect();
    Ok(writer.update_all(Kind::Reflexion, &changes)?)
}

/// Effect of a test on a rule.
#[derive(Debug, Clone, Copy, Default)]
struct Effect {
    /// The test fails without the rule and passes with it.
    validates: bool,
    /// The rule satisfies some demands of the test.
    partly: bool,
    /// The test fails because of the rule.
    breaks: bool,
}

/// Returns the fields of a rule that a test changes.
fn changes(rule: &Reflexion, test: &str, effect: Effect) -> Vec<(&'static str, Value)> {
    let Effect {
        validates,
        partly,
        breaks,
    } = effect;
    let mut changes = Vec::new();
    let toggled = |ids: &[String], wanted: bool| {
        let has = ids.iter().any(|id| id == test);
        let others = ids.iter().filter(|id| *id != test).cloned();
        (has != wanted).then(|| {
            others
                .chain(wanted.then(|| test.to_owned()))
                .collect::<Vec<_>>()
        })
    };
    let mut counted = rule.clone();
    let mut seen = false;
    let whole = toggled(&rule.generated_test_ids, validates);
    let partial = toggled(&rule.partial_test_ids, partly);
    if whole.is_some() || partial.is_some() {
        let has =
            |ids: &Option<Vec<String>>, old: &[String]| !ids.as_deref().unwrap_or(old).is_empty();
        let is_valid =
            has(&whole, &rule.generated_test_ids) && !has(&partial, &rule.partial_test_ids);
        if rule.validated_by_test != is_valid {
            changes.push(("validated_by_test", json!(is_valid)));
        }
    }
    if let Some(ids) = whole {
        if validates {
            counted.count_outcome(true);
            seen = true;
        }
        changes.push(("generated_test_ids", json!(ids)));
    }
    if let Some(ids) = partial {
        changes.push(("partial_test_ids", json!(ids)));
    }
    if let Some(ids) = toggled(&rule.breaks_test_ids, breaks) {
        if breaks {
            counted.count_outcome(false);
            seen = true;
        }
        changes.push(("breaks_test_ids", json!(ids)));
    }
    if seen {
        counted.count_shown();
        changes.extend(counts(&counted));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(fields: &Value) -> Reflexion {
        let mut all = json!({"reflexion_id": "REFL-001", "rule": "r", "confidence": 0.9});
        for (name, value) in fields.as_object().unwrap() {
            all[name] = value.clone();
        }
        serde_json::from_value(all).unwrap()
    }

    fn check(fields: &Value, validates: bool, breaks: bool, expected: &Value) {
        let effect = Effect {
            validates,
            breaks,
            ..Effect::default()
        };
        check_effect(fields, effect, expected);
    }

    fn check_effect(fields: &Value, effect: Effect, expected: &Value) {
        let found: serde_json::Map<String, Value> = changes(&rule(fields), "t1", effect)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        assert_eq!(Value::Object(found), *expected, "{fields}");
    }

    #[test]
    fn a_test_counts_once() {
        let known = json!({"validated_by_test": true, "generated_test_ids": ["t1"]});
        check(
            &json!({}),
            true,
            false,
            &json!({"validated_by_test": true, "generated_test_ids": ["t1"],
            "times_injected": 1, "times_helped": 1, "times_harmed": 0, "utility_score": 0.6,
            "confidence": 0.92}),
        );
        check(&known, true, false, &json!({}));
        check(&json!({"breaks_test_ids": ["t1"]}), false, true, &json!({}));
        check(&json!({}), false, false, &json!({}));
    }

    #[test]
    fn a_rule_that_satisfies_some_demands_is_not_validated() {
        let partly = Effect {
            partly: true,
            ..Effect::default()
        };
        let validated = json!({"validated_by_test": true, "generated_test_ids": ["t0", "t1"]});
        check_effect(
            &validated,
            partly,
            &json!({"validated_by_test": false, "generated_test_ids": ["t0"],
            "partial_test_ids": ["t1"]}),
        );
        let partial = json!({"partial_test_ids": ["t1"]});
        check_effect(&partial, partly, &json!({}));
        check_effect(
            &json!({"partial_test_ids": ["t1"], "times_injected": 1, "times_helped": 0,
            "times_harmed": 0}),
            Effect {
                validates: true,
                ..Effect::default()
            },
            &json!({"validated_by_test": true, "generated_test_ids": ["t1"],
            "partial_test_ids": [], "times_injected": 2, "times_helped": 1, "times_harmed": 0,
            "utility_score": 0.6, "confidence": 0.92}),
        );
    }

    #[test]
    fn a_rule_that_breaks_a_test_loses_confidence() {
        check(
            &json!({}),
            false,
            true,
            &json!({"breaks_test_ids": ["t1"], "times_injected": 1, "times_harmed": 1,
            "utility_score": 0.4, "confidence": 0.72}),
        );
    }

    #[test]
    fn what_holds_no_longer_is_taken_back() {
        check(
            &json!({"validated_by_test": true, "generated_test_ids": ["t1"]}),
            false,
            false,
            &json!({"validated_by_test": false, "generated_test_ids": []}),
        );
        check(
            &json!({"validated_by_test": true, "generated_test_ids": ["t0", "t1"]}),
            false,
            false,
            &json!({"generated_test_ids": ["t0"]}),
        );
        check(
            &json!({"breaks_test_ids": ["t1"]}),
            false,
            false,
            &json!({"breaks_test_ids": []}),
        );
    }
}
