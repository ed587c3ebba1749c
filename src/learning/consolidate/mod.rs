//! Consolidates what was learned and nobody has reviewed: keep, discard or merge.
//!
//! Without a model, [`tidy()`] merges duplicates and retires fixes that are of no use. With one,
//! [`plan()`] and [`consolidate()`] ask about the rest in batches.
//!
//! - A fix that is discarded or merged is retired, and its procedure deleted. A fix that stays may
//!   get a smaller working call; its procedure may get other words.
//! - An episode of one place becomes a fix if the model finds a working call for other places. It
//!   stays an episode otherwise.
//! - A candidate rule only gets a note for the person who reviews it.
//! - Each batch is stored before the next call, so an interruption loses no paid answer.
//! - One run is one change: `memctl memory undo` reverts all of it.
//!
//! Deliberately absent: approval. No verdict raises the trust of a record, and records that a
//! person has approved stay as they are. Quarantined records are not sent to a model.

mod apply;
mod batch;
mod candidates;
mod tidy;

use serde::Serialize;

use crate::model::{Kind, Verdict};

pub use batch::{ConsolidateOptions, ConsolidatePlan, Question, consolidate, plan};
pub use tidy::tidy;

/// Outcome of [`tidy()`] and [`consolidate()`].
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct ConsolidateReport {
    /// Verdicts, in the order in which they were stored.
    pub judged: Vec<Judged>,
    /// Records without a usable verdict, which stay as they are.
    pub undecided: Vec<Undecided>,
    /// Number of records beyond the limits of calls and cost.
    pub left_out: usize,
    /// Model, as `provider/model`; `None` if no model was asked.
    pub model: Option<String>,
    /// Number of model calls.
    pub calls: usize,
    /// Number of model calls without an answer.
    pub failed_calls: usize,
    /// Cost of the model calls in US dollars; `None` if a price is unknown.
    pub cost_usd: Option<f64>,
    /// Questions that would be sent; only in a dry run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<Question>,
    /// `true` if nothing was written and no model was asked.
    pub dry_run: bool,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Verdict on a record, as it was stored.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Judged {
    /// Id of the record.
    pub id: String,
    /// Kind of the record.
    pub kind: Kind,
    /// Verdict.
    pub verdict: Verdict,
    /// Id of the record that says the same; only for a merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// Reason for the verdict.
    pub reason: String,
    /// Author of the verdict: `offline`, or `provider/model`.
    pub by: String,
    /// Names of the fields with a new text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reworded: Vec<&'static str>,
    /// Record on one line, as it is now.
    pub summary: String,
}

/// Record without a usable verdict.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Undecided {
    /// Id of the record.
    pub id: String,
    /// Reason.
    pub reason: String,
}

impl ConsolidateReport {
    /// Returns the number of records with a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.judged
            .iter()
            .filter(|judged| judged.verdict == verdict)
            .count()
    }
}
