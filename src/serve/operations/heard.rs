//! `correct` with a quote: records what a person said in the chat as a candidate rule.

use serde::Serialize;

use crate::model::error::UserError;
use crate::rules::SimilarRule;
use crate::rules::hearing::{EarlierRule, EarlierState, HeardArgs, HeardReport, record_heard};
use crate::store::workspace::Workspace;
use memctl_redact::fence;

use super::{NOTICE, Report, token_budget, undo, user_error};

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
