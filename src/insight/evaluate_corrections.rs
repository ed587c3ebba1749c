//! Measures the handling of corrections on a dataset with known results.
//!
//! Reads and writes no store. The code of `correct` decides which corrections become rules, and
//! that of `memory conflicts` which rules are duplicates or contradictions.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::learn::conflict::Relation;
use crate::learn::reflect;

use crate::review::conflicts::{pairs, vectors};
use crate::workspace::Error;

/// Correction with its known result.
#[derive(Debug, Clone)]
pub struct JudgedCorrection {
    /// Id of the correction.
    pub id: String,
    /// Text of the correction.
    pub text: String,
    /// True if it should become a lasting rule.
    pub generalisable: bool,
    /// Terms that the rule must keep.
    pub key_terms: Vec<String>,
}

/// Pair of corrections with its known relation.
#[derive(Debug, Clone)]
pub struct JudgedPair {
    /// Id of the first correction.
    pub a: String,
    /// Id of the second correction.
    pub b: String,
    /// Relation: `duplicate`, `contradiction`, or anything else for neither.
    pub label: String,
}

/// Precision and recall of one decision.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Measured {
    /// Number of cases found.
    pub found: usize,
    /// Number of correct cases among them.
    pub right: usize,
    /// Number of cases in the dataset.
    pub expected: usize,
    /// `right / found`; `None` if nothing was found.
    pub precision: Option<f64>,
    /// `right / expected`; `None` if there was nothing to find.
    pub recall: Option<f64>,
}

/// Quality of the handling of corrections.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct CorrectionsReport {
    /// Number of corrections.
    pub corrections: usize,
    /// Number of pairs judged by a person; only those count.
    pub pairs: usize,
    /// Pairs with the same meaning.
    pub duplicates: Measured,
    /// Pairs that cannot both be obeyed.
    pub contradictions: Measured,
    /// Corrections that become no rule.
    pub rejected: Measured,
    /// Share of the rules that keep all of their key terms; `None` without such rules.
    pub key_terms_kept: Option<f64>,
}

/// Measures which corrections become rules, and which rules are found to be related. Reads and
/// writes no store.
///
/// # Errors
///
/// Built-in embedder fails.
pub fn evaluate_corrections(
    corrections: &[JudgedCorrection],
    judged: &[JudgedPair],
    progress: &mut dyn FnMut(usize, usize),
) -> Result<CorrectionsReport, Error> {
    let texts: Vec<&str> = corrections.iter().map(|c| c.text.as_str()).collect();
    let vectors = vectors(&texts, &mut |made| progress(made, texts.len()))?;
    let rules: HashMap<&str, String> = corrections
        .iter()
        .filter_map(|c| Some((c.id.as_str(), reflect::rule_of(&c.text)?)))
        .collect();
    let mut found: HashMap<(&str, &str), Relation> = HashMap::new();
    for (a, b, finding) in pairs(&texts, &vectors) {
        let (a, b) = (corrections[a].id.as_str(), corrections[b].id.as_str());
        // A correction that became no rule has no relation to others.
        if rules.contains_key(a) && rules.contains_key(b) {
            found.insert((a, b), finding.relation);
            found.insert((b, a), finding.relation);
        }
    }
    let among = |relation: Relation, label: &str| {
        let is_found = |pair: &&JudgedPair| found.get(&(&*pair.a, &*pair.b)) == Some(&relation);
        let of_label = |pair: &&JudgedPair| pair.label == label;
        Measured::of(
            judged.iter().filter(is_found).count(),
            judged.iter().filter(is_found).filter(of_label).count(),
            judged.iter().filter(of_label).count(),
        )
    };
    let rejected: HashSet<&str> = corrections
        .iter()
        .map(|c| c.id.as_str())
        .filter(|id| !rules.contains_key(id))
        .collect();
    let lasting = |c: &&JudgedCorrection| !c.generalisable;
    let with_terms = corrections.iter().filter(|c| !c.key_terms.is_empty());
    let kept: Vec<bool> = with_terms
        .filter_map(|c| {
            let rule = rules.get(c.id.as_str())?.to_lowercase();
            Some(
                c.key_terms
                    .iter()
                    .all(|term| rule.contains(&term.to_lowercase())),
            )
        })
        .collect();
    Ok(CorrectionsReport {
        corrections: corrections.len(),
        pairs: judged.len(),
        duplicates: among(Relation::Duplicate, "duplicate"),
        contradictions: among(Relation::Contradiction, "contradiction"),
        rejected: Measured::of(
            rejected.len(),
            corrections
                .iter()
                .filter(lasting)
                .filter(|c| rejected.contains(c.id.as_str()))
                .count(),
            corrections.iter().filter(lasting).count(),
        ),
        key_terms_kept: share(kept.iter().filter(|kept| **kept).count(), kept.len()),
    })
}

impl Measured {
    fn of(found: usize, right: usize, expected: usize) -> Self {
        Self {
            found,
            right,
            expected,
            precision: share(right, found),
            recall: share(right, expected),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of pairs stay far below 2^52"
)]
fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| (part as f64 / whole as f64 * 1000.0).round() / 1000.0)
}
