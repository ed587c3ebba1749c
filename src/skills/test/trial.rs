//! Runs one case without and with its rule, and stores the result in the record of the rule.
//!
//! A test counts once per rule, however often it runs: the same case is no new evidence. A later run may revoke
//! a validation, but the counted evidence stays.

use memctl_llm::{Llm, Request};

use super::verdict::{Faults, Meter, Stop};
use super::{CaseReport, Group, Status};
use crate::model::Reflexion;
use crate::rules::place::changes::update_rules;
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
    /// Runs the case without and with its rule.
    pub(super) async fn judge(
        &mut self,
        rules: &[Reflexion],
        rule: &Reflexion,
        report: &mut CaseReport,
    ) -> Result<(), Stop> {
        let id = &rule.reflexion_id;
        let others = rules.iter().filter(|rule| rule.reflexion_id != *id);
        let others: Vec<Reflexion> = others.cloned().collect();
        let before = self.answer(&others).await?;
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
            (true, false) => (
                Status::Failed,
                format!("passes without `{id}`, and fails with it: {after}"),
            ),
            (false, false) => (Status::Failed, format!("fails with `{id}` too: {after}")),
        };
        Ok(())
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

/// Stores the result of a test in the record of its rule.
pub(super) fn credit(
    writer: &mut Writer,
    rule: &Reflexion,
    report: &CaseReport,
) -> Result<(), Error> {
    let after = credited(rule, &report.id, report.status == Status::Passed);
    update_rules(writer, &[(rule.clone(), after)])
}

/// Returns a rule after a test that validates it, or does not.
fn credited(rule: &Reflexion, test: &str, validates: bool) -> Reflexion {
    let mut rule = rule.clone();
    let had = rule.generated_test_ids.iter().any(|id| id == test);
    if validates == had {
        return rule;
    }
    if validates {
        rule.generated_test_ids.push(test.to_owned());
        rule.count_outcome(true);
        rule.count_shown();
    } else {
        rule.generated_test_ids.retain(|id| id != test);
    }
    rule.validated_by_test = !rule.generated_test_ids.is_empty();
    rule
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rule(fields: &Value) -> Value {
        let mut all = json!({"reflexion_id": "REFL-001", "rule": "r", "confidence": 0.9});
        for (name, value) in fields.as_object().unwrap() {
            all[name] = value.clone();
        }
        all
    }

    fn check(fields: &Value, validates: bool, changed: &Value) {
        let before: Reflexion = serde_json::from_value(rule(fields)).unwrap();
        let mut expected = json!(before);
        for (name, value) in changed.as_object().unwrap() {
            expected[name] = value.clone();
        }
        let after = credited(&before, "t1", validates);
        assert_eq!(json!(after), expected, "{fields}");
    }

    #[test]
    fn a_test_counts_once() {
        let validated = json!({"validated_by_test": true, "generated_test_ids": ["t1"]});
        check(
            &json!({}),
            true,
            &json!({"validated_by_test": true, "generated_test_ids": ["t1"],
            "times_injected": 1, "times_helped": 1, "times_harmed": 0, "utility_score": 0.6,
            "confidence": 0.92}),
        );
        check(&validated, true, &json!({}));
        check(&json!({}), false, &json!({}));
    }

    #[test]
    fn outdated_validation_is_revoked() {
        check(
            &json!({"validated_by_test": true, "generated_test_ids": ["t1"]}),
            false,
            &json!({"validated_by_test": false, "generated_test_ids": []}),
        );
        check(
            &json!({"validated_by_test": true, "generated_test_ids": ["t0", "t1"]}),
            false,
            &json!({"generated_test_ids": ["t0"]}),
        );
    }
}
