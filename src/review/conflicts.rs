//! Finds duplicate rules and contradictory rules.
//!
//! Rules are compared within a skill, and only those in use. The vectors always come from the
//! built-in embedder, because the thresholds were measured with it and it sends nothing to a
//! server. A pair that a person or a model has judged is not compared again.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::embedder::{EmbedError, Vector, built_in};
use crate::learn::conflict::{Finding, Relation, Statement, compare, same_words};
use crate::model::{Reflexion, RelatedRule, RuleRelation, SkillPath};
use crate::store::{Scoped, Selection};

use crate::workspace::Error;

/// Number of rules to embed between two progress reports.
const BATCH: usize = 32;

/// Result of the comparison.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct ConflictsReport {
    /// Rules with the same meaning.
    pub duplicates: Vec<RulePair>,
    /// Rules that cannot both be obeyed.
    pub contradictions: Vec<RulePair>,
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

/// Compares the rules of a skill, or of each skill. `progress` gets the number embedded and the
/// total.
pub fn conflicts(
    store: &Scoped,
    skill: Option<&SkillPath>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<ConflictsReport, Error> {
    let selection = Selection {
        skill,
        newest: None,
    };
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
                .push(format!("compared by words alone: {error}"));
            Vec::new()
        });
        let found = relations(&rules, &texts, &vectors);
        for (a, b, finding) in found {
            let pair = RulePair {
                a: rules[a].reflexion_id.clone(),
                b: rules[b].reflexion_id.clone(),
                reason: finding.reason,
                skill: skill.to_owned(),
                text_a: rules[a].rule.clone(),
                text_b: rules[b].rule.clone(),
            };
            match finding.relation {
                Relation::Duplicate => report.duplicates.push(pair),
                Relation::Contradiction => report.contradictions.push(pair),
            }
        }
    }
    Ok(report)
}

/// Pairs of rules that are the same or contradictory: as a person or a model judged, else by
/// comparison.
pub(super) fn relations(
    rules: &[&Reflexion],
    texts: &[&str],
    vectors: &[Vector],
) -> Vec<(usize, usize, Finding)> {
    let mut found = pairs(texts, vectors);
    found.retain(|(a, b, _)| judged_relation(rules[*a], rules[*b]).is_none());
    found.extend(judged_pairs(rules));
    found
}

/// Judgement of a person or a model on two rules; `None` if there is none.
pub(super) fn judged_relation<'r>(a: &'r Reflexion, b: &'r Reflexion) -> Option<&'r RelatedRule> {
    let on = |rule: &'r Reflexion, other: &Reflexion| {
        let mut relations = rule.relations.iter().rev();
        relations.find(|related| related.id == other.reflexion_id)
    };
    on(b, a).or_else(|| on(a, b))
}

/// Pairs of rules that a person or a model found to be the same or contradictory, the older one
/// first.
fn judged_pairs(rules: &[&Reflexion]) -> Vec<(usize, usize, Finding)> {
    let mut found = Vec::new();
    for (b, rule) in rules.iter().enumerate() {
        for related in &rule.relations {
            let other = rules.iter().position(|r| r.reflexion_id == related.id);
            let Some(a) = other.filter(|a| *a != b) else {
                continue;
            };
            if judged_relation(rules[a], rule) != Some(related) {
                continue;
            }
            let relation = match related.relation {
                RuleRelation::Same => Relation::Duplicate,
                RuleRelation::Contradicts => Relation::Contradiction,
                RuleRelation::Narrows | RuleRelation::Unrelated => continue,
            };
            let reason = format!("{} ({})", related.reason, related.by);
            found.push((a.min(b), a.max(b), Finding { relation, reason }));
        }
    }
    found
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

/// Finds duplicates and contradictions among texts. Equal texts are each paired with their first
/// copy, which alone is compared with the rest: a thousand copies make a thousand pairs, not half a
/// million.
pub(crate) fn pairs(texts: &[&str], vectors: &[Vector]) -> Vec<(usize, usize, Finding)> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let (mut places, mut found) = (Vec::new(), Vec::new());
    for (place, text) in texts.iter().enumerate() {
        let of_text = *first.entry(text).or_insert(place);
        if of_text == place {
            places.push(place);
        } else {
            found.push((of_text, place, same_words()));
        }
    }
    let statements: Vec<Statement> = places.iter().map(|at| Statement::of(texts[*at])).collect();
    let cosine = |a: usize, b: usize| {
        let (a, b) = (vectors.get(places[a])?, vectors.get(places[b])?);
        Some(a.iter().zip(b.iter()).map(|(x, y)| f64::from(x * y)).sum())
    };
    let among = compare(&statements, &cosine);
    found.extend(
        among
            .into_iter()
            .map(|(a, b, finding)| (places[a], places[b], finding)),
    );
    found.sort_by_key(|(a, b, _)| (*a, *b));
    found
}
