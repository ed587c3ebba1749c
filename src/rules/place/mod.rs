//! Adds a new rule to the rules of its skill.
//!
//! A rule that duplicates another strengthens it, and is not stored. A rule that contradicts others
//! is stored beside them, and the report names them; only the person who corrects may supersede
//! them. A model that was asked about a rule decides; otherwise only the same words are the same.

pub(crate) mod decisions;
pub(crate) mod given;
pub(crate) mod passed_on;

use chrono::{DateTime, Utc};
use memctl_search::embedder::{Vector, built_in};
use passed_on::{UNUSED, adopt, same_words};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::model::text::{key_words, similarity};
use crate::model::{
    AGENT, CANDIDATE, Correction, Kind, Reflexion, RelatedRule, RuleRelation, SkillPath,
};
use crate::rules::in_use::mark_observed;
use crate::rules::reflect::Draft;
use crate::store::workspace::{Error, Workspace, repair_warnings, stamp};
use crate::store::{Scoped, Selection, Writer};

/// Share of the missing confidence that a rule gains from a repetition.
const SAID_AGAIN: f64 = 0.2;

/// Outcome of placing a rule.
pub(crate) struct Placed {
    /// Rule in force.
    pub(crate) rule: Reflexion,
    /// Id of the known rule that the new one repeats; `None` for a new or activated rule.
    pub(crate) duplicate_of: Option<String>,
    /// `true` if the rule was a candidate until now.
    pub(crate) was_candidate: bool,
}

/// Stores a rule, or strengthens the rule that it duplicates. An agent's rule becomes a
/// candidate and strengthens no rule; so does a person's doubtful one. A person's rule activates the
/// candidate that it repeats. A model's judgement in `related` decides before the comparison of words.
pub(crate) fn place_rule(
    workspace: &Workspace,
    correction: &Correction,
    draft: Draft,
    distilled_by: &str,
    related: &[RelatedRule],
    by_agent: bool,
    warnings: &mut Vec<String>,
) -> Result<Placed, Error> {
    let skill: SkillPath = correction.skill.parse()?;
    let mut writer = workspace.writer()?;
    let rules = own_rules(writer.store(), &Selection::of(&skill))?;
    let id = &correction.correction_id;
    let is_same = |rule: &Reflexion| {
        let judged = related.iter().find(|judged| judged.id == rule.reflexion_id);
        judged.map_or_else(
            || same_words(&rule.rule, &draft.rule),
            |judged| judged.relation == RuleRelation::Same,
        )
    };
    let same = rules
        .iter()
        .find(|rule| rule.correction_id == *id || (rule.is_in_use() && is_same(rule)))
        .map(|rule| rule_in_force(&rules, rule));
    let candidate = || {
        rules
            .iter()
            .find(|rule| rule.is_candidate() && is_same(rule))
    };
    let placed = match same.or_else(candidate).cloned() {
        Some(before) if by_agent || !before.is_candidate() => {
            let mut rule = before.clone();
            if rule.is_candidate() || !by_agent {
                corrected_again(&mut rule, id, !by_agent);
                update_rule(&mut writer, &before, &mut rule)?;
            }
            Placed {
                duplicate_of: Some(rule.reflexion_id.clone()),
                rule,
                was_candidate: false,
            }
        }
        Some(mut rule) => {
            adopt(
                &mut writer,
                &mut rule,
                correction,
                Some((draft, distilled_by)),
            )?;
            Placed {
                rule,
                duplicate_of: None,
                was_candidate: true,
            }
        }
        None => {
            let is_unsure = draft.doubt.is_some();
            let mut rule = new_rule(workspace.now, correction, draft, distilled_by);
            // Verdicts that a comparison of words may miss are worth storing.
            rule.relations = related.to_vec();
            rule.relations.retain(|judged| {
                matches!(
                    judged.relation,
                    RuleRelation::Contradicts | RuleRelation::Narrows
                )
            });
            if by_agent {
                AGENT.clone_into(&mut rule.source);
            }
            if by_agent || is_unsure {
                CANDIDATE.clone_into(&mut rule.status);
                rule.utility_score = Some(UNUSED);
            }
            Placed {
                rule: writer.append(rule, workspace.now)?,
                duplicate_of: None,
                was_candidate: false,
            }
        }
    };
    warnings.extend(repair_warnings(writer.take_repairs()));
    Ok(placed)
}

