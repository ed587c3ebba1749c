//! `correct`: stores a correction that a person made to an execution.
//!
//! The derived rule is a candidate, because an agent may have been manipulated: no prompt,
//! guardrail or test contains it before a person approves it or makes the same correction. A text
//! with a prompt injection is refused. The answer names the commands to approve and to undo it.
//!
//! `correct` with a quote: records what a person said in the chat as a candidate rule.

use memctl_redact::{fence, screen};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};

use crate::model::error::UserError;
use crate::model::{CANDIDATE, SkillPath, Trust};
use crate::rules::hearing::{EarlierRule, EarlierState, HeardArgs, HeardReport, record_heard};
use crate::rules::{Conflict, CorrectOptions, RelationReport, SimilarRule};
use crate::serve::operations::{NOTICE, Report, token_budget, undo, user_error};
use crate::store::workspace::{Error, Workspace};
use crate::{notes, rules, store};

/// Correction by a person.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorrectArgs {
    /// As domain/skill
    pub skill: String,
    /// Mistake and change, in the user's words
    pub correction: String,
    /// Execution id; default the newest
    #[serde(default)]
    pub execution: Option<String>,
    /// The right output
    // Agent hosts expect a type for every argument. The output of a skill is nearly always an
    // object; other values are accepted too.
    #[schemars(with = "Option<Map<String, Value>>")]
    #[serde(default)]
    pub expected: Option<Value>,
    /// Make a rule even of a remark on one output; only if the user says so
    #[serde(default)]
    pub as_rule: bool,
}

