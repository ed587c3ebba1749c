//! Finds the rules that say the same, and those that cannot both be obeyed.
//!
//! Rules are compared within a skill: what two skills are told is no business of each other. Rules
//! that no prompt shows any more are left out. The vectors are the built-in embedder's whatever is
//! configured for the search, because the limits were measured with it, and nothing is sent anywhere.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::learn::conflict::{Finding, Relation, Statement, compare, same_words};
use crate::model::{Reflexion, SkillPath};
use crate::search::{EmbedError, Vector, built_in};
use crate::store::Selection;

use super::{Engine, Error};

/// So many rules get their vectors between two reports of progress.
const BATCH: usize = 32;

/// What does not go together.
#[derive(Debug, Default, Serialize)]
pub struct ConflictsReport {
    /// Rules that say the same.
    pub duplicates: Vec<RulePair>,
    /// Rules that cannot both be obeyed.
    pub contradictions: Vec<RulePair>,
    /// How many rules were compared.
    pub rules: usize,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

/// Two rules, the older one first.
#[derive(Debug, Serialize)]
pub struct RulePair {
    /// The id of the older one.
    pub a: String,
    /// The id of the newer one.
    pub b: String,
    /// By what one sees it.
    pub reason: String,
    /// The skill of both.
    pub skill: String,
    /// The text of the older one.
    pub text_a: String,
    /// The text of the newer one.
    pub text_b: String,
}

impl Engine {
    /// Compares the rules of a skill, or of each skill. `progress` is told how many have a vector.
    pub fn conflicts(
        &self,
        skill: Option<&SkillPath>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<ConflictsReport, Error> {
        let selection = Selection {
            skill,
            newest: None,
        };
        let rules = self.store.list::<Reflexion>(&selection)?;
        let mut report = ConflictsReport {
            warnings: rules.problems.iter().map(ToString::to_string).collect(),
            ..ConflictsReport::default()
        };
        let mut by_skill: BTreeMap<&str, Vec<&Reflexion>> = BTreeMap::new();
        for rule in rules.records.iter().filter(|rule| rule.is_in_use()) {
            by_skill.entry(&rule.skill).or_default().push(rule);
        }
        by_skill.retain(|_, rules| rules.len() > 1);
        let all = by_skill.values().map(Vec::len).sum();
        report.rules = all;
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
            for (a, b, finding) in pairs(&texts, &vectors) {
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
}

/// The vector of each text. `progress` is told how many there are.
pub(super) fn vectors(
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

/// What was found among some texts. Those that are equal to the letter are each paired with the first of
/// them, which alone is compared with the others: a thousand copies are a thousand pairs, not half a
/// million.
pub(super) fn pairs(texts: &[&str], vectors: &[Vector]) -> Vec<(usize, usize, Finding)> {
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