fn new_rule(
    now: DateTime<Utc>,
    correction: &Correction,
    draft: Draft,
    distilled_by: &str,
) -> Reflexion {
    Reflexion {
        skill: correction.skill.clone(),
        created_at: stamp(now),
        correction_id: correction.correction_id.clone(),
        mistake: draft.mistake,
        root_cause: draft.root_cause,
        rule: draft.rule,
        applies_when: draft.applies_when,
        confidence: Some(draft.confidence),
        distilled_by: distilled_by.to_owned(),
        ..Reflexion::default()
    }
}

/// Rules that a person here vouches for. A rule that only claims to come from a person's correction
/// must not block the person's own rule.
pub(crate) fn own_rules(
    store: &Scoped,
    selection: &Selection<'_>,
) -> Result<Vec<Reflexion>, Error> {
    let mut rules = store.list::<Reflexion>(selection)?.records;
    mark_observed(store, &mut rules);
    rules.retain(|rule| !rule.observed);
    Ok(rules)
}

/// Returns the rule itself, or the rule in force that it was merged into.
pub(crate) fn rule_in_force<'r>(rules: &'r [Reflexion], rule: &'r Reflexion) -> &'r Reflexion {
    let mut rule = rule;
    // Links that were written by hand may form a cycle.
    for _ in rules {
        match rules
            .iter()
            .find(|successor| successor.has_taken_over(rule))
        {
            Some(successor) => rule = successor,
            None => break,
        }
    }
    rule
}

/// Notes that a correction repeats a rule, unless it was counted before. A person's word raises the
/// confidence; that of an agent, which can repeat itself at will, does not.
pub(crate) fn corrected_again(rule: &mut Reflexion, correction: &str, raises: bool) {
    let is_known = rule.correction_id == correction
        || rule.also_corrected_by.iter().any(|id| id == correction);
    if correction.is_empty() || is_known {
        return;
    }
    rule.also_corrected_by.push(correction.to_owned());
    if raises {
        let before = rule.confidence.unwrap_or(0.5);
        let after = before + (1.0 - before) * SAID_AGAIN;
        rule.confidence = Some((after * 100.0).round() / 100.0);
    }
}

/// Maximum number of rules to compare by meaning: those with the most words in common.
const COMPARED: usize = 48;
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

/// Lets a rule take the place of another, which stays in its file and names it as its successor.
/// Returns the guardrail files that the other was removed from.
pub fn replace_rule(
    workspace: &Workspace,
    rule: &str,
    other: &str,
    warnings: &mut Vec<String>,
) -> Result<Vec<String>, Error> {
    let mut writer = workspace.writer()?;
    let other: Reflexion = writer.store().get(other)?;
    supersede_rule(workspace, &mut writer, rule, &other, warnings)
}

