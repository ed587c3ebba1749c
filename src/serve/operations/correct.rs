//! `correct`: passes on what a person said was wrong with an execution.
//!
//! The correction is stored, and the rule that comes of it is a candidate: no prompt, guardrail or test
//! has it before a person approves it or says the same, for an agent may have been talked into it. A text
//! that is aimed at a model is refused. The answer says how a person approves it and takes it back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::to_raw_value};

use crate::engine::{Conflict, CorrectOptions, Engine, Error};
use crate::error::Explained;
use crate::guard::{fence, screen};
use crate::model::{CANDIDATE, Trust};
use crate::store;

use super::{NOTICE, Report, room, told, undo};

/// What the person said.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorrectArgs {
    /// The skill, as domain/skill
    pub skill: String,
    /// What the user said was wrong and should be different
    pub correction: String,
    /// The execution's id, the newest of the skill if not given
    #[serde(default)]
    pub execution: Option<String>,
    /// The output as it should have been
    // Hosts want a type for every argument. What a skill puts out is nearly always an object, and what is
    // not is taken as well.
    #[schemars(with = "Option<Map<String, Value>>")]
    #[serde(default)]
    pub expected: Option<Value>,
}

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Corrected {
    /// What the texts of the answer are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// The correction.
    pub correction_id: String,
    /// The execution that it corrects.
    pub execution_id: String,
    /// The rule: the new one, or the one that said the same already.
    pub reflexion_id: Option<String>,
    /// Its text.
    pub rule: Option<String>,
    /// How it stands: `candidate`, or `active` where a person has given or approved it before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    /// How far it may be believed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// When it matters.
    pub applies_when: Option<String>,
    /// How specific and actionable the correction was, from 0 to 1.
    pub confidence: f64,
    /// Whether a rule said the same already.
    pub known: bool,
    /// Regression tests that came out of it; none before a person approves it.
    pub tests: Vec<String>,
    /// Rules that say the opposite; both stay, and a person decides.
    pub conflicts: Vec<Conflict>,
    /// Why there is no rule, and what to say for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_learned: Option<String>,
    /// The command by which a person approves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<String>,
    /// The command by which a person takes it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// What went wrong and did not stop it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

pub(super) async fn correct(engine: &Engine, args: CorrectArgs) -> Result<Corrected, Explained> {
    if let Some(reason) = screen(&args.correction).reason() {
        return Err(told(Error::Suspicious { reason }));
    }
    let expected = args.expected.as_ref().map(to_raw_value).transpose();
    let options = CorrectOptions {
        skill: args.skill.parse()?,
        execution: args.execution.unwrap_or_else(|| "latest".to_owned()),
        correction: args.correction,
        expected: expected.map_err(store::Error::from)?,
        supersede: false,
        by_agent: true,
    };
    let report = engine.correct(options, &mut |_| {}).await.map_err(told)?;
    let outward = |text: String| room::outward(&text);
    let conflicts = report.conflicts.into_iter().map(|conflict| Conflict {
        rule: outward(conflict.rule),
        reason: outward(conflict.reason),
        ..conflict
    });
    let is_candidate = report.status == Some(CANDIDATE);
    let id = report.reflexion_id.as_deref().filter(|_| is_candidate);
    Ok(Corrected {
        notice: is_candidate.then_some(NOTICE),
        status: report.status,
        trust: report.trust,
        approve: id.map(|id| format!("memctl memory approve {id}")),
        correction_id: report.correction_id,
        execution_id: report.execution_id,
        reflexion_id: report.reflexion_id,
        rule: report.rule.map(outward),
        applies_when: report.applies_when.map(outward),
        confidence: report.confidence,
        known: report.duplicate_of.is_some(),
        tests: report.tests,
        conflicts: conflicts.collect(),
        not_learned: report.not_learned,
        undo: undo(engine),
        warnings: report.warnings,
    })
}

impl Report for Corrected {
    fn text(&self, nonce: &str) -> String {
        let mut text = format!(
            "Stored as {}, on {}.\n",
            self.correction_id, self.execution_id
        );
        match (&self.reflexion_id, &self.not_learned) {
            (_, Some(reason)) => text.extend(["No rule was learnt: ", reason, ".\n"]),
            (Some(id), None) => {
                text.push_str(id);
                text.push_str(if self.known {
                    " says the same already"
                } else {
                    ""
                });
                if let Some(approve) = &self.approve {
                    let is = if self.known { ", as" } else { " is" };
                    text.extend([
                        is,
                        " a candidate [agent]: no run has it before a person approves it by `",
                        approve,
                        "`",
                    ]);
                }
                text.push_str(".\n");
                if let Some(rule) = self.rule.as_deref().filter(|_| self.approve.is_some()) {
                    text.push_str(&fence(&[rule], nonce));
                }
            }
            (None, None) => {}
        }
        if !self.conflicts.is_empty() {
            text.push_str("These rules say the opposite, and stay until the user decides:\n");
            let lines = self
                .conflicts
                .iter()
                .map(|c| format!("{}: {} ({})", c.id, c.rule, c.reason));
            text.push_str(&fence(&lines.collect::<Vec<_>>(), nonce));
        }
        if let Some(undo) = &self.undo {
            text.extend(["A person takes it back by `", undo, "`.\n"]);
        }
        for warning in &self.warnings {
            text.extend(["warning: ", warning, "\n"]);
        }
        text
    }
}
