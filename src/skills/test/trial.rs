//! Runs one case: calls the model without and with its rule, finds the rule that breaks it, and stores the
//! result in the records of rules.
//!
//! A test counts once per rule, however often it runs: the same case is no new evidence. A later
//! run may revoke a validation, but the evidence that was counted stays.

use memctl_llm::{Llm, Request};

use super::judge::{Faults, Meter, Stop};
use super::{CaseReport, Group, Status};
use crate::model::Reflexion;
use crate::rules::place::update_rules;
use crate::rules::regression::case::Case;
use crate::skills::assemble::assemble_layers;
use crate::skills::run::requested_files;
use crate::store::Writer;
use crate::store::workspace::{Error, Workspace};

/// Run of one case.
pub(super) struct Trial<'t> {
    pub(super) workspace: &'t Workspace,
    pub(super) llm: &'t Llm,
    pub(super) group: &'t Group,
    pub(super) case: &'t Case,
    pub(super) meter: &'t mut Meter,
}

impl Trial<'_> {
    /// Runs the case without and with its rule, and finds the cause of a failure.
    pub(super) async fn judge(
        &mut self,
        rules: &[Reflexion],
        rule: &Reflexion,
        report: &mut CaseReport,
    ) -> Result<(), Stop> {
        let id = &rule.reflexion_id;
        let before = self.answer(&all_but(rules, id)).await?;
        report.without_rule = Some(before.status());
        let after = self.answer(rules).await?;
        report.with_rule = Some(after.status());
        (report.status, report.reason) = match (before.is_empty(), after.is_empty()) {
            (false, true) => (
                Status::Passed,
                format!("fails without `{id}` and passes with it"),
            ),
            (true, true) => (
                Status::Worthless,
                format!("passes without `{id}` too, so the test proves nothing"),
            ),
            (true, false) => {
                report.broken_by.push(id.clone());
                (
                    Status::Failed,
                    format!("`{id}` breaks it: passes without it, and with it {after}"),
                )
            }
            (false, false) => match self.culprit(rules, rule).await? {
                Some(other) => {
                    let alone = format!("passes with `{id}` alone");
                    let reason = format!("`{other}` breaks it: {alone}, and with both {after}");
                    report.broken_by.push(other);
                    (Status::Failed, reason)
                }
                None if after.improves_on(&before) => (
                    Status::Partial,
                    format!("`{id}` satisfies a part of the correction: {after}"),
                ),
                None => (Status::Failed, format!("`{id}` does not help: {after}")),
            },
        };
        Ok(())
    }

    /// Returns the rule that makes the case fail although its own rule is in the prompt.
    async fn culprit(
        &mut self,
        rules: &[Reflexion],
        rule: &Reflexion,
    ) -> Result<Option<String>, Stop> {
        let others = all_but(rules, &rule.reflexion_id);
        if others.is_empty() || !self.answer(std::slice::from_ref(rule)).await?.is_empty() {
            return Ok(None);
        }
        for other in others {
            let without = all_but(rules, &other.reflexion_id);
            if self.answer(&without).await?.is_empty() {
                return Ok(Some(other.reflexion_id));
            }
        }
        Ok(None)
    }

    /// Calls the model with these rules, and returns what its answer fails.
    async fn answer(&mut self, rules: &[Reflexion]) -> Result<Faults, Stop> {
        let input = self.case.input.get();
        let mut request = Request {
            system: assemble_layers(self.workspace, &self.group.skill, rules, Some(input)).prompt,
            user: input.to_owned(),
            schema: None,
            max_tokens: self.workspace.settings.max_output_tokens,
        };
        let mut text = self.meter.ask(self.llm, &request).await?.text;
        let skills = self.workspace.skills().ok();
        let files = skills.and_then(|skills| requested_files(&skills, &self.group.skill, &text));
        if let Some(files) = files {
            request.system.push_str(&files);
            text = self.meter.ask(self.llm, &request).await?.text;
        }
        Faults::of(self.workspace, self.case, &text, Some(self.llm), self.meter).await
    }
}

fn all_but(rules: &[Reflexion], id: &str) -> Vec<Reflexion> {
    let others = rules.iter().filter(|rule| rule.reflexion_id != id);
    others.cloned().collect()
}

/// Effect of a test on a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// The test fails without the rule and passes with it.
    Validates,
    /// The rule satisfies some demands of the test.
    Partly,
    /// The test fails because of the rule.
    Breaks,
    None,
}

