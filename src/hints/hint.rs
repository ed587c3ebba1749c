//! Hint: a fix or a procedure, as an agent and a person get it.

use serde::Serialize;

use crate::model::{Evidence, Fix, Kind, Record as _, Trust};

use super::differing_name::DifferingName;

/// Default number of hints.
pub(crate) const MAX_HINTS: usize = 3;
/// Maximum length of displayed code or output, in characters.
const SHOWN: usize = 1_200;

/// Hint for a failure.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Hint {
    /// Record id.
    pub id: String,
    /// Record kind.
    pub kind: Kind,
    /// Error key of the fix.
    pub error_key: String,
    /// Failing code; empty for a procedure.
    pub failing_code: String,
    /// Working code; the numbered steps of a procedure.
    pub working_code: String,
    /// Output of the working code.
    pub success_output: String,
    /// Match score, from 0 to 1.
    pub score: f64,
    /// Mean of the posterior, from 0 to 1.
    pub confidence: f64,
    /// Outcomes of earlier uses.
    pub evidence: Evidence,
    /// Trust level.
    pub trust: Trust,
    /// Reason for the match.
    pub why: String,
    /// Names in the working code that the present error has otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<DifferingName>,
}

impl Hint {
    /// Hint of a fix with this match score, from 0 to 1.
    pub(super) fn of(fix: Fix, score: f64, why: String, differs: Vec<DifferingName>) -> Self {
        let (evidence, trust) = (fix.evidence(), fix.trust());
        Self {
            id: fix.fix_id,
            kind: Kind::Fix,
            error_key: fix.error_key,
            failing_code: cut(&fix.failing_code),
            working_code: cut(&fix.working_code),
            success_output: cut(&fix.success_output),
            score: (score * 1e4).round() / 1e4,
            confidence: (evidence.posterior() * 1e4).round() / 1e4,
            evidence,
            trust,
            why,
            differs,
        }
    }

    /// Hint for a call that has not run yet.
    pub(super) fn before(fix: Fix) -> Self {
        Self::of(fix, 1.0, "same call".to_owned(), Vec::new())
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
