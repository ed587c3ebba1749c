//! Measures how corrections are treated, on corrections whose right treatment is known.
//!
//! They are not remembered: this reads and writes no store. What becomes of each is decided by the
//! code of `correct`, and what goes together by that of `memory conflicts`.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::learn::conflict::Relation;
use crate::learn::reflect;

use super::Error;
use super::conflicts::{pairs, vectors};

/// A correction whose right treatment is known.
#[derive(Debug, Clone)]
pub struct JudgedCorrection {
    /// Its id.
    pub id: String,
    /// What was said.
    pub text: String,
    /// Whether a lasting rule should come of it.
    pub generalisable: bool,
    /// The words that the rule must still hold.
    pub key_terms: Vec<String>,
}

/// Two corrections, and how they really stand to each other.
#[derive(Debug, Clone)]
pub struct JudgedPair {
    /// The id of one.
    pub a: String,
    /// The id of the other.
    pub b: String,
    /// `duplicate`, `contradiction`, or anything else for neither.
    pub label: String,
}

/// How often something was found rightly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    /// How often it was found.
    pub found: usize,
    /// How often rightly.
    pub right: usize,
    /// How often there was something to find.
    pub expected: usize,
    /// `right / found`; 1 where nothing was found.
    pub precision: f64,
    /// `right / expected`; 1 where there was nothing to find.
    pub recall: f64,
}

/// How well corrections are treated.
#[derive(Debug, Serialize)]
pub struct CorrectionsReport {
    /// How many corrections there are.
    pub corrections: usize,
    /// How many pairs of them were judged by a person; only those count.
    pub pairs: usize,
    /// Pairs that say the same.
    pub duplicates: Measured,
    /// Pairs that cannot both be obeyed.
    pub contradictions: Measured,
    /// Corrections of which no lasting rule comes.
    pub rejected: Measured,
    /// The share of the rules that hold all of their key terms; `None` where there are none.
    pub key_terms_kept: Option<f64>,
}

/// Measures how corrections are treated: what becomes a rule, and which rules go together. Reads and
/// writes no store.
///
/// # Errors
///
/// Those of the built-in embedder.
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
        // What became no rule stands beside none.
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
        key_terms_kept: (!kept.is_empty())
            .then(|| share(kept.iter().filter(|kept| **kept).count(), kept.len())),
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
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        1.0
    } else {
        (part as f64 / whole as f64 * 1000.0).round() / 1000.0
    }
}