/// Stores the result of a case for the rules of its skill.
pub(super) fn credit(
    writer: &mut Writer,
    rules: &[Reflexion],
    report: &CaseReport,
) -> Result<(), Error> {
    let changes = rules.iter().map(|rule| {
        let is_own = report.reflexion_id.as_ref() == Some(&rule.reflexion_id);
        let effect = match report.status {
            _ if report.broken_by.contains(&rule.reflexion_id) => Effect::Breaks,
            Status::Passed if is_own => Effect::Validates,
            Status::Partial if is_own => Effect::Partly,
            _ => Effect::None,
        };
        (rule.clone(), credited(rule, &report.id, effect))
    });
    update_rules(writer, &changes.collect::<Vec<_>>())
}

/// Returns a rule after a test.
fn credited(rule: &Reflexion, test: &str, effect: Effect) -> Reflexion {
    let mut rule = rule.clone();
    let lists = [
        (&mut rule.generated_test_ids, Effect::Validates),
        (&mut rule.partial_test_ids, Effect::Partly),
        (&mut rule.breaks_test_ids, Effect::Breaks),
    ];
    let (mut is_new, mut is_changed) = (false, false);
    for (ids, wanted) in lists {
        let had = ids.iter().any(|id| id == test);
        let has = effect == wanted;
        if has && !had {
            ids.push(test.to_owned());
            is_new |= wanted != Effect::Partly;
        } else if had && !has {
            ids.retain(|id| id != test);
        }
        is_changed |= had != has && wanted != Effect::Breaks;
    }
    if is_changed {
        rule.validated_by_test =
            !rule.generated_test_ids.is_empty() && rule.partial_test_ids.is_empty();
    }
    if is_new {
        rule.count_outcome(effect == Effect::Validates);
        rule.count_shown();
    }
    rule
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rule(fields: &Value) -> Reflexion {
        let mut all = json!({"reflexion_id": "REFL-001", "rule": "r", "confidence": 0.9});
        for (name, value) in fields.as_object().unwrap() {
            all[name] = value.clone();
        }
        serde_json::from_value(all).unwrap()
    }

    fn check(fields: &Value, effect: Effect, expected: &Value) {
        let mut all = rule(fields);
        for (name, value) in expected.as_object().unwrap() {
            let mut fields = json!(all);
            fields[name] = value.clone();
            all = serde_json::from_value(fields).unwrap();
        }
        let credited = credited(&rule(fields), "t1", effect);
        assert_eq!(json!(credited), json!(all), "{fields}");
    }

    #[test]
    fn a_test_counts_once() {
        let known = json!({"validated_by_test": true, "generated_test_ids": ["t1"]});
        check(
            &json!({}),
            Effect::Validates,
            &json!({"validated_by_test": true, "generated_test_ids": ["t1"],
            "times_injected": 1, "times_helped": 1, "times_harmed": 0, "utility_score": 0.6,
            "confidence": 0.92}),
        );
        check(&known, Effect::Validates, &json!({}));
        check(
            &json!({"breaks_test_ids": ["t1"]}),
            Effect::Breaks,
            &json!({}),
        );
        check(&json!({}), Effect::None, &json!({}));
    }

    #[test]
    fn a_rule_that_satisfies_some_demands_is_not_validated() {
        let validated = json!({"validated_by_test": true, "generated_test_ids": ["t0", "t1"]});
        check(
            &validated,
            Effect::Partly,
            &json!({"validated_by_test": false, "generated_test_ids": ["t0"],
            "partial_test_ids": ["t1"]}),
        );
        let partial = json!({"partial_test_ids": ["t1"]});
        check(&partial, Effect::Partly, &json!({}));
        check(
            &json!({"partial_test_ids": ["t1"], "times_injected": 1, "times_helped": 0,
            "times_harmed": 0}),
            Effect::Validates,
            &json!({"validated_by_test": true, "generated_test_ids": ["t1"],
            "partial_test_ids": [], "times_injected": 2, "times_helped": 1, "times_harmed": 0,
            "utility_score": 0.6, "confidence": 0.92}),
        );
    }

    #[test]
    fn a_rule_that_breaks_a_test_loses_confidence() {
        check(
            &json!({}),
            Effect::Breaks,
            &json!({"breaks_test_ids": ["t1"], "times_injected": 1, "times_harmed": 1,
            "utility_score": 0.4, "confidence": 0.72}),
        );
    }

    #[test]
    fn what_holds_no_longer_is_taken_back() {
        check(
            &json!({"validated_by_test": true, "generated_test_ids": ["t1"]}),
            Effect::None,
            &json!({"validated_by_test": false, "generated_test_ids": []}),
        );
        check(
            &json!({"validated_by_test": true, "generated_test_ids": ["t0", "t1"]}),
            Effect::None,
            &json!({"generated_test_ids": ["t0"]}),
        );
        check(
            &json!({"breaks_test_ids": ["t1"]}),
            Effect::None,
            &json!({"breaks_test_ids": []}),
        );
    }
}
