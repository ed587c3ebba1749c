//! What memory is worth, from what the store holds: how often runs are right with and without
//! learned rules, what becomes of hints, what is learnt and used again, cost and time.
//!
//! What nobody has recorded is `None`, never 0. What was seen is told as that: that runs with rules
//! are right more often does not say why; only the experiment does, which withholds at random.
//!
//! - `interval`: how sure a number is. `compare`: shown against withheld. `time`, `days`: days and weeks.
//!   `collect`: one pass over the store.

mod collect;
mod compare;
mod days;
mod interval;
mod time;

use std::path::Path;

use serde::Serialize;

use crate::model::Evidence;

use super::{Engine, Error, door};

pub use compare::{Arm, Comparison};
pub use time::Period;

/// What memory is worth. Shares and rates are from 0 to 1.
#[derive(Debug, Default, Serialize)]
pub struct StatsReport {
    /// The first and the last day from which there is something, UTC.
    pub days: Option<[String; 2]>,
    /// Runs of skills.
    pub executions: Executions,
    /// Hints at failing calls, from the log of hints.
    pub hints: Hints,
    /// What was learnt.
    pub learning: Learning,
    /// The rules that have been used, the most used first.
    pub rules: Vec<Used>,
    /// The fixes that have been used, the most used first.
    pub fixes: Vec<Used>,
    /// What an experiment has shown; `None` where there was none.
    pub experiment: Option<Experiment>,
    /// How long a piece of `over_time` is.
    pub period: Option<Period>,
    /// All of it piece by piece, without gaps, oldest first.
    pub over_time: Vec<Piece>,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

/// A share of something that was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Part {
    /// So many.
    pub count: u64,
    /// Of so many.
    pub of: u64,
    /// The share; `None` of nothing.
    pub share: Option<f64>,
    /// Its 95 % interval (Wilson).
    pub interval: Option<[f64; 2]>,
}

impl Part {
    fn new(count: u64, of: u64) -> Self {
        let interval = interval::share(count, of);
        Self {
            count,
            of,
            share: quotient(count, of),
            interval: interval.map(|ends| ends.map(rounded)),
        }
    }
}

/// Runs of skills.
#[derive(Debug, Default, Serialize)]
pub struct Executions {
    /// All of them.
    pub total: u64,
    /// Those that came to no answer.
    pub errors: u64,
    /// Those that nobody has judged.
    pub unjudged: u64,
    /// Right ones among the judged that had rules in their prompt. Right is accepted and not
    /// corrected; judged is accepted, rejected or corrected.
    pub right_with_rules: Part,
    /// Right ones among the judged that had none.
    pub right_without_rules: Part,
    /// Mean tokens of a run with rules, in and out; of those whose provider counted.
    pub tokens_with_rules: Option<f64>,
    /// Mean tokens of a run without.
    pub tokens_without_rules: Option<f64>,
    /// US dollars of those whose cost is known.
    pub cost_usd: Option<f64>,
    /// How many have no known cost.
    pub cost_unknown: u64,
    /// Milliseconds: the median, and what 95 of 100 stay below.
    pub latency_ms: Option<Latencies>,
}

/// How long answers took, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Latencies {
    /// The median.
    pub p50: f64,
    /// What 95 of 100 stay below.
    pub p95: f64,
}

/// Errors at which memory had hints.
#[derive(Debug, Default, Serialize)]
pub struct Hints {
    /// Errors at which hints were shown.
    pub shown: u64,
    /// Errors at which they were withheld by an experiment.
    pub withheld: u64,
    /// Of those shown, the ones that were overcome by a way that was hinted: precision@k, where k is
    /// how many hints are shown at once.
    pub precision: Part,
    /// Of those shown, the ones that were overcome in any way.
    pub overcome: Part,
    /// Of those shown, the ones whose very error came again.
    pub repeated: Part,
    /// Mean calls from the failing one until it was overcome or given up, where hints were shown.
    pub steps_shown: Option<f64>,
    /// The same where they were withheld.
    pub steps_withheld: Option<f64>,
    /// Repeated failures that did not happen: the difference that the experiment shows, times the
    /// errors at which hints were shown. `None` without an experiment, or with too little data.
    pub failures_avoided: Option<Estimate>,
    /// Steps that were not needed, in the same way.
    pub steps_saved: Option<Estimate>,
    /// Outcomes in the evidence of fixes, those from before the log included.
    pub evidence: Evidence,
}

/// A number that is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The likeliest value.
    pub value: f64,
    /// Its 95 % interval; one that holds 0 proves nothing.
    pub interval: [f64; 2],
}

/// What was learnt.
#[derive(Debug, Default, Serialize)]
pub struct Learning {
    /// Corrections of people.
    pub corrections: u64,
    /// Rules.
    pub reflexions: u64,
    /// Those of them that a test has shown to be needed.
    pub validated: u64,
    /// Fixes.
    pub fixes: u64,
    /// Procedures.
    pub procedures: u64,
    /// Rules and fixes that were learnt in a week, on average.
    pub a_week: Option<f64>,
    /// Rules that have stood in a prompt, and fixes that were shown or met again, among all.
    pub reused: Part,
}

/// A record that has been used.
#[derive(Debug, Serialize)]
pub struct Used {
    /// Its id.
    pub id: String,
    /// Its skill; of a fix what was used.
    pub about: String,
    /// The rule, or the key of the error.
    pub text: String,
    /// What use has shown.
    pub evidence: Evidence,
    /// The mean of the posterior, from 0 to 1.
    pub confidence: f64,
}

/// What an experiment has shown.
#[derive(Debug, Serialize)]
pub struct Experiment {
    /// The comparisons for which there is anything to compare.
    pub comparisons: Vec<Comparison>,
}

/// What happened in a day, a week or a month.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Piece {
    /// Its first day.
    pub from: String,
    /// Runs of skills.
    pub executions: u64,
    /// Right ones among the judged.
    pub right: u64,
    /// Wrong ones.
    pub wrong: u64,
    /// US dollars; `None` where no cost is known.
    pub cost_usd: Option<f64>,
    /// The median latency in milliseconds; `None` where none is known.
    pub latency_ms: Option<f64>,
    /// Rules that were learnt.
    pub rules: u64,
    /// Fixes that were learnt.
    pub fixes: u64,
    /// Errors at which hints were shown.
    pub hints_shown: u64,
    /// Those that were overcome by a hinted way.
    pub hints_helped: u64,
    /// Errors at which hints were withheld.
    pub hints_withheld: u64,
}

impl StatsReport {
    /// Whether there is nothing to be said.
    pub fn is_empty(&self) -> bool {
        self.days.is_none()
    }
}

impl Engine {
    /// Writes a page of figures to a file, whole or not at all; answers the kinds of secrets that
    /// were kept out of it.
    pub fn save_page(&self, path: &Path, page: &str) -> Result<Vec<&'static str>, Error> {
        door::create(path, page)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of what happened stay far below 2^52"
)]
fn quotient(count: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| rounded(count as f64 / of as f64))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of what happened stay far below 2^52"
)]
fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// To a ten-thousandth: more digits than any of these figures is sure of.
fn rounded(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}
