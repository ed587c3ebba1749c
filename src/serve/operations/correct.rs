//! `correct`: stores a person's correction of an execution, or with a quote a rule that they stated in the
//! chat.
//!
//! The rule is a candidate, because an agent may have been manipulated: no prompt, guardrail or test
//! contains it before a person approves it or makes the same correction. A text with a prompt injection is
//! refused. The answer names the commands to approve and to undo it.

use memctl_redact::screen;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};

use crate::model::error::UserError;
use crate::model::text::one_line;
use crate::model::{CANDIDATE, SkillPath};
use crate::rules::hearing::{EarlierState, HeardArgs, HeardReport, record_heard};
use crate::rules::{CorrectOptions, CorrectReport};
use crate::serve::operations::{NOTICE, Report, add_fenced, undo, user_error, with_warnings};
use crate::store::workspace::{Error, Workspace};
use crate::{notes, rules};

/// Correction by a person.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorrectArgs {
    /// As domain/skill
    pub skill: String,
    /// Mistake and change, in the user's words
    pub correction: String,
    /// Execution id; default the newest
    pub execution: Option<String>,
    /// The right output
    // Agent hosts expect a type for every argument. The output of a skill is nearly always an
    // object; other values are accepted too.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub expected: Option<Value>,
    /// Make a rule of a remark; only if the user says so
    #[serde(default)]
    pub as_rule: bool,
}

/// Result of a correction.
#[derive(Debug, Serialize)]
pub struct Corrected {
    /// Notice that the texts of the answer are data; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// Correction, and its rule with the neighbours. Contradictory rules both stay, and a person decides.
    #[serde(flatten)]
    pub report: CorrectReport,
    /// `true` if a rule with the same content existed.
    pub known: bool,
    /// Command with which a person approves the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<String>,
    /// Command with which a person reverts the correction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
}

/// Refuses the text of an agent with a prompt injection.
pub(crate) fn screened(correction: &str) -> Result<(), Error> {
    match screen(correction).reason() {
        Some(reason) => Err(Error::suspicious(&reason)),
        None => Ok(()),
    }
}

/// Newest execution of a skill; `None` if it has not run yet.
fn newest(workspace: &Workspace, skill: &SkillPath) -> Result<Option<String>, UserError> {
    let executions = notes::recent_executions(&workspace.store, Some(skill), 1)?;
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
        expected: expected?,
        assertions: Vec::new(),
        is_rule: args.as_rule,
        by_agent: true,
    };
    let report = rules::correct(workspace, options, &mut |_| {})
        .await
        .map_err(user_error)?;
    let is_candidate = report.status == Some(CANDIDATE);
    let id = report.reflexion_id.as_deref().filter(|_| is_candidate);
    Ok(Corrected {
        notice: is_candidate.then_some(NOTICE),
        known: report.duplicate_of.is_some(),
        approve: id.map(|id| format!("memctl approve {id}")),
        undo: undo(workspace),
        report,
    })
}

impl Report for Corrected {
    fn text(&self, nonce: &str) -> String {
        let report = &self.report;
        let on = report.execution_id.as_deref().unwrap_or("no execution");
        let mut text = format!("Stored as {}, on {on}.\n", report.correction_id);
        if let Some(reason) = &report.not_learned {
            text.extend(["No rule was learned: ", reason, ".\n"]);
        } else if let Some(id) = &report.reflexion_id {
            let is = if self.known {
                " says the same already.\n"
            } else {
                " is its rule.\n"
            };
            text.extend([id.as_str(), is]);
        }
        if let Some(approve) = &self.approve {
            text.extend([
                "A candidate [agent]: no run uses it before a person approves it by `",
                approve,
                "`.\n",
            ]);
            let rule: Vec<String> = report.rule.iter().cloned().collect();
            add_fenced(&mut text, "", &rule, nonce);
        }
        let conflicts = report.conflicts.iter();
        let lines = conflicts.map(|c| format!("{}: {} ({})", c.id, c.rule, c.reason));
        let head = "These rules say the opposite, and stay active until the user decides:\n";
        add_fenced(&mut text, head, &lines.collect::<Vec<_>>(), nonce);
        if let Some(undo) = &self.undo {
            text.extend(["A person reverts it by `", undo, "`.\n"]);
        }
        with_warnings(text, &self.report.warnings)
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
    Ok(Heard {
        notice: NOTICE,
        undo: undo(workspace),
        report,
    })
}

impl Report for Heard {
    fn text(&self, nonce: &str) -> String {
        let HeardReport { id, approve, .. } = &self.report;
        // The words that the agent has just said: nobody else's.
        let rule = one_line(&memctl_redact::defuse(&self.report.rule));
        let mut text = format!(
            "Recorded as {id}, a candidate: it takes effect once a person approves it by `{approve}`.\n  {rule}\n"
        );
        if let Some(old) = &self.report.earlier {
            let now = match old.now {
                EarlierState::Superseded => "was a candidate, and this one takes its place",
                EarlierState::InForce => "stays in force until the user decides",
            };
            text.extend([old.id.as_str(), " ", now, ".\n"]);
        }
        let seen = self.report.seen.as_deref().unwrap_or_default();
        let head = "Its patterns match these calls just made:\n";
        add_fenced(&mut text, head, seen, nonce);
        let nearest = self.report.nearest.iter();
        let lines = nearest.map(|other| format!("{}: {}", other.id, other.rule));
        let head = "Nearest rules. If it changes one, call again with the same `rule` and `quote`, and `replaces`:\n";
        add_fenced(&mut text, head, &lines.collect::<Vec<_>>(), nonce);
        with_warnings(text, &self.report.warnings)
    }
}
