//! Triage of lessons that nobody has reviewed: keep, discard or merge.
//!
//! - `request`: question to a model about a batch of records. `reply`: its verdicts.
//! - `rewording`: which texts of a model may replace the learned ones.
//!
//! A model reads text of tools here, so its answer is data too: it can keep, discard and merge the
//! records that it was asked about, and nothing else. A fix keeps the words of its session.

mod reply;
mod request;
mod rewording;

use std::collections::BTreeMap;

use crate::model::{Kind, Verdict};

pub(crate) use reply::accept;
pub use request::{MAX_TOKENS, PROMPT, ask};
pub(crate) use rewording::{LearnedFrom, code, demand, sentence, steps};

/// Record in a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Record id.
    pub id: String,
    /// Kind of the record.
    pub kind: Kind,
    /// Names and texts of the fields that the model reads. They are redacted.
    pub fields: BTreeMap<&'static str, String>,
    /// Error of a fix, or skill of a rule: only records of the same group can say the same.
    pub group: String,
}

/// Verdict on one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    /// Record id.
    pub(crate) id: String,
    /// Kind of the record.
    pub(crate) kind: Kind,
    /// Verdict.
    pub(crate) verdict: Verdict,
    /// Id of the record that says the same; only for a merge.
    pub(crate) into: Option<String>,
    /// Reason, one line.
    pub(crate) reason: String,
    /// Texts that the author of the verdict proposes for a record that stays.
    pub(crate) rewording: Rewording,
}

/// Proposed texts; empty ones leave the record as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rewording {
    /// Smallest working call.
    pub(crate) worked: String,
    /// Cause of the failure.
    pub(crate) cause: String,
    /// Title of the procedure.
    pub(crate) name: String,
    /// Steps of the procedure.
    pub(crate) steps: Vec<String>,
    /// Demand of a rule.
    pub(crate) rule: String,
    /// Condition of a rule.
    pub(crate) applies_when: String,
}

#[cfg(test)]
mod tests;
