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
        let changes = changes(rule, &report.id, validates, breaks);
        (rule.reflexion_id.clone(), changes)
    });
    let changes: Vec<_> = changes.filter(|(_, fields)| !fields.is_empty()).collect();
    Ok(writer.update_all(Kind::Reflexion, &changes)?)
}

/// Returns the fields of a rule that a test changes.
fn changes(
    rule: &Reflexion,
    test: &str,
    validates: bool,
    breaks: bool,
) -> Vec<(&'static str, Value)> {
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
    if let Some(ids) = toggled(&rule.generated_test_ids, validates) {
        if validates {
            counted.count_outcome(true);
            seen = true;
        }
        if rule.validated_by_test == ids.is_empty() {
            changes.push(("validated_by_test", json!(!ids.is_empty())));
        }
        changes.push(("generated_test_ids", json!(ids)));
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
        let found: serde_json::Map<String, Value> = changes(&rule(fields), "t1", validates, breaks)
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
