//! Parameters of the rule selection, and its results for rules that are left out.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::model::Reflexion;

/// Record that was left out of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Omitted {
    /// Record id.
    pub id: String,
    /// Status: `active`, `candidate`, `superseded` or `retired`.
    pub status: &'static str,
    /// Reason for the omission.
    pub reason: String,
}

/// Parameters of the rule selection.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// Input of the skill; `None` if unknown.
    pub input: Option<&'a str>,
    /// Token budget for rules.
    pub budget: usize,
    /// Current time, for the age of rules.
    pub now: DateTime<Utc>,
    /// Ids of rules that the experiment withholds. Their tokens stay unused.
    pub withheld: &'a [String],
    /// Fences observed rules as data, with a nonce.
    pub fence: fn(&str, &str) -> String,
    /// Random word for the fence.
    pub nonce: &'a str,
}

/// Confidence of a rule; 0.5 if missing.
pub(super) fn confidence(rule: &Reflexion) -> f64 {
    rule.confidence.unwrap_or(0.5)
}

/// Approximate number of tokens: a quarter of the ASCII characters, plus one per other character.
/// Within a fifth of real tokenizers for English prose and JSON, which is sufficient for budgets.
pub fn tokens(text: &str) -> usize {
    let (ascii, other) = text.chars().fold((0, 0), |(ascii, other), c| {
        if c.is_ascii() {
            (ascii + 1, other)
        } else {
            (ascii, other + 1)
        }
    });
    usize::div_ceil(ascii, 4) + other
}