/// Result of a correction.
#[derive(Debug, Serialize)]
pub struct Corrected {
    /// Notice that the texts of the answer are data; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// Id of the correction.
    pub correction_id: String,
    /// Id of the corrected execution; `None` if the skill has none.
    pub execution_id: Option<String>,
    /// Id of the rule: the new one, or an existing one with the same content.
    pub reflexion_id: Option<String>,
    /// Text of the rule.
    pub rule: Option<String>,
    /// `candidate`, or `active` if a person wrote or approved the rule before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    /// Trust level of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// Condition under which the rule applies.
    pub applies_when: Option<String>,
    /// Specificity and actionability of the correction, from 0 to 1.
    pub confidence: f64,
    /// `true` if a rule with the same content existed.
    pub known: bool,
    /// Regression tests created; none before a person approves the rule.
    pub tests: Vec<String>,
    /// Contradictory rules; both stay, and a person decides.
    pub conflicts: Vec<Conflict>,
    /// Rules near the new one: it may repeat or narrow them, and a person decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub similar: Vec<SimilarRule>,
    /// Rules that a model related to the new one, with its reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<RelationReport>,
    /// Reason why there is no rule, and advice for a better correction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_learned: Option<String>,
    /// Command with which a person approves the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<String>,
    /// Command with which a person reverts the correction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// Problems that did not stop the operation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Refuses the text of an agent with a prompt injection.
pub(crate) fn screened(correction: &str) -> Result<(), Error> {
    match screen(correction).reason() {
        Some(reason) => Err(Error::Suspicious { reason }),
        None => Ok(()),
    }
}

/// Newest execution of a skill; `None` if it has not run yet.
fn newest(workspace: &Workspace, skill: &SkillPath) -> Result<Option<String>, UserError> {
    let (executions, _) = notes::recent_executions(&workspace.store, Some(skill), 1)?;
    Ok(executions
        .into_iter()
        .next_back()
        .map(|run| run.execution_id))
}

pub(super) async fn correct(
    workspace: &Workspace,
    args: CorrectArgs,
) -> Result<Corrected, UserError> {
    screened(&args.correction).map_err(user_error)?;
    let expected = args.expected.as_ref().map(to_raw_value).transpose();
    let skill: SkillPath = args.skill.parse()?;
    let options = CorrectOptions {
        execution: args.execution.or(newest(workspace, &skill)?),
        skill,
        correction: args.correction,
        expected: expected.map_err(store::Error::from)?,
        assertions: Vec::new(),
        is_rule: args.as_rule,
        supersede: false,
        by_agent: true,
    };
    let report = rules::correct(workspace, options, &mut |_| {})
        .await
        .map_err(user_error)?;
    let sanitize = |text: String| token_budget::sanitize(&text);
    let conflicts = report.conflicts.into_iter().map(|conflict| Conflict {
        rule: sanitize(conflict.rule),
        reason: sanitize(conflict.reason),
        ..conflict
    });
    let similar = report.similar.into_iter().map(|other| SimilarRule {
        rule: sanitize(other.rule),
        ..other
    });
    let related = report.related.into_iter().map(|other| RelationReport {
        rule: sanitize(other.rule),
        reason: sanitize(other.reason),
        ..other
    });
    let is_candidate = report.status == Some(CANDIDATE);
    let id = report.reflexion_id.as_deref().filter(|_| is_candidate);
    Ok(Corrected {
        notice: is_candidate.then_some(NOTICE),
        status: report.status,
        trust: report.trust,
        approve: id.map(|id| format!("memctl approve {id}")),
        correction_id: report.correction_id,
        execution_id: report.execution_id,
        reflexion_id: report.reflexion_id,
        rule: report.rule.map(sanitize),
        applies_when: report.applies_when.map(sanitize),
        confidence: report.confidence,
        known: report.duplicate_of.is_some(),
        tests: report.tests,
        conflicts: conflicts.collect(),
        similar: similar.collect(),
        related: related.collect(),
        not_learned: report.not_learned,
        undo: undo(workspace),
        warnings: report.warnings,
    })
}

impl Report for Corrected {
    fn text(&self, nonce: &str) -> String {
        let on = self.execution_id.as_deref().unwrap_or("no execution");
        let mut text = format!("Stored as {}, on {on}.\n", self.correction_id);
        match (&self.reflexion_id, &self.not_learned) {
            (_, Some(reason)) => text.extend(["No rule was learned: ", reason, ".\n"]),
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
                        " a candidate [agent]: no run uses it before a person approves it by `",
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
            text.push_str(
                "These rules say the opposite, and stay active until the user decides:\n",
            );
            let lines = self
                .conflicts
                .iter()
                .map(|c| format!("{}: {} ({})", c.id, c.rule, c.reason));
            text.push_str(&fence(&lines.collect::<Vec<_>>(), nonce));
        }
        if let Some(undo) = &self.undo {
            text.extend(["A person reverts it by `", undo, "`.\n"]);
        }
        for warning in &self.warnings {
            text.extend(["warning: ", warning, "\n"]);
        }
        text
    }
}

/// Result of recording a heard rule.
#[derive(Debug, Serialize)]
pub struct Heard {
    /// Notice that the texts of the answer are data.
    pub notice: &'static str,
    /// Candidate, with its neighbours.
    #[serde(flatten)]
    pub report: HeardReport,
    /// Command with which a person reverts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
}

pub(super) fn hear(workspace: &Workspace, args: HeardArgs) -> Result<Heard, UserError> {
    let report = record_heard(workspace, args).map_err(user_error)?;
    let sanitize = |text: &str| token_budget::sanitize(text);
    Ok(Heard {
        notice: NOTICE,
        undo: undo(workspace),
        report: HeardReport {
            rule: sanitize(&report.rule),
            earlier: report.earlier.map(|old| EarlierRule {
                rule: sanitize(&old.rule),
                ..old
            }),
            seen: report
                .seen
                .map(|calls| calls.iter().map(|call| sanitize(call)).collect()),
            nearest: report
                .nearest
                .into_iter()
                .map(|other| SimilarRule {
                    rule: sanitize(&other.rule),
                    ..other
                })
                .collect(),
            ..report
        },
    })
}

impl Report for Heard {
    fn text(&self, nonce: &str) -> String {
        let HeardReport { id, approve, .. } = &self.report;
        let mut text = format!(
            "Recorded as {id}, a candidate: it takes effect once a person approves it by `{approve}`.\n"
        );
        text.push_str(&fence(&[self.report.rule.as_str()], nonce));
        if let Some(old) = &self.report.earlier {
            let now = match old.now {
                EarlierState::Superseded => "was a candidate, and this one takes its place",
                EarlierState::Suspended => "is not told any more, until the user decides",
                EarlierState::InForce => "stays in force until the user decides",
            };
            text.extend([old.id.as_str(), " ", now, ".\n"]);
        }
        if let Some(seen) = self.report.seen.as_ref().filter(|seen| !seen.is_empty()) {
            text.push_str("Its patterns match these calls just made:\n");
            let lines: Vec<&str> = seen.iter().map(String::as_str).collect();
            text.push_str(&fence(&lines, nonce));
        }
        if !self.report.nearest.is_empty() {
            text.push_str(
                "Nearest rules. If it changes one, call again with the same `quote` and `replaces`:\n",
            );
            let lines = self.report.nearest.iter();
            let lines = lines.map(|other| format!("{}: {}", other.id, other.rule));
            text.push_str(&fence(&lines.collect::<Vec<_>>(), nonce));
        }
        for warning in &self.report.warnings {
            text.extend(["warning: ", warning, "\n"]);
        }
        text
    }
}
