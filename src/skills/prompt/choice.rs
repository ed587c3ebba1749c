//! Parameters of the selection of rules and procedures, and the records that it leaves out.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::model::Reflexion;

/// Record that was left out of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Omitted {
    /// Record id.
    pub id: String,
    /// Status: `active`, `candidate`, `superseded` or `retired`.
    pub status: &'static str,
    /// Reason for the omission.
    pub reason: String,
}

/// Parameters of the selection of rules and procedures.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// Input of the skill; `None` if unknown.
    pub input: Option<&'a str>,
    /// Skill, as `domain/skill`.
    pub skill: &'a str,
    /// Token budget for rules.
    pub budget: usize,
    /// Token budget for procedures.
    pub procedures_budget: usize,
    /// Current time, for the age of rules.
    pub now: DateTime<Utc>,
    /// Fences observed rules as data, with a nonce.
    pub fence: fn(&str, &str) -> String,
    /// Random word for the fence.
    pub nonce: &'a str,
    /// Returns the reason why a rule must not be shown. It is asked only about rules that would be.
    pub refuses: fn(&Reflexion) -> Option<String>,
}

impl Choice<'_> {
    /// Returns the parameters without an input, a skill and a budget, and with an open fence.
    #[cfg(test)]
    pub(super) fn of(now: DateTime<Utc>) -> Self {
        Self {
            input: None,
            skill: "",
            budget: 0,
            procedures_budget: 0,
            now,
            fence: |text, _| text.to_owned(),
            nonce: "n0nce",
            refuses: |_| None,
        }
    }
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
