//! Lists rules that may say the same, and rules that a model or a person has related.
//!
//! Rules are compared within a skill, and only those in use. The vectors always come from the
//! built-in embedder, because the threshold was measured with it and it sends nothing to a server.
//! Nothing tells a duplicate from a contradiction without understanding, so a pair that is near and
//! that nobody has related is only listed; its reader says what it is.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use crate::model::{Reflexion, RelatedRule, RuleRelation, SkillPath};
use crate::store::{Scoped, Selection};
use memctl_search::embedder::{EmbedError, Vector, built_in};

use crate::store::workspace::Error;

/// Number of rules to embed between two progress reports.
const BATCH: usize = 32;
/// Minimum cosine of rules that may say the same. Of 100 pairs of rules about different things one
/// is above it.
pub(crate) const ALIKE: f64 = 0.41;

/// Result of the comparison.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct ConflictsReport {
    /// Rules that a model or a person found to be the same, or with the same words.
    pub duplicates: Vec<RulePair>,
    /// Rules that a model or a person found to contradict each other.
    pub contradictions: Vec<RulePair>,
    /// Rules that are near in meaning, and that nobody has related, nearest first.
    pub near: Vec<RulePair>,
    /// Number of rules in use; a skill's only rule has none to be compared with.
    pub rules: usize,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Pair of rules, the older one first.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct RulePair {
    /// Id of the older rule.
    pub a: String,
    /// Id of the newer rule.
    pub b: String,
    /// Evidence for the finding.
    pub reason: String,
    /// Skill of both rules.
    pub skill: String,
    /// Text of the older rule.
    pub text_a: String,
    /// Text of the newer rule.
    pub text_b: String,
}

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

/// Compares the rules of a skill, or of each skill. `progress` gets the number embedded and the
/// total.
pub fn conflicts(
    store: &Scoped,
    skill: Option<&SkillPath>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<ConflictsReport, Error> {
    let selection = Selection::of(skill);
    let rules = store.list::<Reflexion>(&selection)?;
    let mut report = ConflictsReport {
        warnings: rules.problems.iter().map(ToString::to_string).collect(),
        ..ConflictsReport::default()
    };
    let mut by_skill: BTreeMap<&str, Vec<&Reflexion>> = BTreeMap::new();
    for rule in rules.records.iter().filter(|rule| rule.is_in_use()) {
        by_skill.entry(&rule.skill).or_default().push(rule);
    }
    report.rules = by_skill.values().map(Vec::len).sum();
    by_skill.retain(|_, rules| rules.len() > 1);
    let all = by_skill.values().map(Vec::len).sum();
    let mut done = 0;
    for (skill, rules) in by_skill {
        let texts: Vec<&str> = rules.iter().map(|rule| rule.rule.as_str()).collect();
        let vectors = vectors(&texts, &mut |made| progress(done + made, all));
        done += texts.len();
        let vectors = vectors.unwrap_or_else(|error| {
            report
                .warnings
                .push(format!("near rules were not looked up: {error}"));
            Vec::new()
        });
        let pair = |a: usize, b: usize, reason: String| RulePair {
            a: rules[a].reflexion_id.clone(),
            b: rules[b].reflexion_id.clone(),
            reason,
            skill: skill.to_owned(),
            text_a: rules[a].rule.clone(),
            text_b: rules[b].rule.clone(),
        };
        let related = relations(&rules);
        for (a, b, score) in near(&rules, &vectors, &related) {
            let reason = format!("similarity {score:.2}, not related by anybody");
            report.near.push(pair(a, b, reason));
        }
        for found in related {
            match found.relation {
                RuleRelation::Contradicts => &mut report.contradictions,
                _ => &mut report.duplicates,
            }
            .push(pair(found.older, found.newer, found.reason));
        }
    }
    Ok(report)
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

/// Pairs of a rule and its nearest other one that nobody has related, nearest first. The first of
/// several that say the same stands for all of them.
fn near(
    rules: &[&Reflexion],
    vectors: &[Vector],
    related: &[RelatedPair],
) -> Vec<(usize, usize, f64)> {
    let repeats = related
        .iter()
        .filter(|pair| pair.relation == RuleRelation::Same);
    let repeats: HashSet<usize> = repeats.map(|pair| pair.newer).collect();
    let firsts: Vec<usize> = (0..vectors.len())
        .filter(|at| !repeats.contains(at))
        .collect();
    let mut found: Vec<(usize, usize, f64)> = Vec::new();
    for &at in &firsts {
        let others = firsts.iter().copied().filter(|other| *other != at);
        let scores = others.map(|other| (other, cosine(&vectors[at], &vectors[other])));
        let Some((other, score)) = scores.max_by(|a, b| a.1.total_cmp(&b.1)) else {
            continue;
        };
        let (a, b) = (at.min(other), at.max(other));
        let is_listed = found.iter().any(|pair| (pair.0, pair.1) == (a, b))
            || related
                .iter()
                .any(|pair| (pair.older, pair.newer) == (a, b))
            || judged_relation(rules[a], rules[b]).is_some();
        if score >= ALIKE && !is_listed {
            found.push((a, b, score));
        }
    }
    found.sort_by(|a, b| b.2.total_cmp(&a.2));
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
