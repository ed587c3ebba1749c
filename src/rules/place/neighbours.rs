//! Rules near a text, by meaning and words together.
//!
//! Words choose whom to compare and break ties; meaning decides. So a rule in other words is found, although
//! others share more of them.

use std::collections::HashSet;

use memctl_redact::composed;
use memctl_search::embedder::{Vector, built_in};
use serde::Serialize;

use crate::model::Reflexion;
use crate::model::text::{key_words, similarity};
use crate::rules::place::changes::judged_relation;
use crate::store::workspace::Error;

/// Maximum number of rules to compare by meaning: those with the most words in common.
const COMPARED: usize = 48;
/// Maximum number of rules that are paired, the newest ones: to embed one takes 2 ms.
const PAIRED: usize = 300;
/// Minimum cosine. Of 100 pairs of rules about different things one is above it.
pub(crate) const FLOOR: f64 = 0.41;

/// Rule near a new one.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SimilarRule {
    /// Id of the rule.
    pub id: String,
    /// Text of the rule.
    pub rule: String,
    /// Cosine of the two rules' vectors, from 0 to 1.
    pub score: f64,
}

impl From<(f64, Reflexion)> for SimilarRule {
    fn from((score, rule): (f64, Reflexion)) -> Self {
        Self {
            id: rule.reflexion_id,
            rule: rule.rule,
            score: (score * 10_000.0).round() / 10_000.0,
        }
    }
}

/// Returns the cosine of each text to `to`, by the built-in embedder.
pub(crate) fn cosines(to: &str, texts: &[&str]) -> Result<Vec<f64>, Error> {
    let all: Vec<&str> = std::iter::once(to).chain(texts.iter().copied()).collect();
    let vectors = built_in(true)?.embed(&all)?;
    let of = |vector: &Vector| cosine(&vectors[0], vector);
    Ok(vectors[1..].iter().map(of).collect())
}

/// Cosine of two vectors of length one.
pub(crate) fn cosine(a: &Vector, b: &Vector) -> f64 {
    a.iter().zip(b.iter()).map(|(x, y)| f64::from(x * y)).sum()
}

/// Returns the rules nearest to a text with their cosines, at most `limit`. The nearest by meaning and words
/// together come first.
pub(crate) fn nearest(
    text: &str,
    rules: Vec<Reflexion>,
    limit: usize,
) -> Result<Vec<(f64, Reflexion)>, Error> {
    // The first rule of a skill need not wait for the embedder.
    if rules.is_empty() {
        return Ok(Vec::new());
    }
    let own = key_words(text);
    let shared = |other: &Reflexion| similarity(&own, &key_words(&other.rule), &|_| 1.0);
    let mut rules: Vec<(f64, Reflexion)> = rules.into_iter().map(|r| (shared(&r), r)).collect();
    rules.sort_by(|a, b| b.0.total_cmp(&a.0));
    rules.truncate(COMPARED);
    let texts: Vec<&str> = rules.iter().map(|(_, rule)| rule.rule.as_str()).collect();
    let mut near: Vec<(f64, f64, Reflexion)> = cosines(text, &texts)?
        .into_iter()
        .zip(rules)
        .map(|(cosine, (shared, rule))| (cosine + shared, cosine, rule))
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.truncate(limit);
    Ok(near
        .into_iter()
        .map(|(_, cosine, rule)| (cosine, rule))
        .collect())
}

/// Returns pairs of rules in use that nobody has related, each the nearest of the other one in its skill, with their
/// cosine: the nearest pairs first, and in each the older rule. `rules` come oldest first. Of several with the same words
/// only the first counts.
pub fn near_pairs(rules: &[Reflexion]) -> Result<Vec<(f64, &Reflexion, &Reflexion)>, Error> {
    let mut seen = HashSet::new();
    let rules = rules.iter().filter(|rule| rule.is_in_use());
    let rules = rules.filter(|rule| seen.insert((&rule.skill, words_of(&rule.rule))));
    let mut rules: Vec<&Reflexion> = rules.collect();
    rules.drain(..rules.len().saturating_sub(PAIRED));
    if rules.len() < 2 {
        return Ok(Vec::new());
    }
    let texts: Vec<&str> = rules.iter().map(|rule| rule.rule.as_str()).collect();
    let vectors = built_in(true)?.embed(&texts)?;
    let nearest = |at: usize| -> Option<(usize, f64)> {
        let is_other = |other: &usize| *other != at && rules[*other].skill == rules[at].skill;
        let others = (0..rules.len()).filter(is_other);
        let scores = others.map(|other| (other, cosine(&vectors[at], &vectors[other])));
        let best = scores.max_by(|a, b| a.1.total_cmp(&b.1));
        best.filter(|(_, score)| *score >= FLOOR)
    };
    let near: Vec<Option<(usize, f64)>> = (0..rules.len()).map(nearest).collect();
    let mut pairs = Vec::new();
    for (at, one) in near.iter().enumerate() {
        if let Some((other, score)) = *one
            && at < other
            && near[other].is_some_and(|(back, _)| back == at)
            && judged_relation(rules[at], rules[other]).is_none()
        {
            pairs.push((score, rules[at], rules[other]));
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    Ok(pairs)
}

/// Returns `true` if two texts have the same words, ignoring case, white space and the two forms of
/// Unicode.
pub(crate) fn same_words(a: &str, b: &str) -> bool {
    words_of(a) == words_of(b)
}

fn words_of(text: &str) -> Vec<String> {
    let text = composed(text);
    let words = text.split_whitespace();
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_with_other_words_is_near_although_many_share_more() {
        let rule = |id: usize, text: &str| Reflexion {
            reflexion_id: format!("REFL-{id:03}"),
            rule: text.to_owned(),
            ..Reflexion::default()
        };
        let colours = [
            "red", "blue", "green", "black", "white", "brown", "pink", "grey", "cyan", "teal",
        ];
        let mut rules: Vec<Reflexion> = Vec::new();
        for colour in colours {
            for thing in ["button", "banner"] {
                let text = format!("Never paint the {colour} {thing} without asking first.");
                rules.push(rule(rules.len(), &text));
            }
        }
        rules.push(rule(100, "Get a confirmation before pushing commits."));
        rules.push(rule(101, "Push only signed commits, asking nobody."));
        let near = nearest("Never push commits without asking first.", rules, 3).unwrap();
        let ids: Vec<&str> = near
            .iter()
            .map(|(_, rule)| rule.reflexion_id.as_str())
            .collect();
        assert!(ids.contains(&"REFL-100"), "{ids:?}");
        assert!(ids.contains(&"REFL-101"), "{ids:?}");
    }
}
