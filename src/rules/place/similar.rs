//! Rules that a new rule may repeat, narrow or contradict: the nearest ones of its skill.
//!
//! The program decides alone only that the same words are the same. Of the rest a person sees the
//! nearest rules and says which are the same. Words choose the rules that are compared by meaning,
//! always with the built-in embedder: a correction waits neither for the search index nor for a
//! server.

use memctl_search::embedder::{Vector, built_in};
use serde::Serialize;
use serde_json::{Value, json};

use crate::model::text::{key_words, similarity};
use crate::model::{Kind, Reflexion, RuleRelation, SkillPath};
use crate::rules::reflect::Judged;
use crate::store::Selection;
use crate::store::workspace::{Error, Workspace};

/// Maximum number of similar rules to show.
const SHOWN: usize = 3;
/// Maximum number of rules to compare by meaning: those with the most words in common.
const COMPARED: usize = 16;
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

/// Returns the rules of the same skill that are nearest to a rule, best first, without those in
/// `named`.
pub(crate) fn similar_rules(
    workspace: &Workspace,
    rule: &Reflexion,
    named: &[&str],
) -> Result<Vec<SimilarRule>, Error> {
    let skill: SkillPath = rule.skill.parse()?;
    let of_skill = Selection::of(&skill);
    let mut rules = workspace.store.list::<Reflexion>(&of_skill)?.records;
    rules.retain(|other| {
        let is_other = other.reflexion_id != rule.reflexion_id;
        is_other
            && (other.is_in_use() || other.is_candidate())
            && !named.contains(&other.reflexion_id.as_str())
    });
    let mut near = nearest(&rule.rule, rules, SHOWN)?;
    near.retain(|(score, _)| *score >= FLOOR);
    Ok(near.into_iter().map(SimilarRule::from).collect())
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

/// Returns the rules nearest to a text with their cosines, at most `limit`, nearest first.
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
    let mut near: Vec<(f64, Reflexion)> = cosines(text, &texts)?
        .into_iter()
        .zip(rules.into_iter().map(|(_, rule)| rule))
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.truncate(limit);
    Ok(near)
}

/// Lets a rule take the place of another, which stays in its file and names it as its successor.
/// Returns the guardrail files that the other was removed from.
pub fn replace_rule(
    workspace: &Workspace,
    rule: &str,
    other: &str,
    warnings: &mut Vec<String>,
) -> Result<Vec<String>, Error> {
    let mut writer = workspace.writer()?;
    let replaced: Reflexion = writer.store().get(other)?;
    writer.update(Kind::Reflexion, other, &replaced_by(rule))?;
    Ok(workspace.change_guardrail(&mut writer, &replaced, None, warnings))
}

/// Older rule that contradicts a new one.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Conflict {
    /// Id of the older rule.
    pub id: String,
    /// Explanation of the contradiction.
    pub reason: String,
    /// Text of the older rule.
    pub rule: String,
    /// `true` if the new rule superseded it.
    pub superseded: bool,
    /// Guardrail files that it was removed from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guardrails: Vec<String>,
}

/// Returns the rules of the same skill that a rule contradicts, as a model judged now (`related`) or
/// before; `supersede` marks them as superseded.
pub(crate) fn resolve_conflicts(
    workspace: &Workspace,
    rule: &Reflexion,
    related: &[Judged],
    supersede: bool,
    warnings: &mut Vec<String>,
) -> Result<Vec<Conflict>, Error> {
    let skill: SkillPath = rule.skill.parse()?;
    let of_skill = Selection::of(&skill);
    let mut writer = workspace.writer()?;
    let rules = writer.store().list::<Reflexion>(&of_skill)?.records;
    let mut conflicts = Vec::new();
    let others = rules
        .into_iter()
        .filter(|other| other.is_in_use() && other.reflexion_id != rule.reflexion_id);
    for other in others {
        let judged = related
            .iter()
            .find(|judged| judged.id == other.reflexion_id);
        let stored = || {
            rule.relations
                .iter()
                .rev()
                .find(|r| r.id == other.reflexion_id)
        };
        let judged = judged.map(|judged| (judged.relation, &judged.reason));
        let judged = judged.or_else(|| stored().map(|stored| (stored.relation, &stored.reason)));
        let Some((RuleRelation::Contradicts, reason)) = judged else {
            continue;
        };
        let reason = reason.clone();
        let mut guardrails = Vec::new();
        if supersede {
            let changes = replaced_by(&rule.reflexion_id);
            writer.update(Kind::Reflexion, &other.reflexion_id, &changes)?;
            guardrails = workspace.change_guardrail(&mut writer, &other, None, warnings);
        }
        conflicts.push(Conflict {
            id: other.reflexion_id,
            reason,
            rule: other.rule,
            superseded: supersede,
            guardrails,
        });
    }
    Ok(conflicts)
}

/// Changes that mark a rule as superseded by rule `id`.
pub(crate) fn replaced_by(id: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("superseded_by", json!(id)),
        // The reference implementation has no other way to hide a rule.
        ("utility_score", json!(0.0)),
    ]
}
