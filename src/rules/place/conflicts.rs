//! Rules that a model or a person has related, and the vectors by which `review` finds near ones.
//!
//! The vectors always come from the built-in embedder, because the threshold was measured with it and it sends
//! nothing to a server.

use std::collections::HashMap;

use crate::model::{Reflexion, RelatedRule, RuleRelation};
use memctl_search::embedder::{EmbedError, Vector, built_in};

/// Number of rules to embed between two progress reports.
const BATCH: usize = 32;
/// Minimum cosine of rules that may say the same. Of 100 pairs of rules about different things one
/// is above it.
pub(crate) const ALIKE: f64 = 0.41;

/// Two rules of a list that are the same or contradict each other, by their places in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RelatedPair {
    pub(crate) older: usize,
    pub(crate) newer: usize,
    /// `Same` or `Contradicts`.
    pub(crate) relation: RuleRelation,
    /// Evidence for it.
    pub(crate) reason: String,
}

/// Pairs of rules that are the same or contradictory: as a person or a model judged, or word for
/// word.
pub(crate) fn relations(rules: &[&Reflexion]) -> Vec<RelatedPair> {
    let mut found = same_words(rules);
    found.retain(|pair| judged_relation(rules[pair.older], rules[pair.newer]).is_none());
    found.extend(judged_pairs(rules));
    found
}

/// Judgement of a person or a model on two rules; `None` if there is none.
pub(crate) fn judged_relation<'r>(a: &'r Reflexion, b: &'r Reflexion) -> Option<&'r RelatedRule> {
    let on = |rule: &'r Reflexion, other: &Reflexion| {
        let mut relations = rule.relations.iter().rev();
        relations.find(|related| related.id == other.reflexion_id)
    };
    let (newer, older) = (on(b, a), on(a, b));
    // A person decides, whichever rule they named first.
    let of_person = [newer, older]
        .into_iter()
        .flatten()
        .find(|r| r.by == "user");
    of_person.or(newer).or(older)
}

/// Pairs of rules that a person or a model found to be the same or contradictory, the older one
/// first.
fn judged_pairs(rules: &[&Reflexion]) -> Vec<RelatedPair> {
    let mut found = Vec::new();
    for (b, rule) in rules.iter().enumerate() {
        for related in &rule.relations {
            let other = rules.iter().position(|r| r.reflexion_id == related.id);
            let Some(a) = other.filter(|a| *a != b) else {
                continue;
            };
            let relation = related.relation;
            let is_found = matches!(relation, RuleRelation::Same | RuleRelation::Contradicts);
            if is_found && judged_relation(rules[a], rule) == Some(related) {
                found.push(RelatedPair {
                    older: a.min(b),
                    newer: a.max(b),
                    relation,
                    reason: format!("{} ({})", related.reason, related.by),
                });
            }
        }
    }
    found
}

/// Rules with the words of an earlier one, each paired with the first.
fn same_words(rules: &[&Reflexion]) -> Vec<RelatedPair> {
    let mut first: HashMap<String, usize> = HashMap::new();
    let mut found = Vec::new();
    for (place, rule) in rules.iter().enumerate() {
        let words = rule.rule.split_whitespace().collect::<Vec<_>>().join(" ");
        let older = *first.entry(words.to_lowercase()).or_insert(place);
        if older != place {
            found.push(RelatedPair {
                older,
                newer: place,
                relation: RuleRelation::Same,
                reason: "the same words".to_owned(),
            });
        }
    }
    found
}

/// Cosine of two vectors of length one.
pub(crate) fn cosine(a: &Vector, b: &Vector) -> f64 {
    a.iter().zip(b.iter()).map(|(x, y)| f64::from(x * y)).sum()
}

/// Embeds the texts. `progress` gets the number embedded so far.
pub(crate) fn vectors(
    texts: &[&str],
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<Vector>, EmbedError> {
    let model = built_in(true)?;
    let mut vectors = Vec::new();
    for batch in texts.chunks(BATCH) {
        vectors.extend(model.embed(batch)?);
        progress(vectors.len());
    }
    Ok(vectors)
}