fn supersede_rule(
    workspace: &Workspace,
    writer: &mut Writer,
    rule: &str,
    other: &Reflexion,
    warnings: &mut Vec<String>,
) -> Result<Vec<String>, Error> {
    update_rule(writer, other, &mut superseded(other, rule))?;
    Ok(workspace.change_guardrail(writer, other, None, warnings))
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

/// Returns the rules of the same skill that a rule contradicts, by its last relation to them; `supersede` marks
/// them as superseded.
pub(crate) fn resolve_conflicts(
    workspace: &Workspace,
    rule: &Reflexion,
    supersede: bool,
    warnings: &mut Vec<String>,
) -> Result<Vec<Conflict>, Error> {
    let skill: SkillPath = rule.skill.parse()?;
    let mut writer = workspace.writer()?;
    let rules = writer
        .store()
        .list::<Reflexion>(&Selection::of(&skill))?
        .records;
    let mut conflicts = Vec::new();
    for other in rules {
        let mut relations = rule.relations.iter().rev();
        let last = relations.find(|related| related.id == other.reflexion_id);
        let contradicts = |related: &&RelatedRule| related.relation == RuleRelation::Contradicts;
        let Some(related) = last.filter(contradicts).filter(|_| other.is_in_use()) else {
            continue;
        };
        let mut guardrails = Vec::new();
        if supersede {
            let id = &rule.reflexion_id;
            guardrails = supersede_rule(workspace, &mut writer, id, &other, warnings)?;
        }
        conflicts.push(Conflict {
            id: other.reflexion_id,
            reason: related.reason.clone(),
            rule: other.rule,
            superseded: supersede,
            guardrails,
        });
    }
    Ok(conflicts)
}

/// Returns a rule as superseded by rule `id`.
pub(crate) fn superseded(rule: &Reflexion, id: &str) -> Reflexion {
    Reflexion {
        superseded_by: id.to_owned(),
        // The reference implementation has no other way to hide a rule.
        utility_score: Some(0.0),
        ..rule.clone()
    }
}

/// Adds to the receipts of a rule: told, heeded, recurred, overridden.
pub(crate) fn add_receipts(rule: &mut Reflexion, more: [f64; 4]) {
    let counts = [
        &mut rule.times_told,
        &mut rule.times_heeded,
        &mut rule.times_recurred,
        &mut rule.times_overridden,
    ];
    for (count, more) in counts.into_iter().zip(more) {
        if more != 0.0 {
            *count = Some((count.unwrap_or(0.0) + more).max(0.0));
        }
    }
}

/// Stores a changed rule, which may get the id of a shared one.
pub(crate) fn update_rule(
    writer: &mut Writer,
    before: &Reflexion,
    after: &mut Reflexion,
) -> Result<(), Error> {
    let changes = changed_fields(before, after);
    let changes: Vec<_> = changes
        .iter()
        .map(|(name, value)| (name.as_str(), value))
        .collect();
    if !changes.is_empty() {
        after.reflexion_id = writer
            .update(Kind::Reflexion, &before.reflexion_id, &changes)?
            .id;
    }
    Ok(())
}

/// Stores changed rules in one write, each given as it was and as it is.
pub(crate) fn update_rules(
    writer: &mut Writer,
    rules: &[(Reflexion, Reflexion)],
) -> Result<(), Error> {
    let fields = rules
        .iter()
        .map(|(before, after)| changed_fields(before, after));
    let fields: Vec<Vec<(String, Value)>> = fields.collect();
    let changes = rules.iter().zip(&fields).map(|((before, _), fields)| {
        let fields = fields.iter().map(|(name, value)| (name.as_str(), value));
        (before.reflexion_id.clone(), fields.collect())
    });
    let changes: Vec<(String, Vec<(&str, &Value)>)> = changes.collect();
    writer.update_all(Kind::Reflexion, &changes)
}

/// Returns the fields that differ. A list that is empty now is written as such.
fn changed_fields(before: &Reflexion, after: &Reflexion) -> Vec<(String, Value)> {
    let fields = |rule: &Reflexion| match json!(rule) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let (before, after) = (fields(before), fields(after));
    let emptied = before.iter().filter(|(name, _)| !after.contains_key(*name));
    let emptied = emptied.map(|(name, old)| {
        let empty = if old.is_array() {
            json!([])
        } else {
            Value::Null
        };
        (name.clone(), empty)
    });
    let emptied: Vec<_> = emptied.collect();
    let changed = after
        .into_iter()
        .filter(|(name, value)| before.get(name) != Some(value));
    changed.chain(emptied).collect()
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
