//! Pairs of rules that wait: contradictions, and rules that may say the same.
//!
//! Rules are compared within a skill, with the vectors of the built-in embedder, because the threshold was
//! measured with it and it sends nothing to a server. Without a model nothing tells a duplicate from a related
//! rule, so of the others only those are listed that are nearest to each other. A pair that a person or a model
//! has judged is not listed again.

use std::collections::{BTreeMap, HashMap, HashSet};

use memctl_search::embedder::{self, Vector, built_in};

use super::records::about;
use super::waiting::{Waiting, WaitingKind};
use crate::model::{Reflexion, RuleRelation};
use crate::rules::SimilarRule;
use crate::rules::place::merge_rules::judged_relation;
use crate::rules::place::similar::{FLOOR, cosine as cosine_of};

/// Beginning of the reason of two rules that nobody has related.
pub const NEAREST: &str = "nearest to each other";
/// Number of rules to embed between two progress reports.
const BATCH: usize = 32;

/// Pairs of rules, and the nearest rule of each candidate.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    pub(super) waiting: Vec<Waiting>,
    /// Ids of candidates with their nearest rule.
    pub(super) near: BTreeMap<String, SimilarRule>,
    pub(super) warnings: Vec<String>,
}

/// Compares rules in use with each other and with candidates. `progress` gets the number embedded
/// and the total.
pub(super) fn pairs(rules: &[Reflexion], progress: &mut dyn FnMut(usize, usize)) -> Pairs {
    let mut by_skill: BTreeMap<&str, Vec<&Reflexion>> = BTreeMap::new();
    for rule in rules {
        by_skill.entry(&rule.skill).or_default().push(rule);
    }
    by_skill.retain(|_, rules| rules.len() > 1 && rules.iter().any(|rule| rule.is_in_use()));
    let all = by_skill.values().map(Vec::len).sum();
    let mut done = 0;
    let mut found = Pairs::default();
    for rules in by_skill.values() {
        let embedded = vectors(rules, &mut |made| progress(done + made, all));
        done += rules.len();
        let vectors = embedded.unwrap_or_else(|error| {
            let warning = format!("near rules were not looked up: {error}");
            found.warnings.push(warning);
            Vec::new()
        });
        of_skill(rules, &vectors, &mut found);
    }
    found
}

fn vectors(
    rules: &[&Reflexion],
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<Vector>, embedder::Error> {
    let texts: Vec<&str> = rules.iter().map(|rule| rule.rule.as_str()).collect();
    let model = built_in(true)?;
    let mut vectors = Vec::new();
    for batch in texts.chunks(BATCH) {
        vectors.extend(model.embed(batch)?);
        progress(vectors.len());
    }
    Ok(vectors)
}

/// Adds the pairs of one skill.
fn of_skill(rules: &[&Reflexion], vectors: &[Vector], found: &mut Pairs) {
    let cosine =
        |a: usize, b: usize| -> Option<f64> { Some(cosine_of(vectors.get(a)?, vectors.get(b)?)) };
    let in_use: Vec<usize> = (0..rules.len())
        .filter(|at| rules[*at].is_in_use())
        .collect();
    let known = related(rules, &in_use);
    for (older, newer, relation, reason) in &known {
        let score = cosine(*older, *newer).unwrap_or_default();
        let kind = match relation {
            RuleRelation::Contradicts => WaitingKind::Contradiction,
            _ => WaitingKind::Similar,
        };
        found
            .waiting
            .push(pair(rules[*older], rules[*newer], kind, reason, score));
    }
    // One that says the same as an older rule is listed with that one, and with no other.
    let repeats = known.iter().filter(|pair| pair.2 == RuleRelation::Same);
    let repeats: HashSet<usize> = repeats.map(|pair| pair.1).collect();
    let nearest = |at: usize| -> Option<(usize, f64)> {
        let others = in_use
            .iter()
            .filter(|other| **other != at && !repeats.contains(other));
        let scores = others.filter_map(|other| Some((*other, cosine(at, *other)?)));
        let best = scores.max_by(|a, b| a.1.total_cmp(&b.1));
        best.filter(|(_, score)| *score >= FLOOR)
    };
    let near: Vec<Option<(usize, f64)>> = (0..rules.len()).map(nearest).collect();
    for (at, near_one) in near.iter().enumerate() {
        let Some((other, score)) = *near_one else {
            continue;
        };
        let (rule, of) = (rules[at], rules[other]);
        if rule.is_candidate() {
            let near = SimilarRule::from((score, of.clone()));
            found.near.insert(rule.reflexion_id.clone(), near);
            continue;
        }
        let is_mutual = at < other && near[other].is_some_and(|(back, _)| back == at);
        let is_listed = || known.iter().any(|pair| (pair.0, pair.1) == (at, other));
        if rule.is_in_use()
            && is_mutual
            && !repeats.contains(&at)
            && judged_relation(rule, of).is_none()
            && !is_listed()
        {
            let reason = format!("{NEAREST}, similarity {score:.2}");
            // Findings of the program or a model come first.
            let waiting = pair(rule, of, WaitingKind::Similar, &reason, score - 1.0);
            found.waiting.push(waiting);
        }
    }
}

/// Pairs of rules that are the same or contradictory, the older one first: as a person or a model judged, or
/// word for word.
fn related(rules: &[&Reflexion], in_use: &[usize]) -> Vec<(usize, usize, RuleRelation, String)> {
    let mut first: HashMap<String, usize> = HashMap::new();
    let mut found = Vec::new();
    for at in in_use.iter().copied() {
        let words = rules[at]
            .rule
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        // Each is paired with the first of these words.
        let older = *first.entry(words.to_lowercase()).or_insert(at);
        if older != at && judged_relation(rules[older], rules[at]).is_none() {
            found.push((older, at, RuleRelation::Same, "the same words".to_owned()));
        }
        for related in &rules[at].relations {
            let mut others = in_use.iter().copied().filter(|other| *other != at);
            let other = others.find(|other| rules[*other].reflexion_id == related.id);
            let relation = related.relation;
            let is_found = matches!(relation, RuleRelation::Same | RuleRelation::Contradicts);
            if let Some(other) = other.filter(|_| is_found)
                && judged_relation(rules[other], rules[at]) == Some(related)
            {
                let reason = format!("{} ({})", related.reason, related.by);
                found.push((other.min(at), other.max(at), relation, reason));
            }
        }
    }
    found
}

/// Entry about two rules, the older one first.
fn pair(a: &Reflexion, b: &Reflexion, kind: WaitingKind, reason: &str, weight: f64) -> Waiting {
    let (one, two) = (&a.reflexion_id, &b.reflexion_id);
    let command = format!("memctl memory conflicts --merge {one} {two}");
    let mut waiting = about(b, kind, command, reason);
    waiting.id.clone_from(one);
    waiting.other = Some(two.clone());
    waiting.parts.clear();
    waiting.part("older", &a.rule);
    waiting.part("newer", &b.rule);
    waiting.weight = [weight, 0.0, 0.0];
    waiting
}
