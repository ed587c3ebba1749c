//! Pairs of rules that wait: contradictions, and rules that may say the same.
//!
//! Rules are compared within a skill, with the vectors of the built-in embedder. Without a model
//! nothing tells a duplicate from a related rule, so of the others only those are listed that are
//! nearest to each other. A pair that a person or a model has judged is not listed again.

use std::collections::{BTreeMap, HashSet};

use crate::model::{Kind, Reflexion, RuleRelation};
use crate::rules::place::conflicts::{
    ALIKE, cosine as cosine_of, judged_relation, relations, vectors,
};
use memctl_search::embedder::Vector;

use super::records::about;
use super::waiting::{NearRule, Waiting, WaitingKind};

/// Beginning of the reason of two rules that nobody has related.
pub const NEAREST: &str = "nearest to each other";

/// Pairs of rules, and the nearest rule of each candidate.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    pub(super) waiting: Vec<Waiting>,
    /// Ids of candidates with their nearest rule.
    pub(super) near: Vec<(String, NearRule)>,
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
        let texts: Vec<&str> = rules.iter().map(|rule| rule.rule.as_str()).collect();
        let vectors = vectors(&texts, &mut |made| progress(done + made, all));
        done += texts.len();
        let vectors = vectors.unwrap_or_else(|error| {
            let warning = format!("near rules were not looked up: {error}");
            found.warnings.push(warning);
            Vec::new()
        });
        of_skill(rules, &vectors, &mut found);
    }
    found
}

/// Adds the pairs of one skill.
fn of_skill(rules: &[&Reflexion], vectors: &[Vector], found: &mut Pairs) {
    let cosine =
        |a: usize, b: usize| -> Option<f64> { Some(cosine_of(vectors.get(a)?, vectors.get(b)?)) };
    let in_use: Vec<usize> = (0..rules.len())
        .filter(|at| rules[*at].is_in_use())
        .collect();
    let used: Vec<&Reflexion> = in_use.iter().map(|at| rules[*at]).collect();
    let known = relations(&used);
    for one in &known {
        let score = cosine(in_use[one.older], in_use[one.newer]).unwrap_or_default();
        let kind = match one.relation {
            RuleRelation::Contradicts => WaitingKind::Contradiction,
            _ => WaitingKind::Similar,
        };
        let waiting = pair(used[one.older], used[one.newer], kind, &one.reason, score);
        found.waiting.push(waiting);
    }
    // One that says the same as an older rule is listed with that one, and with no other.
    let repeats = known
        .iter()
        .filter(|pair| pair.relation == RuleRelation::Same);
    let repeats: HashSet<usize> = repeats.map(|pair| in_use[pair.newer]).collect();
    let nearest = |at: usize| -> Option<(usize, f64)> {
        let others = in_use.iter().filter(|other| **other != at);
        let others = others.filter(|other| !repeats.contains(other));
        let scores = others.filter_map(|other| Some((*other, cosine(at, *other)?)));
        scores.max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let near: Vec<Option<(usize, f64)>> = (0..rules.len()).map(nearest).collect();
    for (at, near_one) in near.iter().enumerate() {
        let Some((other, score)) = near_one.filter(|(_, score)| *score >= ALIKE) else {
            continue;
        };
        let (rule, of) = (rules[at], rules[other]);
        if rule.is_candidate() {
            let near = NearRule {
                id: of.reflexion_id.clone(),
                rule: of.rule.clone(),
                score: rounded(score),
            };
            found.near.push((rule.reflexion_id.clone(), near));
            continue;
        }
        let is_mutual =
            !repeats.contains(&at) && at < other && near[other].is_some_and(|(back, _)| back == at);
        let is_listed = || {
            let mut known = known.iter();
            known.any(|pair| in_use[pair.older] == at && in_use[pair.newer] == other)
        };
        if rule.is_in_use() && is_mutual && judged_relation(rule, of).is_none() && !is_listed() {
            let reason = format!("{NEAREST}, similarity {score:.2}");
            // Findings of the program or a model come first.
            let waiting = pair(rule, of, WaitingKind::Similar, &reason, score - 1.0);
            found.waiting.push(waiting);
        }
    }
}

/// Entry about two rules, the older one first.
fn pair(a: &Reflexion, b: &Reflexion, kind: WaitingKind, reason: &str, weight: f64) -> Waiting {
    let (one, two) = (&a.reflexion_id, &b.reflexion_id);
    let command = format!("memctl memory conflicts --merge {one} {two}");
    let mut waiting = about(b, kind, command);
    waiting.id.clone_from(one);
    waiting.record = Kind::Reflexion;
    waiting.other = Some(two.clone());
    reason.clone_into(&mut waiting.reason);
    waiting.parts.clear();
    waiting.part("older", &a.rule);
    waiting.part("newer", &b.rule);
    waiting.weight = [weight, 0.0, 0.0];
    waiting
}

fn rounded(score: f64) -> f64 {
    (score * 10_000.0).round() / 10_000.0
}
