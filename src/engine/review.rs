//! Accepts or rejects an execution: a person's verdict on it.

use serde::Serialize;
use serde_json::{Value, json};

use crate::guard;
use crate::model::{Execution, Kind, Outcome};

use super::door::kept_out;
use super::evidence::Witness;
use super::{Engine, Error, evidence, mended};

/// The verdict as it is now recorded.
#[derive(Debug, Serialize)]
pub struct ReviewReport {
    /// The execution.
    pub execution_id: String,
    /// Its skill.
    pub skill: String,
    /// What it was before.
    pub before: Outcome,
    /// What it is now.
    pub outcome: Outcome,
    /// Why, where a reason was given.
    pub reason: Option<String>,
    /// The guardrail files that could not be written before, and hold the rules of the skill now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guardrails: Vec<String>,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

impl Engine {
    /// Records a verdict. `id` may be the beginning of one, or `latest`.
    pub fn review(
        &self,
        id: &str,
        outcome: Outcome,
        reason: Option<String>,
    ) -> Result<ReviewReport, Error> {
        let id = self.store.resolve(Kind::Execution, id, None)?;
        let mut left_out = Vec::new();
        // What is answered is what is stored of it.
        let reason = reason.map(|reason| {
            let redacted = guard::redact(&reason);
            left_out = redacted.found;
            redacted.text.into_owned()
        });
        let mut writer = self.writer()?;
        let execution: Execution = writer.store().get(&id)?;
        let mut changes: Vec<(&str, Value)> = Vec::new();
        if execution.outcome != outcome {
            changes.push(("outcome", json!(outcome)));
        }
        let before_by = Witness::of(&execution.judged_by);
        if !execution.judged_by.is_empty() {
            changes.push(("judged_by", json!("")));
        }
        let notes = reason.clone().unwrap_or_default();
        if execution.reviewer_notes != notes {
            changes.push(("reviewer_notes", json!(notes)));
        }
        if !changes.is_empty() {
            writer.update(Kind::Execution, &id, &changes)?;
        }
        evidence::count_verdict(
            &mut writer,
            &execution,
            (&execution.outcome, before_by),
            (&outcome, Witness::Person),
        )?;
        let mut warnings: Vec<String> = mended(writer.take_mended()).collect();
        warnings.extend(kept_out(left_out));
        drop(writer);
        let guardrails = match execution.skill.parse() {
            Ok(skill) => self.finish_guardrails(&skill, &mut warnings),
            Err(_) => Vec::new(),
        };
        Ok(ReviewReport {
            execution_id: id,
            skill: execution.skill,
            before: execution.outcome,
            outcome,
            reason,
            guardrails,
            warnings,
        })
    }
}
